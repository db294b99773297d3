#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/pandastack/http.hpp"

namespace sandbox::pandastack {

// How a transfer ended.
struct End {
  bool ok = true;
  Failure failure = Failure::cut;
  bool sent = false;  // the request, or a part of it
  std::string why;
};

// What the thread has for the event loop.
struct Arrival {
  std::optional<Head> head;
  std::string bytes;
  std::optional<End> end;

  bool empty() const { return !head && bytes.empty() && !end; }
};

// A request under way, as the event loop sees it: everything here is called on its thread, where it
// is also destroyed. The other side is Transfer (transfer.hpp).
class Call {
 public:
  Call(boost::asio::any_io_executor executor, Request request);

  const Request& request() const { return request_; }  // constant, so the thread reads it, too

  void arrived(Arrival arrival);

  // Both throw Error.
  awaitable<void> wait_for_head();
  awaitable<std::optional<std::string>> read();
  const Head& head() const { return *head_; }
  void give_up();  // nobody reads it any more

  // Set by Transfers: its name there, and where to say what was read.
  std::uint64_t id = 0;
  std::shared_ptr<Transfers> transfers;

 private:
  [[noreturn]] void fail() const;

  const Request request_;
  async::Changed changed_;
  std::optional<Head> head_;
  std::string bytes_;
  std::size_t read_unsaid_ = 0;
  std::optional<End> end_;
};

}  // namespace sandbox::pandastack
