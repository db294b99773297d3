#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "sandbox/pandastack/call.hpp"
#include "sandbox/pandastack/curl.hpp"

namespace sandbox::pandastack {

// A request under way, as libcurl's thread sees it: everything here is called on that thread. What
// comes is gathered for the event loop, which is sent it once a round (take_arrival).
class Transfer {
 public:
  Transfer(const HttpOptions& options, std::shared_ptr<Call> call);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  static Transfer& of(CURL* handle);
  CURL* handle() const { return easy_; }
  const std::shared_ptr<Call>& call() const { return call_; }

  void was_read(std::size_t bytes);
  void finished(CURLcode result);
  // Ends it before its time, unless it has ended.
  void end(Failure failure, std::string why);
  Arrival take_arrival();

 private:
  void set_request();
  void set_transport(const HttpOptions& options);
  void add_header(const std::string& line);
  template <class Value>
  void set(CURLoption option, Value value);

  std::size_t on_header(std::string_view line);
  std::size_t on_body(std::string_view bytes);
  bool may_send();
  // What libcurl calls: no exception passes through C.
  static std::size_t header(char* data, std::size_t one, std::size_t size, void* self) noexcept;
  static std::size_t body(char* data, std::size_t one, std::size_t size, void* self) noexcept;
  static int before_request(void* self, char*, char*, int, int) noexcept;

  const std::shared_ptr<Call> call_;
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
  std::array<char, CURL_ERROR_SIZE> error_text_{};

  Arrival arrival_;
  Head head_;  // until it is complete
  std::size_t head_size_ = 0;
  bool head_complete_ = false;
  bool sent_ = false;
  bool ended_ = false;
  bool held_up_ = false;    // the reader is behind
  std::size_t unread_ = 0;  // bytes of the body that the reader has not taken yet
  std::uint64_t body_size_ = 0;
};

}  // namespace sandbox::pandastack
