#include "tools/resource_uri.hpp"

#include <charconv>
#include <cstring>

namespace tools {

namespace {

constexpr std::string_view kPrefix = "pykeep://sessions/";

// RFC 3986 2.3, and '/' which {+path} leaves alone (RFC 6570 3.2.3).
bool stays(char c) {
  bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || (c != '\0' && std::strchr("-._~/", c));
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const char* digits = text.data() + i + 1;
    if (text.size() - i < 3) return std::nullopt;
    auto [end, failed] = std::from_chars(digits, digits + 2, byte, 16);
    if (failed != std::errc() || end != digits + 2) return std::nullopt;
    out += static_cast<char>(byte);
    i += 2;
  }
  return out;
}

std::string_view file_name(ExportFormat format) {
  return format == ExportFormat::notebook ? "notebook.ipynb" : "script.py";
}

}  // namespace

std::string file_uri(const std::string& session, const std::string& path) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri(kPrefix);
  uri += session + "/files/";
  for (char c : path) {
    auto byte = static_cast<unsigned char>(c);
    if (stays(c))
      uri += c;
    else
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return uri;
}

std::string execution_uri(const std::string& session, int number) {
  return std::string(kPrefix) + session + "/executions/" + std::to_string(number);
}

std::string export_uri(const std::string& session, ExportFormat format) {
  return std::string(kPrefix) + session + "/" + std::string(file_name(format));
}

std::optional<ResourceUri> parse_resource_uri(std::string_view uri) {
  if (!uri.starts_with(kPrefix)) return std::nullopt;
  uri.remove_prefix(kPrefix.size());
  std::size_t slash = uri.find('/');
  if (slash == uri.npos || slash == 0) return std::nullopt;
  ResourceUri parsed;
  parsed.session = uri.substr(0, slash);
  uri.remove_prefix(slash + 1);
  if (uri.starts_with("files/")) {
    auto path = percent_decoded(uri.substr(6));
    if (!path || path->empty()) return std::nullopt;
    parsed.file = std::move(*path);
    return parsed;
  }
  for (ExportFormat format : {ExportFormat::notebook, ExportFormat::script}) {
    if (uri != file_name(format)) continue;
    parsed.whole = format;
    return parsed;
  }
  constexpr std::string_view kExecutions = "executions/";
  if (!uri.starts_with(kExecutions)) return std::nullopt;
  uri.remove_prefix(kExecutions.size());
  const char* end = uri.data() + uri.size();
  auto [parsed_to, failed] = std::from_chars(uri.data(), end, parsed.execution);
  if (failed != std::errc() || parsed_to != end || parsed.execution <= 0) return std::nullopt;
  return parsed;
}

}  // namespace tools
