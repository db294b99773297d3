#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "sandbox/kernel_channel.hpp"
#include "sandbox/pandastack/relay.hpp"

namespace sandbox::pandastack {

// What a kernel says, in its order: the relay's records as events of a kernel channel, each record
// once however often it comes, until somebody takes them.
class Inbox {
 public:
  // Records up to `after` are known. `memory` of the guest is for the words of Exit::cause.
  Inbox(boost::asio::any_io_executor executor, std::int64_t after, std::uint64_t memory);

  // Any record but the end of an answer.
  void take(Record record);
  // What came is no record, or the kernel broke its link: nothing more is taken but its exit.
  void violation(std::string what);
  // What comes from now on, up to the next frame, was printed before the cell.
  void begin_cell(std::int64_t id);
  // The relay has nothing more to say of the cell. If it has not ended, what it said went with a
  // relay that died: it is ended here, with an error that says so.
  void end_cell();
  // Nothing more comes. The first reason counts.
  void close(Exit how);
  // Another relay numbers its records anew.
  void restart() { after_ = 0; }

  std::int64_t after() const { return after_; }  // the last record that is here
  bool is_broken() const { return broken_; }
  bool is_closed() const { return how_.has_value(); }
  const Exit& how() const { return *how_; }  // once closed
  std::uint64_t memory_kills() const { return kills_; }

  std::optional<KernelEvent> pop();
  awaitable<void> arrival() { return arrived_.wait(); }
  awaitable<void> arrival(std::chrono::milliseconds limit) { return arrived_.wait(limit); }
  // Returns once there is room for more, or it is closed.
  awaitable<void> room();

 private:
  void put(KernelEvent event);
  void text(bool is_stderr, std::string bytes);
  void exit(const Record& record);

  std::int64_t after_;
  std::uint64_t memory_;
  std::optional<std::int64_t> cell_;  // that has not ended
  bool early_ = false;                // what comes was printed before the frame that was sent last
  bool broken_ = false;
  std::optional<Exit> how_;
  std::uint64_t kills_ = 0;
  std::deque<KernelEvent> events_;
  std::size_t held_ = 0;  // bytes
  async::Changed arrived_, taken_;
};

}  // namespace sandbox::pandastack
