#include "transport/http/event_stream.hpp"

namespace transport::http {

namespace json = boost::json;

namespace {

// Progress and log lines leave most of the room to answers.
constexpr std::size_t kOfferShare = 8;

bool is_answer(const json::value& message) {
  const json::object* object = message.if_object();
  return object && !object->contains("method");
}

std::optional<std::int64_t> error_code(const json::value& message) {
  const json::object* object = message.if_object();
  const json::value* error = object ? object->if_contains("error") : nullptr;
  if (!error) return std::nullopt;
  return error->at("code").as_int64();
}

}  // namespace

EventStream::EventStream(boost::asio::any_io_executor executor, Options options)
    : options_(std::move(options)), log_(options_.kept), queued_(executor), taken_(executor) {}

bool EventStream::must_wait() const {
  return !closed_ && log_.is_read() && log_.unread() > options_.unread;
}

mcp::awaitable<void> EventStream::send(json::value message) {
  json::array messages;
  bool batch = message.is_array();
  if (batch)
    messages = std::move(message.get_array());
  else
    messages.push_back(std::move(message));
  if (options_.answers_only && !is_answer(messages.front())) co_return;
  std::optional<std::int64_t> error;
  if (!batch) error = error_code(messages.front());
  bool answer = is_answer(messages.front());
  std::vector<std::string> texts;
  for (const json::value& one : messages) texts.push_back(json::serialize(one));
  messages = {};  // while it waits, the texts are all there is of it

  while (must_wait()) co_await taken_.wait();
  if (closed_) co_return;
  is_batch_ = batch;
  error_ = error;
  for (std::string& text : texts) log_.append(std::move(text), answer);
  queued_.notify();
}

bool EventStream::offer(json::object message) {
  bool full = log_.is_read() && log_.unread() > options_.unread / kOfferShare;
  if (closed_ || ended_ || options_.answers_only || full) return false;
  log_.append(json::serialize(message), false);
  queued_.notify();
  return true;
}

void EventStream::hang_up() {
  if (!options_.can_hang_up) return;
  ++turn_;
  log_.stop_reading();
  queued_.notify();
  taken_.notify();
}

void EventStream::finish() {
  ended_ = true;
  queued_.notify();
}

void EventStream::close() {
  closed_ = ended_ = true;
  log_.clear();
  queued_.notify();
  taken_.notify();
}

EventStream::Reader::Reader(std::shared_ptr<EventStream> stream, std::uint64_t after)
    : stream_(std::move(stream)), turn_(++stream_->turn_) {
  stream_->log_.begin_reading(after);
  stream_->queued_.notify();  // an earlier reader sees that its turn is over
  stream_->taken_.notify();
}

EventStream::Reader::~Reader() {
  if (!current()) return;
  ++stream_->turn_;
  stream_->log_.stop_reading();
  if (stream_->options_.kept == 0) stream_->close();
  stream_->taken_.notify();
}

mcp::awaitable<void> EventStream::Reader::wait(std::chrono::milliseconds limit) {
  if (next() || at_end()) co_return;
  co_await stream_->queued_.wait(limit);
}

const Event* EventStream::Reader::next() const {
  return current() ? stream_->log_.next() : nullptr;
}

void EventStream::Reader::advance() {
  if (!current()) return;
  stream_->log_.advance();
  stream_->taken_.notify();
}

bool EventStream::Reader::at_end() const {
  return !current() || (stream_->ended_ && !stream_->log_.next());
}

}  // namespace transport::http
