#include "transport/http/exchange.hpp"

#include <algorithm>
#include <charconv>

namespace transport::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool NameLess::operator()(std::string_view a, std::string_view b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char x, char y) { return lower(x) < lower(y); });
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), lower);
  return result;
}

const std::string* Request::header(std::string_view name) const {
  auto first = headers.lower_bound(name);
  if (first == headers.end() || NameLess()(name, first->first)) return nullptr;
  return &first->second;
}

std::optional<std::uint64_t> Request::content_length() const {
  const std::string* text = header("Content-Length");
  if (!text) return std::nullopt;
  std::uint64_t length = 0;
  const char* last = text->data() + text->size();
  auto [end, failed] = std::from_chars(text->data(), last, length);
  if (failed != std::errc() || end != last) return std::nullopt;
  return length;
}

Response plain(int status, std::string text) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(text) + "\n";
  return response;
}

}  // namespace transport::http
