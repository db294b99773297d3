#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <variant>

#include "async/task_group.hpp"
#include "sandbox/pandastack/inbox.hpp"

namespace sandbox::pandastack {

// What brings frames to a kernel and its records back, one request after the other, and sees to it
// that it goes on after whatever happens on the way. Shared by a channel with the coroutines here,
// which may outlive it by a moment.
class Pump {
 public:
  // As RelayChannel's.
  Pump(boost::asio::any_io_executor executor, std::shared_ptr<Route> route, const RelayState& state,
       std::uint64_t memory, LinkPatience patience);

  // Goes on until the kernel is out of reach or has ended, or stop().
  static void start(std::shared_ptr<Pump> self);
  void stop() { pumping_.cancel(); }
  void send(std::string frame);
  void look();  // for what the kernel says, even if there is no frame for it
  // Brings a signal to the kernel in the background, as well as it goes.
  static void signal(std::shared_ptr<Pump> self, std::string what);
  awaitable<void> settle() { return signals_.join(); }
  void drop_signals() { signals_.cancel(); }
  void end(Exit how);
  void lose(std::string because);  // as end(), of a kernel that may live on

  Inbox inbox;
  bool killed = false;  // its end is to be seen soon

 private:
  static awaitable<void> run(std::shared_ptr<Pump> self);
  static awaitable<void> bring(std::shared_ptr<Pump> self, std::string what);
  awaitable<void> exchange();
  awaitable<std::unique_ptr<RelayAnswer>> ask();
  awaitable<void> read(RelayAnswer& answer);
  bool take(std::variant<Frame, Violation> item);
  awaitable<void> until_work();
  awaitable<void> refused(const Refusal& refusal);
  awaitable<void> trouble(const std::string& what);
  awaitable<void> mend();
  void renew(const RelayState& state);

  std::shared_ptr<Route> route_;
  LinkPatience patience_;
  std::string epoch_;
  std::int64_t sent_;               // frames that the kernel was given
  std::deque<std::string> frames_;  // for it; the first one may have arrived already
  bool wanted_;       // an answer, even if there is no frame: the kernel may be at work
  int failures_ = 0;  // in a row
  std::chrono::steady_clock::time_point contact_ = std::chrono::steady_clock::now();
  async::Changed work_;
  async::TaskGroup pumping_, signals_;
};

}  // namespace sandbox::pandastack
