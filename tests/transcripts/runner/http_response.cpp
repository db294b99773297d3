#include "tests/transcripts/runner/http_response.hpp"

#include <algorithm>
#include <stdexcept>

namespace transcripts {

namespace {

[[noreturn]] void broken(const std::string& what) {
  throw std::runtime_error("not HTTP as it should be: " + what);
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

std::vector<std::string> HttpResponse::take(std::string_view bytes) {
  in_ += bytes;
  std::vector<std::string> messages;
  while (step(messages)) {
  }
  if (complete() && !in_.empty()) broken("bytes behind the response: " + in_.substr(0, 100));
  return messages;
}

void HttpResponse::end() const {
  if (!complete()) broken("the connection ended before its response");
}

std::string HttpResponse::header(const std::string& name) const {
  auto found = headers_.find(name);
  return found == headers_.end() ? "" : found->second;
}

// The next line without its end, once it is there.
std::optional<std::string> HttpResponse::line() {
  std::size_t end = in_.find("\r\n");
  if (end == in_.npos) return std::nullopt;
  std::string text = in_.substr(0, end);
  in_.erase(0, end + 2);
  return text;
}

// Whether there may be more to do with what is there.
bool HttpResponse::step(std::vector<std::string>& messages) {
  switch (stage_) {
    case Stage::head:
      if (in_.find("\r\n\r\n") == in_.npos) return false;
      read_head();
      if (stage_ == Stage::sized && left_ == 0) finish(messages);
      return true;
    case Stage::sized:
      if (in_.empty()) return false;
      take_body(std::min(left_, in_.size()), messages);
      if (left_ == 0) finish(messages);
      return true;
    case Stage::chunk_size: {
      auto size = line();
      if (!size) return false;
      std::size_t used = 0;
      left_ = std::stoul(*size, &used, 16);
      if (used != size->size()) broken("chunk size " + *size);
      stage_ = left_ > 0 ? Stage::chunk : Stage::chunk_end;
      return true;
    }
    case Stage::chunk:
      if (in_.empty()) return false;
      take_body(std::min(left_, in_.size()), messages);
      if (left_ == 0) stage_ = Stage::chunk_end, left_ = 1;
      return true;
    case Stage::chunk_end: {
      auto end = line();
      if (!end) return false;
      if (!end->empty()) broken("a chunk goes on: " + *end);
      bool last = left_ == 0;
      stage_ = Stage::chunk_size;
      if (last) finish(messages);
      return true;
    }
    case Stage::done:
      return false;
  }
  return false;
}

void HttpResponse::read_head() {
  std::string status = *line();
  if (!status.starts_with("HTTP/1.1 ")) broken(status);
  status_ = std::stoi(status.substr(9));
  for (std::string text = *line(); !text.empty(); text = *line()) {
    std::size_t colon = text.find(": ");
    if (colon == text.npos) broken(text);
    headers_[lower(text.substr(0, colon))] = text.substr(colon + 2);
  }
  bool chunked = header("transfer-encoding") == "chunked";
  bool sized = headers_.contains("content-length");
  bool bodiless = status_ == 204;
  if (chunked == sized && !bodiless) broken("no length, or two, of a body");
  stage_ = chunked ? Stage::chunk_size : Stage::sized;
  if (sized) left_ = std::stoul(header("content-length"));
}

void HttpResponse::take_body(std::size_t size, std::vector<std::string>& messages) {
  body_.append(in_, 0, size);
  in_.erase(0, size);
  left_ -= size;
  if (header("content-type").starts_with("text/event-stream")) events(messages);
}

void HttpResponse::finish(std::vector<std::string>& messages) {
  stage_ = Stage::done;
  if (header("content-type").starts_with("application/json") && !body_.empty())
    messages.push_back(body_);
}

// Lines of the stream (HTML, 9.2.6): `data` of an event up to the empty line; comments and the rest
// pass by. An event without data is the one a client may resume from.
void HttpResponse::events(std::vector<std::string>& messages) {
  for (std::size_t end; (end = body_.find('\n')) != body_.npos; body_.erase(0, end + 1)) {
    std::string text = body_.substr(0, end);
    if (text.ends_with('\r')) text.pop_back();
    if (text.starts_with("data: ")) data_ += text.substr(6);
    if (text.starts_with("event: ") && text != "event: message") broken("an " + text);
    if (!text.empty() || data_.empty()) continue;
    messages.push_back(data_);
    data_.clear();
  }
}

}  // namespace transcripts
