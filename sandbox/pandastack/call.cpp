#include "sandbox/pandastack/call.hpp"

#include "sandbox/pandastack/transfers.hpp"

namespace sandbox::pandastack {

Call::Call(boost::asio::any_io_executor executor, Request request)
    : request_(std::move(request)), changed_(executor) {}

void Call::arrived(Arrival arrival) {
  if (arrival.head) head_ = std::move(arrival.head);
  if (bytes_.empty())
    bytes_ = std::move(arrival.bytes);
  else
    bytes_ += arrival.bytes;
  if (arrival.end) end_ = std::move(arrival.end);
  changed_.notify();
}

awaitable<void> Call::wait_for_head() {
  while (!head_ && !end_) co_await changed_.wait();
  if (!head_) fail();
}

awaitable<std::optional<std::string>> Call::read() {
  while (bytes_.empty() && !end_) co_await changed_.wait();
  if (bytes_.empty()) {
    if (!end_->ok) fail();
    co_return std::nullopt;
  }
  std::string out = std::move(bytes_);
  bytes_.clear();
  read_unsaid_ += out.size();
  // Not after each read: most answers are over before the thread would have to know.
  if (read_unsaid_ >= kWindow / 4 && !end_) {
    transfers->was_read(id, read_unsaid_);
    read_unsaid_ = 0;
  }
  co_return out;
}

void Call::give_up() {
  if (!end_) transfers->give_up(id);
}

void Call::fail() const {
  std::string text = request_.purpose + ": " + end_->why;
  if (end_->sent) text += ". It may have been done all the same";
  Outcome outcome = end_->sent ? Outcome::unknown : Outcome::refused;
  throw Error(end_->failure, outcome, text);
}

}  // namespace sandbox::pandastack
