#include "sandbox/pandastack/inbox.hpp"

#include "sandbox/exit_cause.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

namespace {

constexpr std::size_t kPiece = 256 << 10;  // of a stream, in one event
constexpr std::size_t kHeld = 1 << 20;     // of events that nobody has taken yet

// About what it takes in memory; the guest chooses what is in a header.
std::size_t weight(const json::value& value) {
  std::size_t sum = sizeof(json::value);
  if (const auto* text = value.if_string()) sum += text->size();
  if (const auto* list = value.if_array())
    for (const json::value& each : *list) sum += weight(each);
  if (const auto* object = value.if_object())
    for (const auto& each : *object) sum += each.key().size() + weight(each.value());
  return sum;
}

std::size_t size_of(const KernelEvent& event) {
  if (const auto* piece = std::get_if<StreamBytes>(&event)) return piece->bytes.size();
  if (const auto* frame = std::get_if<Frame>(&event)) {
    std::size_t size = frame->payload.size() + 256;
    for (const auto& each : frame->header) size += each.key().size() + weight(each.value());
    return size;
  }
  return 0;
}

// Whether the kernel says that this cell has ended.
bool is_done(const json::object& header, std::optional<std::int64_t> cell) {
  const json::value* event = header.if_contains("ev");
  const json::value* id = header.if_contains("id");
  return cell && event && event->is_string() && event->get_string() == "done" && id &&
         id->is_int64() && id->get_int64() == *cell;
}

Frame frame_of(json::object header) { return Frame{std::move(header), {}}; }

}  // namespace

Inbox::Inbox(boost::asio::any_io_executor executor, std::int64_t after, std::uint64_t memory)
    : after_(after), memory_(memory), arrived_(executor), taken_(executor) {}

void Inbox::put(KernelEvent event) {
  held_ += size_of(event);
  events_.push_back(std::move(event));
  arrived_.notify();
}

void Inbox::text(bool is_stderr, std::string bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kPiece)
    put(StreamBytes{is_stderr, bytes.substr(at, kPiece), early_});
}

std::optional<KernelEvent> Inbox::pop() {
  if (events_.empty()) return std::nullopt;
  KernelEvent event = std::move(events_.front());
  events_.pop_front();
  held_ -= size_of(event);
  taken_.notify();
  return event;
}

awaitable<void> Inbox::room() {
  while (held_ > kHeld && !is_closed()) co_await taken_.wait();
}

void Inbox::close(Exit how) {
  if (is_closed()) return;
  how_ = std::move(how);
  put(Closed());
  taken_.notify();
}

void Inbox::violation(std::string what) {
  if (!broken_) put(Violation{std::move(what)});
  broken_ = true;
}

void Inbox::begin_cell(std::int64_t id) {
  cell_ = id;
  early_ = true;
}

void Inbox::take(Record record) {
  using Is = Record::Is;
  if (record.is == Is::alive || record.seq <= after_) return;
  after_ = record.seq;
  if (broken_ && record.is != Is::exit) return;
  if (record.is == Is::frame || record.is == Is::sent) early_ = false;
  switch (record.is) {
    case Is::text:
      text(record.is_stderr, std::move(record.frame.payload));
      break;
    case Is::frame:
      if (is_done(record.frame.header, cell_)) cell_.reset();
      put(std::move(record.frame));
      break;
    case Is::dropped:
      text(false, "[" + std::to_string(record.count) + " bytes were printed before this]\n");
      break;
    case Is::violation:
      violation(std::move(record.why));
      break;
    case Is::exit:
      exit(record);
      break;
    default:
      break;
  }
}

void Inbox::exit(const Record& record) {
  kills_ += record.count;
  int status = record.signal ? *record.signal : record.code.value_or(0) << 8;
  Exit exit = describe_exit(status, record.count > 0, memory_);
  if (!record.signal && !record.code) exit.cause = "it ended while it was out of reach";
  close(std::move(exit));
}

void Inbox::end_cell() {
  if (!cell_) return;
  json::object error, done;
  error["ev"] = "error";
  error["id"] = *cell_;
  error["name"] = "OutcomeUnknown";
  error["value"] =
      "the cell has ended, but its result was lost on the way from its sandbox. Variables are "
      "kept; "
      "it was not run again";
  error["traceback"] = json::array();
  done["ev"] = "done";
  done["id"] = *cell_;
  done["status"] = "error";
  done["execution_count"] = 0;
  cell_.reset();
  put(frame_of(std::move(error)));
  put(frame_of(std::move(done)));
}

}  // namespace sandbox::pandastack
