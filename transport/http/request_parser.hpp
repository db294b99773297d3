#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/http/exchange.hpp"

namespace transport::http {

// The bytes of one request, in; a Request and its body, out. No I/O of its own. Stricter than
// RFC 9112 asks wherever two readers of the same bytes could disagree about where a request ends
// (request smuggling): no bare line feeds, no folded lines, never two lengths.
class RequestParser {
 public:
  enum class State { more, done, bad };

  explicit RequestParser(std::size_t header_bytes);
  ~RequestParser();
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // Takes the head from the front of `in`: done once, then `request` has it. `more`: call again
  // when `in` has grown; it never needs to grow beyond `header_bytes`.
  State head(std::string& in, Request& request);

  // Takes what there is of the body from the front of `in` and puts up to `into.size()` bytes of it
  // there; `size` says how many. `done`: that was all of it.
  State body(std::string& in, std::span<char> into, std::size_t& size);
  bool body_done() const;
  std::optional<std::uint64_t> content_length() const;

  bool http_1_0() const;
  bool keep_alive() const;
  bool expects_continue() const { return expects_continue_; }

  // Of what was bad: the status to answer it with, before the connection is closed.
  int status() const { return status_; }
  const std::string& why() const { return why_; }

 private:
  struct Beast;
  State refuse(int status, std::string why);
  State parse(std::string& in, std::size_t size, Request& request);
  State check_framing();
  State read_target(Request& request, std::string target);

  std::size_t header_bytes_;
  std::size_t scanned_ = 0;     // of `in`, by head()
  std::size_t line_start_ = 0;  // of the line it is in
  std::size_t lines_ = 0;
  bool expects_continue_ = false;
  int status_ = 400;
  std::string why_;
  std::unique_ptr<Beast> beast_;
};

}  // namespace transport::http
