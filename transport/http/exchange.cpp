#include "transport/http/exchange.hpp"

#include <algorithm>

namespace transport::http {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool NameLess::operator()(std::string_view a, std::string_view b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [](char x, char y) { return lower(x) < lower(y); });
}

const std::string* Request::header(std::string_view name) const {
  auto first = headers.lower_bound(name);
  if (first == headers.end() || NameLess()(name, first->first)) return nullptr;
  return &first->second;
}

Response plain(int status, std::string text) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(text) + "\n";
  return response;
}

}  // namespace transport::http
