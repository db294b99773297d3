#include "sandbox/pandastack/pump.hpp"

#include <spdlog/spdlog.h>

#include "sandbox/pandastack/errors.hpp"
#include "schemas/codec.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kExchange = 600s;  // of one answer; a longer cell has several
constexpr auto kExchangeSlack = 20s;
constexpr auto kSignalLimit = 5s;
constexpr int kSignalTries = 3;
constexpr auto kUnconnected = 200ms;
constexpr milliseconds kWordLimit = 10s;

// A relay that never tells of a kernel's end holds up nobody: it may be the guest's own.
awaitable<void> end_without_word(std::shared_ptr<Pump> pump, milliseconds limit) {
  const auto deadline = steady_clock::now() + limit;
  while (!pump->inbox.is_closed()) {
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left > 0ms)
      co_await pump->inbox.arrival(left);
    else
      pump->lose("killed, and nothing tells of its end");
  }
}

}  // namespace

Pump::Pump(asio::any_io_executor executor, std::shared_ptr<Route> route, const RelayState& state,
           std::uint64_t memory, LinkPatience patience)
    : inbox(executor, state.sent.value_or(0) > 0 ? state.last : 0, memory),
      route_(std::move(route)),
      patience_(patience),
      epoch_(state.epoch),
      sent_(state.sent.value_or(0)),
      wanted_(sent_ == 0),
      work_(executor),
      pumping_(executor),
      signals_(executor) {}

void Pump::start(std::shared_ptr<Pump> self) { self->pumping_.spawn(run(self)); }

void Pump::signal(std::shared_ptr<Pump> self, std::string what) {
  if (self->inbox.is_closed()) return;
  if (what == "kill")
    self->signals_.spawn(end_without_word(self, std::min(self->patience_.lost, kWordLimit)));
  self->signals_.spawn(bring(self, std::move(what)));
}

void Pump::send(std::string frame) {
  frames_.push_back(std::move(frame));
  work_.notify();
}

void Pump::look() {
  wanted_ = true;
  work_.notify();
}

void Pump::end(Exit how) {
  frames_.clear();
  inbox.close(std::move(how));
  work_.notify();
}

void Pump::lose(std::string because) {
  Exit how;
  how.cause = std::move(because);
  how.unreachable = true;
  end(std::move(how));
}

awaitable<void> Pump::run(std::shared_ptr<Pump> self) {
  try {
    for (;;) {
      while (!self->inbox.is_closed() && self->frames_.empty() && !self->wanted_)
        co_await self->work_.wait();
      if (self->inbox.is_closed()) co_return;
      const std::size_t queued = self->frames_.size();
      const std::int64_t sent = self->sent_;
      const auto began = steady_clock::now();
      co_await self->exchange();
      const auto delivered = static_cast<std::size_t>(self->sent_ - sent);
      const bool is_new = self->frames_.size() + delivered > queued;
      const bool more = !self->frames_.empty() && (delivered > 0 || is_new);
      const bool at_once = steady_clock::now() - began < self->patience_.first_pause;
      // Answers that end at once and settle nothing: a guest could have us ask without a pause.
      const bool in_vain = self->wanted_ && !more && at_once && !self->inbox.is_closed();
      if (in_vain) co_await async::sleep_for(self->patience_.first_pause);
    }
  } catch (const boost::system::system_error&) {  // we are cancelled
  } catch (const std::exception& defect) {
    spdlog::error("the link to a kernel at PandaStack failed: {}", defect.what());
    self->lose("an internal error of the server; its log says more");
  }
}

awaitable<std::unique_ptr<RelayAnswer>> Pump::ask() {
  std::string target = "/exchange?epoch=" + epoch_ + "&after=" + std::to_string(inbox.after());
  if (!frames_.empty()) target += "&send=" + std::to_string(sent_ + 1);
  target += "&until=done&limit=" + std::to_string(kExchange.count());
  std::string body = frames_.empty() ? std::string() : frames_.front();
  milliseconds limit = kExchange + kExchangeSlack;
  co_return co_await route_->ask("POST", std::move(target), std::move(body), limit);
}

// One request. Whatever becomes of it, it may be made again.
awaitable<void> Pump::exchange() {
  bool with_frame = !frames_.empty();
  wanted_ = true;
  if (failures_ == 0) contact_ = steady_clock::now();
  std::optional<Refusal> refusal;
  std::string problem;
  try {
    auto answer = co_await ask();
    if (inbox.is_closed()) co_return;
    if (with_frame) frames_.pop_front();
    if (with_frame) ++sent_;
    co_await read(*answer);
  } catch (const Refusal& said) {
    refusal.emplace(said);
  } catch (const Error& failure) {
    problem = failure.what();
  }
  if (inbox.is_closed()) co_return;
  if (refusal) co_await refused(*refusal);
  if (!problem.empty()) co_await trouble(problem);
}

awaitable<void> Pump::until_work() {
  while (!inbox.is_closed() && frames_.empty()) co_await work_.wait();
}

// Until its end, or until there is a frame: then the next request takes over, from where this one
// has come to.
awaitable<void> Pump::read(RelayAnswer& answer) {
  FrameReader reader;
  for (;;) {
    auto stop = until_work();
    auto reading = answer.read();
    auto piece = co_await async::unless(std::move(stop), std::move(reading));
    if (!piece) co_return;
    if (!*piece) throw Error(Failure::cut, Outcome::unknown, "the relay's answer was cut off");
    failures_ = 0;
    contact_ = steady_clock::now();
    reader.append(**piece);
    while (auto item = reader.take())
      if (take(std::move(*item)) || inbox.is_closed()) co_return;
    co_await inbox.room();
  }
}

// True for the last one of an answer.
bool Pump::take(std::variant<Frame, Violation> item) {
  try {
    if (auto* violation = std::get_if<Violation>(&item))
      throw schemas::DecodeError(violation->what);
    Record record = read_record(std::move(std::get<Frame>(item)));
    if (record.is != Record::Is::end) {
      inbox.take(std::move(record));
      return false;
    }
    if (record.why == "done") wanted_ = false;
    // With a frame still to be sent it is the end of what was before: `ready`, or the last cell.
    if (record.why == "done" && frames_.empty()) inbox.end_cell();
  } catch (const schemas::DecodeError& malformed) {
    inbox.violation(std::string("something else than records: ") + malformed.what());
  }
  return true;
}

// ---- what goes wrong

awaitable<void> Pump::refused(const Refusal& refusal) {
  const std::string& reason = refusal.reason;
  if (reason == "epoch" && refusal.state && refusal.state->epoch != epoch_) {
    renew(*refusal.state);
  } else if (reason == "exited") {
    frames_.clear();  // the next answer says how
  } else if (reason == "not_connected") {
    if (steady_clock::now() - contact_ > patience_.lost) co_await trouble(refusal.what());
    if (failures_ == 0) ++failures_;  // `contact_` stands still
    if (!inbox.is_closed()) co_await async::sleep_for(kUnconnected);
  } else if (reason == "not_reading" && !inbox.is_broken()) {
    inbox.violation("nothing, and does not read what it is sent");
  } else if (reason == "gap" || reason == "conflict") {
    lose("something else has spoken to it meanwhile");
  } else {
    co_await trouble(refusal.what());
  }
}

awaitable<void> Pump::trouble(const std::string& what) {
  ++failures_;
  spdlog::info("no answer from a kernel at PandaStack, attempt {}: {}", failures_, what);
  if (steady_clock::now() - contact_ > patience_.lost) {
    lose("the connection to its sandbox was lost (" + what + ")");
    co_return;
  }
  auto pause = patience_.first_pause * (1 << std::min(failures_ - 1, 8));
  co_await async::sleep_for(std::min(pause, patience_.most_pause));
  if (failures_ >= 2 && !inbox.is_closed()) co_await mend();
}

awaitable<void> Pump::mend() {
  std::optional<RelayState> state;
  try {
    state = co_await route_->mend();
  } catch (const Error& failure) {  // the next attempt will say so, too
    spdlog::info("the relay of a kernel at PandaStack: {}", failure.what());
    co_return;
  }
  if (inbox.is_closed()) co_return;
  if (!state)
    lose("its sandbox is gone at PandaStack, with its files: it expired or was deleted there");
  else if (state->epoch != epoch_)
    renew(*state);
}

// Another relay has taken over the kernel, or another kernel has its place.
void Pump::renew(const RelayState& state) {
  if (state.sent && *state.sent < sent_) {
    Exit exit;
    exit.cause = "it ended while it was out of reach";
    end(std::move(exit));
    return;
  }
  auto relay_of = [](const std::string& name) { return name.substr(0, name.find('-')); };
  if (relay_of(state.epoch) != relay_of(epoch_)) inbox.restart();
  epoch_ = state.epoch;
  bool arrived_before = state.sent && !frames_.empty() && *state.sent > sent_;
  if (arrived_before) frames_.pop_front();
  if (arrived_before) ++sent_;
}

awaitable<void> Pump::bring(std::shared_ptr<Pump> self, std::string what) {
  for (int i = 0; i < kSignalTries; ++i) {
    try {
      auto answer = co_await self->route_->ask("POST", "/signal?what=" + what, "", kSignalLimit);
      co_await read_all(*answer, 4096);
      co_return;
    } catch (const Refusal&) {
      co_return;
    } catch (const Error& failure) {
      spdlog::info("a kernel at PandaStack cannot be told to {}: {}", what, failure.what());
    }
    co_await async::sleep_for(self->patience_.first_pause);
  }
}

}  // namespace sandbox::pandastack
