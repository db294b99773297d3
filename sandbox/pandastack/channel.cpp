#include "sandbox/pandastack/channel.hpp"

#include <spdlog/spdlog.h>

#include <deque>

#include "async/task_group.hpp"
#include "sandbox/exit_cause.hpp"
#include "sandbox/pandastack/errors.hpp"
#include "schemas/codec.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPiece = 256 << 10;  // of a stream, in one event
constexpr std::size_t kHeld = 1 << 20;     // of events that nobody has taken yet
constexpr auto kExchange = 600s;           // of one answer; a longer cell has several
constexpr auto kExchangeSlack = 20s;
constexpr auto kSignalLimit = 5s;
constexpr int kSignalTries = 3;
constexpr auto kExitLimit = 5s;
constexpr auto kUnconnected = 200ms;

std::size_t size_of(const KernelEvent& event) {
  if (const auto* piece = std::get_if<StreamBytes>(&event)) return piece->bytes.size();
  if (const auto* frame = std::get_if<Frame>(&event)) return frame->payload.size() + 256;
  return 0;
}

std::int64_t id_of(const json::object& header) {
  const json::value* id = header.if_contains("id");
  return id && id->is_int64() ? id->get_int64() : -1;
}

bool is(const json::object& header, const char* member, std::string_view value) {
  const json::value* found = header.if_contains(member);
  return found && found->is_string() && found->get_string() == value;
}

Frame frame_of(json::object header) { return Frame{std::move(header), {}}; }

}  // namespace

// What the pump shares with its handle, which it may outlive by a moment.
struct RelayChannel::Core : std::enable_shared_from_this<Core> {
  Core(const asio::any_io_executor& executor, std::shared_ptr<Route> route_,
       const RelayState& state, std::uint64_t memory_, LinkPatience patience_)
      : route(std::move(route_)),
        patience(patience_),
        memory(memory_),
        epoch(state.epoch),
        sent(state.sent.value_or(0)),
        after(sent > 0 ? state.last : 0),
        wanted(sent == 0),
        work(executor),
        arrived(executor),
        taken(executor),
        pumping(executor),
        signals(executor) {}

  static awaitable<void> pump(std::shared_ptr<Core> self);
  static awaitable<void> signal(std::shared_ptr<Core> self, std::string what);

  awaitable<void> exchange();
  awaitable<std::unique_ptr<RelayAnswer>> ask();
  awaitable<void> read(RelayAnswer& answer);
  awaitable<void> until_work();
  awaitable<void> refused(const Refusal& refusal);
  awaitable<void> trouble(const std::string& what);
  awaitable<void> mend();
  void renew(const RelayState& state);
  bool take(Record record);
  void put(KernelEvent event);
  void text(bool is_stderr, std::string bytes);
  void answer_for_lost();
  void end(Exit how);
  std::optional<KernelEvent> pop();

  std::shared_ptr<Route> route;
  LinkPatience patience;
  std::uint64_t memory;

  std::string epoch;
  std::int64_t sent;               // frames that the kernel was given
  std::int64_t after;              // the last record that we have
  std::deque<std::string> frames;  // for the kernel; the first one may have arrived already
  bool wanted;  // an answer, even if there is no frame: the kernel may be at work
  std::optional<std::int64_t> cell;  // that has not ended
  bool early = false;                // what comes was printed before the frame was sent

  std::deque<KernelEvent> events;
  std::size_t held = 0;
  bool broken = false;  // a Violation was given out
  bool closed = false;  // nothing more comes
  bool killed = false;
  Exit how;  // once closed
  std::uint64_t kills = 0;

  int failures = 0;  // in a row
  steady_clock::time_point contact = steady_clock::now();

  async::Changed work, arrived, taken;
  async::TaskGroup pumping, signals;
};

// ---- what comes

void RelayChannel::Core::put(KernelEvent event) {
  held += size_of(event);
  events.push_back(std::move(event));
  arrived.notify();
}

void RelayChannel::Core::text(bool is_stderr, std::string bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += kPiece)
    put(StreamBytes{is_stderr, bytes.substr(at, kPiece), early});
}

std::optional<KernelEvent> RelayChannel::Core::pop() {
  if (events.empty()) return std::nullopt;
  KernelEvent event = std::move(events.front());
  events.pop_front();
  held -= size_of(event);
  taken.notify();
  return event;
}

void RelayChannel::Core::end(Exit exit) {
  if (closed) return;
  how = std::move(exit);
  closed = true;
  frames.clear();
  put(Closed());
  work.notify();
}

// True for the last one of an answer.
bool RelayChannel::Core::take(Record record) {
  using Is = Record::Is;
  if (record.is == Is::end) {
    if (record.why == "done") wanted = false;
    if (record.why == "done" && cell) answer_for_lost();
    return true;
  }
  if (record.is == Is::alive || record.seq <= after) return false;
  after = record.seq;
  if (broken && record.is != Is::exit) return false;
  switch (record.is) {
    case Is::text:
      text(record.is_stderr, std::move(record.frame.payload));
      break;
    case Is::frame:
      early = false;
      if (is(record.frame.header, "ev", "done") && cell == id_of(record.frame.header)) cell.reset();
      put(std::move(record.frame));
      break;
    case Is::sent:
      early = false;
      break;
    case Is::dropped:
      text(false, "[" + std::to_string(record.count) + " bytes were printed before this]\n");
      break;
    case Is::violation:
      broken = true;
      put(Violation{std::move(record.why)});
      break;
    case Is::exit: {
      kills += record.count;
      int status = record.signal ? *record.signal : record.code.value_or(0) << 8;
      Exit exit = describe_exit(status, record.count > 0, memory);
      if (!record.signal && !record.code) exit.cause = "it ended while it was out of reach";
      end(std::move(exit));
      break;
    }
    default:
      break;
  }
  return false;
}

// The cell has ended, and what it said went with a relay that died: nothing more comes of it.
void RelayChannel::Core::answer_for_lost() {
  json::object error, done;
  error["ev"] = "error";
  error["id"] = *cell;
  error["name"] = "OutcomeUnknown";
  error["value"] =
      "the cell has ended, but its result was lost on the way from its sandbox. Variables are "
      "kept; "
      "it was not run again";
  error["traceback"] = json::array();
  done["ev"] = "done";
  done["id"] = *cell;
  done["status"] = "error";
  done["execution_count"] = 0;
  cell.reset();
  put(frame_of(std::move(error)));
  put(frame_of(std::move(done)));
}

// ---- how it comes

awaitable<void> RelayChannel::Core::pump(std::shared_ptr<Core> self) {
  try {
    for (;;) {
      while (!self->closed && self->frames.empty() && !self->wanted) co_await self->work.wait();
      if (self->closed) co_return;
      co_await self->exchange();
    }
  } catch (const boost::system::system_error&) {  // we are cancelled
  } catch (const std::exception& defect) {
    spdlog::error("the link to a kernel at PandaStack failed: {}", defect.what());
    Exit exit;
    exit.cause = "an internal error of the server; its log says more";
    exit.unreachable = true;
    self->end(std::move(exit));
  }
}

awaitable<std::unique_ptr<RelayAnswer>> RelayChannel::Core::ask() {
  std::string target = "/exchange?epoch=" + epoch + "&after=" + std::to_string(after);
  if (!frames.empty()) target += "&send=" + std::to_string(sent + 1);
  target += "&until=done&limit=" + std::to_string(kExchange.count());
  std::string body = frames.empty() ? std::string() : frames.front();
  milliseconds limit = kExchange + kExchangeSlack;
  co_return co_await route->ask("POST", std::move(target), std::move(body), limit);
}

// One request. Whatever becomes of it, it may be made again.
awaitable<void> RelayChannel::Core::exchange() {
  bool with_frame = !frames.empty();
  wanted = true;
  if (failures == 0) contact = steady_clock::now();
  std::optional<Refusal> refusal;
  std::string problem;
  try {
    auto answer = co_await ask();
    if (closed) co_return;
    if (with_frame) frames.pop_front();
    if (with_frame) ++sent;
    co_await read(*answer);
  } catch (const Refusal& said) {
    refusal.emplace(said);
  } catch (const Error& failure) {
    problem = failure.what();
  }
  if (closed) co_return;
  if (refusal) co_await refused(*refusal);
  if (!problem.empty()) co_await trouble(problem);
}

awaitable<void> RelayChannel::Core::until_work() {
  while (!closed && frames.empty()) co_await work.wait();
}

// Until its end, or until there is a frame: then the next request takes over, from `after` on.
awaitable<void> RelayChannel::Core::read(RelayAnswer& answer) {
  FrameReader reader;
  for (;;) {
    auto stop = until_work();
    auto reading = answer.read();
    auto piece = co_await async::unless(std::move(stop), std::move(reading));
    if (!piece) co_return;
    if (!*piece) throw Error(Failure::cut, Outcome::unknown, "the relay's answer was cut off");
    failures = 0;
    contact = steady_clock::now();
    reader.append(**piece);
    while (auto item = reader.take()) {
      std::string wrong;
      bool last = false;
      try {
        if (auto* violation = std::get_if<Violation>(&*item))
          wrong = violation->what;
        else
          last = take(read_record(std::move(std::get<Frame>(*item))));
      } catch (const schemas::DecodeError& malformed) {
        wrong = malformed.what();
      }
      if (!wrong.empty() && !broken) put(Violation{"something else than records: " + wrong});
      if (!wrong.empty()) broken = true;
      if (!wrong.empty() || last || closed) co_return;
    }
    while (held > kHeld && !closed) co_await taken.wait();
  }
}

// ---- what goes wrong

awaitable<void> RelayChannel::Core::refused(const Refusal& refusal) {
  const std::string& reason = refusal.reason;
  if (reason == "epoch" && refusal.state && refusal.state->epoch != epoch) {
    renew(*refusal.state);
  } else if (reason == "exited") {
    frames.clear();  // the next answer says how
  } else if (reason == "not_connected") {
    if (steady_clock::now() - contact > patience.lost) co_await trouble(refusal.what());
    if (failures == 0) ++failures;  // `contact` stands still
    if (!closed) co_await async::sleep_for(kUnconnected);
  } else if (reason == "not_reading" && !broken) {
    broken = true;
    put(Violation{"nothing, and does not read what it is sent"});
  } else if (reason == "gap" || reason == "conflict") {
    Exit exit;
    exit.cause = "something else has spoken to it meanwhile";
    exit.unreachable = true;
    end(std::move(exit));
  } else {
    co_await trouble(refusal.what());
  }
}

awaitable<void> RelayChannel::Core::trouble(const std::string& what) {
  ++failures;
  spdlog::info("no answer from a kernel at PandaStack, attempt {}: {}", failures, what);
  if (steady_clock::now() - contact > patience.lost) {
    Exit exit;
    exit.cause = "the connection to its sandbox was lost (" + what + ")";
    exit.unreachable = true;
    end(std::move(exit));
    co_return;
  }
  auto pause = patience.first_pause * (1 << std::min(failures - 1, 8));
  co_await async::sleep_for(std::min(pause, patience.most_pause));
  if (failures >= 2 && !closed) co_await mend();
}

awaitable<void> RelayChannel::Core::mend() {
  std::optional<RelayState> state;
  try {
    state = co_await route->mend();
  } catch (const Error& failure) {  // the next attempt will say so, too
    spdlog::info("the relay of a kernel at PandaStack: {}", failure.what());
    co_return;
  }
  if (closed) co_return;
  if (!state) {
    Exit exit;
    exit.cause =
        "its sandbox is gone at PandaStack, with its files: it expired or was deleted there";
    exit.unreachable = true;
    end(std::move(exit));
  } else if (state->epoch != epoch) {
    renew(*state);
  }
}

// Another relay has taken over the kernel, or another kernel has its place.
void RelayChannel::Core::renew(const RelayState& state) {
  if (state.sent && *state.sent < sent) {
    Exit exit;
    exit.cause = "it ended while it was out of reach";
    end(std::move(exit));
    return;
  }
  auto relay_of = [](const std::string& name) { return name.substr(0, name.find('-')); };
  if (relay_of(state.epoch) != relay_of(epoch)) after = 0;
  epoch = state.epoch;
  bool arrived_before = state.sent && !frames.empty() && *state.sent > sent;
  if (arrived_before) frames.pop_front();
  if (arrived_before) ++sent;
}

awaitable<void> RelayChannel::Core::signal(std::shared_ptr<Core> self, std::string what) {
  for (int i = 0; i < kSignalTries; ++i) {
    try {
      auto answer = co_await self->route->ask("POST", "/signal?what=" + what, "", kSignalLimit);
      co_await read_all(*answer, 4096);
      co_return;
    } catch (const Refusal&) {
      co_return;
    } catch (const Error& failure) {
      spdlog::info("a kernel at PandaStack cannot be told to {}: {}", what, failure.what());
    }
    co_await async::sleep_for(self->patience.first_pause);
  }
}

// ---- the handle

RelayChannel::RelayChannel(asio::any_io_executor executor, std::shared_ptr<Route> route,
                           const RelayState& state, std::uint64_t memory, LinkPatience patience)
    : core_(std::make_shared<Core>(executor, std::move(route), state, memory, patience)) {
  core_->pumping.spawn(Core::pump(core_));
}

RelayChannel::~RelayChannel() {
  let_go("its session was left");
  core_->signals.cancel();
}

void RelayChannel::let_go(std::string because) {
  if (core_->closed) return;
  Exit exit;
  exit.cause = std::move(because);
  core_->pumping.cancel();
  core_->end(std::move(exit));
}

awaitable<void> RelayChannel::settle(milliseconds limit) {
  auto core = core_;
  auto joining = core->signals.join();
  co_await async::within(limit, std::move(joining));
}

std::optional<KernelEvent> RelayChannel::poll() { return core_->pop(); }

awaitable<KernelEvent> RelayChannel::next() {
  auto core = core_;
  for (;;) {
    if (auto event = core->pop()) co_return std::move(*event);
    if (core->closed) co_return Closed();
    co_await core->arrived.wait();
  }
}

awaitable<void> RelayChannel::send(json::object header, std::string payload) {
  if (core_->closed)
    throw boost::system::system_error(asio::error::not_connected, "send to the kernel");
  if (is(header, "op", "execute")) core_->cell = id_of(header), core_->early = true;
  core_->frames.push_back(encode_frame(header, payload));
  core_->work.notify();
  co_return;
}

void RelayChannel::interrupt() {
  if (!core_->closed) core_->signals.spawn(Core::signal(core_, "interrupt"));
}

void RelayChannel::kill_children() {
  if (!core_->closed) core_->signals.spawn(Core::signal(core_, "kill_children"));
}

void RelayChannel::kill() {
  core_->killed = true;
  if (core_->closed) return;
  core_->wanted = true;  // to learn of its end
  core_->work.notify();
  core_->signals.spawn(Core::signal(core_, "kill"));
}

awaitable<Exit> RelayChannel::exit() {
  auto core = core_;
  auto deadline = steady_clock::now() + kExitLimit;
  while (!core->closed) {
    if (!core->killed) {
      co_await core->arrived.wait();
      continue;
    }
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left <= 0ms) {
      Exit unknown;
      unknown.cause = "killed, and its end is not known after 5 s";
      unknown.unreachable = true;
      core->end(std::move(unknown));
      break;
    }
    co_await core->arrived.wait(left);
  }
  co_return core->how;
}

std::uint64_t RelayChannel::memory_kills() { return core_->kills; }

}  // namespace sandbox::pandastack
