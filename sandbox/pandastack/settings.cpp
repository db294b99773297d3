#include "sandbox/pandastack/settings.hpp"

#include <algorithm>
#include <boost/json.hpp>
#include <charconv>
#include <cstdlib>
#include <fstream>

#include "sandbox/sandbox.hpp"
#include "schemas/parse.hpp"

namespace sandbox::pandastack {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxFile = 64 << 10;

std::string value_of(const Variables& variables, const char* name) {
  return variables(name).value_or("");
}

std::vector<fs::path> config_files(const Variables& variables) {
  std::vector<fs::path> files;
  fs::path xdg = value_of(variables, "XDG_CONFIG_HOME"), home = value_of(variables, "HOME");
  if (xdg.is_absolute()) files.push_back(xdg / "pandastack/config.json");
  if (home.is_absolute()) files.push_back(home / ".config/pandastack/config.json");
  return files;
}

// Nothing of the file's content is in the error: it may be a secret.
std::string key_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return {};
  std::string text(kMaxFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  boost::system::error_code malformed;
  boost::json::value parsed = schemas::parse(text, malformed);
  if (malformed || !parsed.is_object())
    throw StartError(file.string() + " is not a JSON object: mend it, or set PANDASTACK_API_KEY");
  for (const char* name : {"token", "apiKey", "api_key"})
    if (const auto* key = parsed.get_object().if_contains(name))
      if (key->is_string() && !key->get_string().empty()) return std::string(key->get_string());
  return {};
}

void find_key(Settings& settings, const Variables& variables) {
  for (const char* name : {"PANDASTACK_API_KEY", "PANDASTACK_TOKEN"}) {
    settings.key = value_of(variables, name);
    settings.key_from = name;
    if (!settings.key.empty()) return;
  }
  for (const fs::path& file : config_files(variables)) {
    settings.key = key_in(file);
    settings.key_from = file.string();
    if (!settings.key.empty()) return;
  }
  settings.key_from.clear();
}

std::string_view host_of(std::string_view base) {
  base.remove_prefix(base.find("://") + 3);
  std::string_view authority = base.substr(0, base.find('/'));
  if (authority.starts_with('[')) return authority.substr(0, authority.find(']') + 1);
  return authority.substr(0, authority.find(':'));
}

bool is_this_machine(std::string_view base) {
  std::string_view host = host_of(base);
  bool of_127 = host.starts_with("127.") && std::ranges::all_of(host, [](char c) {
                  return c == '.' || (c >= '0' && c <= '9');
                });
  return of_127 || host == "localhost" || host == "[::1]";
}

}  // namespace

std::optional<std::string> environment_variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value) return std::nullopt;
  return value;
}

bool Settings::in_plain_text() const {
  return base.starts_with("http://") && !is_this_machine(base);
}

std::string api_base(std::string_view url) {
  auto refuse = [url](const char* wish) {
    // Not with what stands before an @: that may be a password.
    std::string shown(url.find('@') == url.npos ? url : "the address");
    throw StartError("PandaStack's address: " + shown + ": expected " + wish);
  };
  std::string base(url);
  if (!base.starts_with("https://") && !base.starts_with("http://")) refuse("an http or https URL");
  auto is_good = [](char c) { return c > 0x20 && c < 0x7f && c != '\\'; };
  if (!std::ranges::all_of(base, is_good) || base.find_first_of("@?#") != base.npos)
    refuse("a URL without user, query, fragment or blanks");
  while (base.ends_with('/')) base.pop_back();
  if (base.find("://") == base.npos || host_of(base).empty()) refuse("a URL with a host");
  if (!base.ends_with("/v1")) base += "/v1";
  return base;
}

Settings read_settings(std::string_view base, const Variables& variables) {
  Settings settings;
  std::string address(base);
  if (address.empty()) address = value_of(variables, "PANDASTACK_API");
  settings.base = api_base(address.empty() ? kCloud : address);
  settings.ca_file = value_of(variables, "SSL_CERT_FILE");

  find_key(settings, variables);
  auto is_printable = [](char c) { return c > 0x20 && c < 0x7f; };
  if (!std::ranges::all_of(settings.key, is_printable))
    throw StartError("the PandaStack key from " + settings.key_from + " has blanks or line breaks");
  if (settings.key.empty() && !is_this_machine(settings.base))
    throw StartError("no PandaStack key: set PANDASTACK_API_KEY to one (\"pds_...\")");

  std::string limit = value_of(variables, "PANDASTACK_EXEC_READY_TIMEOUT_MS");
  unsigned milliseconds = 0;
  auto [end, bad] = std::from_chars(limit.data(), limit.data() + limit.size(), milliseconds);
  if (!limit.empty() && bad == std::errc() && end == limit.data() + limit.size())
    settings.warm_up = std::chrono::milliseconds(milliseconds);
  return settings;
}

}  // namespace sandbox::pandastack
