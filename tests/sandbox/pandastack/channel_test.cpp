#include "sandbox/pandastack/channel.hpp"

#include <doctest/doctest.h>

#include <deque>
#include <functional>

#include "sandbox/frames.hpp"
#include "sandbox/pandastack/errors.hpp"
#include "tests/sandbox/fake_kernel.hpp"

// The kernel link over a relay that answers as its test says.

namespace sandbox::pandastack {
namespace {

using namespace std::chrono_literals;

std::string record(std::string_view header, std::string_view payload = {}) {
  return encode_frame(object(header), payload);
}

struct Answered {
  std::vector<std::string> pieces;
  bool cut = false;                                   // the connection ends after them
  std::function<awaitable<void>()> before_last = {};  // what happens before the last one comes
};
struct Failed {};  // whether it arrived is not known
using Reply = std::variant<Answered, Failed, Refusal>;

class Body final : public RelayAnswer {
 public:
  explicit Body(Answered answer)
      : pieces_(answer.pieces.begin(), answer.pieces.end()),
        cut_(answer.cut),
        before_last_(std::move(answer.before_last)) {}
  awaitable<std::optional<std::string>> read() override {
    if (pieces_.empty() && cut_) throw Error(Failure::cut, Outcome::unknown, "cut");
    if (pieces_.empty()) co_return std::nullopt;
    if (pieces_.size() == 1 && before_last_) co_await before_last_();
    std::string piece = pieces_.front();
    pieces_.pop_front();
    co_return piece;
  }

 private:
  std::deque<std::string> pieces_;
  bool cut_;
  std::function<awaitable<void>()> before_last_;
};

struct Script final : Route {
  awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                              std::string body,
                                              std::chrono::milliseconds) override {
    std::string line = method + " " + target.substr(0, target.find("&until"));
    asked.push_back(line + (body.empty() ? "" : " +frame"));
    if (replies.empty() && always) replies.push_back(*always);
    if (replies.empty()) throw Error(Failure::no_connection, Outcome::refused, "nobody there");
    Reply reply = replies.front();
    replies.pop_front();
    if (auto* answer = std::get_if<Answered>(&reply)) co_return std::make_unique<Body>(*answer);
    if (auto* refusal = std::get_if<Refusal>(&reply)) throw std::move(*refusal);
    throw Error(Failure::cut, Outcome::unknown, "cut");
  }
  awaitable<std::optional<RelayState>> mend() override {
    ++mended;
    co_return mends_to;
  }

  std::deque<Reply> replies;
  std::optional<Reply> always;  // when there is none of these
  std::vector<std::string> asked;
  int mended = 0;
  std::optional<RelayState> mends_to;
};

RelayState state(std::int64_t sent, std::int64_t last = 0, std::string epoch = "a-1") {
  RelayState made;
  made.epoch = std::move(epoch);
  made.port = 1;
  made.connected = true;
  made.sent = sent;
  made.last = last;
  return made;
}

Refusal other_epoch(RelayState now) {
  Refusal refusal(409, "epoch", "another epoch");
  refusal.state = std::move(now);
  return refusal;
}

// A kernel of which one frame (a `resumed`) was delivered, in the middle of a cell's life.
struct Desk {
  explicit Desk(LinkPatience patience = {1ms, 5ms, 2s}) : patience_(patience) {}
  ~Desk() {
    channel.reset();
    io.restart();
    io.run_for(50ms);
  }
  void begin(RelayState now = state(1, 7)) {
    channel = std::make_unique<RelayChannel>(io.get_executor(), route, now, 1 << 30, patience_);
  }
  void execute(int id) {
    run_to_end(io, channel->send(object(R"({"op":"execute","id":)" + std::to_string(id) + "}")));
  }
  // Time for a dozen steps that wait for the one before, however late each of them is.
  void settle() {
    for (int i = 0; i < 12; ++i) let_run(io, 5ms);
  }
  // What comes until nothing more does: "text", "(early)", "ev", "closed".
  std::string story() {
    settle();
    std::string text;
    while (auto event = channel->poll()) {
      if (auto* piece = std::get_if<StreamBytes>(&*event))
        text += piece->bytes + (piece->is_early ? "(early) " : " ");
      else if (auto* frame = std::get_if<Frame>(&*event))
        text += std::string(frame->header.at("ev").as_string()) + " ";
      else
        text += std::holds_alternative<Violation>(*event) ? "violation " : "closed ";
    }
    return text;
  }

  boost::asio::io_context io{1};
  std::shared_ptr<Script> route = std::make_shared<Script>();
  std::unique_ptr<RelayChannel> channel;

 private:
  LinkPatience patience_;
};

const std::string kBefore = record(R"({"seq":8,"is":"stdout"})", "thread");
const std::string kSent = record(R"({"seq":9,"is":"sent","number":2})");
const std::string kStarted =
    record(R"({"seq":10,"is":"frame","header":{"ev":"started","id":5,"execution_count":1}})");
const std::string kText = record(R"({"seq":11,"is":"stdout"})", "hello");
const std::string kDone =
    record(R"({"seq":12,"is":"frame","header":{"ev":"done","id":5,"status":"ok"}})");
const std::string kEnd = record(R"({"seq":12,"is":"end","why":"done"})");

TEST_CASE("a cell is one request, and none is made between cells") {
  Desk desk;
  desk.begin();
  CHECK(desk.story() == "");
  CHECK(desk.route->asked.empty());
  desk.route->replies.push_back(
      Answered{{kBefore + kSent + kStarted, kText + kDone.substr(0, 5), kDone.substr(5) + kEnd}});
  desk.execute(5);
  CHECK(desk.story() == "thread(early) started hello done ");
  CHECK(desk.route->asked ==
        std::vector<std::string>{"POST /exchange?epoch=a-1&after=7&send=2 +frame"});
}

TEST_CASE("the end of what was before a cell is not the end of the cell") {
  Desk desk;
  auto first_cell = [&] { return desk.channel->send(object(R"({"op":"execute","id":5})")); };
  Answered start{{record(R"({"seq":1,"is":"frame","header":{"ev":"ready"}})"),
                  record(R"({"seq":1,"is":"end","why":"done"})")}};
  start.before_last = first_cell;
  std::string sent = record(R"({"seq":9,"is":"sent","number":1})");
  desk.route->replies = {start, Answered{{sent + kStarted + kText, kDone + kEnd}}};
  desk.begin(state(0));
  CHECK(desk.story() == "ready started hello done ");
  CHECK(desk.route->asked ==
        std::vector<std::string>{"POST /exchange?epoch=a-1&after=0",
                                 "POST /exchange?epoch=a-1&after=1&send=1 +frame"});
}

TEST_CASE("a connection that is lost is resumed, and the frame is delivered once") {
  Desk desk;
  desk.begin();
  SUBCASE("in the middle of the answer") {
    desk.route->mends_to = state(2, 12);
    desk.route->replies = {Answered{{kBefore + kSent + kStarted}, true}, Failed{},
                           Answered{{kStarted + kText + kDone + kEnd}}};
    desk.execute(5);
    CHECK(desk.story() == "thread(early) started hello done ");
    CHECK(desk.route->asked ==
          std::vector<std::string>{"POST /exchange?epoch=a-1&after=7&send=2 +frame",
                                   "POST /exchange?epoch=a-1&after=10",
                                   "POST /exchange?epoch=a-1&after=10"});
  }
  SUBCASE("before it: under the same number") {
    desk.route->replies = {Failed{}, Answered{{kSent + kStarted + kText + kDone + kEnd}}};
    desk.execute(5);
    CHECK(desk.story() == "started hello done ");
    CHECK(desk.route->asked[0] == desk.route->asked[1]);
  }
  SUBCASE("with an end that is missing") {
    desk.route->replies = {Answered{{kSent + kStarted + kText}}, Answered{{kDone + kEnd}}};
    desk.execute(5);
    CHECK(desk.story() == "started hello done ");
  }
}

TEST_CASE("another relay: what it says decides whether the frame is delivered again") {
  Desk desk;
  desk.begin();
  SUBCASE("it has not arrived") {
    desk.route->replies = {other_epoch(state(1, 0, "b-1")),
                           Answered{{kSent + kStarted + kDone + kEnd}}};
    desk.execute(5);
    CHECK(desk.story() == "started done ");
    CHECK(desk.route->asked.back() == "POST /exchange?epoch=b-1&after=0&send=2 +frame");
  }
  SUBCASE("it has, and what came of it is lost") {
    desk.route->replies = {other_epoch(state(2, 0, "b-1")),
                           Answered{{record(R"({"seq":0,"is":"end","why":"done"})")}}};
    desk.execute(5);
    CHECK(desk.story() == "error done ");
    CHECK(desk.route->asked.back() == "POST /exchange?epoch=b-1&after=0");
  }
  SUBCASE("the secret alone is another: the numbers go on") {
    desk.route->replies = {other_epoch(state(1, 7, "a-2")),
                           Answered{{kBefore + kSent + kStarted + kDone + kEnd}}};
    desk.execute(5);
    CHECK(desk.story() == "thread(early) started done ");
    CHECK(desk.route->asked.back() == "POST /exchange?epoch=a-2&after=7&send=2 +frame");
  }
  SUBCASE("another kernel: ours has ended") {
    desk.route->replies = {other_epoch(state(0, 0, "b-1"))};
    desk.execute(5);
    CHECK(desk.story() == "closed ");
  }
}

awaitable<void> how(RelayChannel& channel, Exit& exit) { exit = co_await channel.exit(); }

TEST_CASE("an end is told with its cause") {
  Desk desk;
  desk.begin();
  Exit exit;
  SUBCASE("by a signal") {
    desk.route->replies = {Answered{
        {kSent, record(R"({"seq":10,"is":"exit","code":null,"signal":11,"oom_kills":0})")}}};
    desk.execute(5);
    CHECK(desk.story() == "closed ");
    run_to_end(desk.io, how(*desk.channel, exit));
    CHECK(exit.cause == "SIGSEGV (segmentation fault)");
    CHECK_FALSE(exit.unreachable);
  }
  SUBCASE("for lack of memory") {
    desk.route->replies = {
        Answered{{record(R"({"seq":10,"is":"exit","code":null,"signal":9,"oom_kills":1})")}}};
    desk.execute(5);
    CHECK(desk.story() == "closed ");
    run_to_end(desk.io, how(*desk.channel, exit));
    CHECK(exit.cause == "killed: memory limit of 1 GiB reached");
  }
  SUBCASE("of the guest") {
    desk.execute(5);
    CHECK(desk.story() == "closed ");
    CHECK(desk.route->mended > 0);
    run_to_end(desk.io, how(*desk.channel, exit));
    CHECK(exit.unreachable);
  }
}

TEST_CASE("out of reach for too long is not an end") {
  Desk desk({1ms, 5ms, 20ms});
  desk.begin();
  desk.route->mends_to = state(1, 7);
  desk.execute(5);
  CHECK(desk.story() == "closed ");
  Exit exit;
  run_to_end(desk.io, how(*desk.channel, exit));
  CHECK(exit.unreachable);
}

TEST_CASE("answers that settle nothing are not asked for without a pause") {
  const Reply replies[] = {Answered{{record(R"({"seq":7,"is":"end","why":"limit"})")}},
                           Answered{{"no record at all"}}, Refusal(409, "exited", "gone")};
  for (const Reply& reply : replies) {
    Desk desk({20ms, 50ms, 2s});
    desk.begin();
    desk.route->always = reply;
    desk.execute(5);
    auto began = std::chrono::steady_clock::now();
    desk.story();
    auto pauses = (std::chrono::steady_clock::now() - began) / 20ms;
    CHECK(desk.route->asked.size() >= 2);
    CHECK(desk.route->asked.size() <= static_cast<std::size_t>(pauses) + 2);
  }
}

TEST_CASE("a relay that is silent about the end of a kernel that was killed is not waited for") {
  Desk desk({1ms, 5ms, 30ms});
  desk.begin();
  desk.route->always = Answered{{record(R"({"seq":7,"is":"end","why":"limit"})")}};
  desk.execute(5);
  CHECK(desk.story() == "");
  desk.channel->kill();
  CHECK(desk.story() == "closed ");
}

TEST_CASE("what nobody takes does not pile up, whatever part of a frame is large") {
  Desk desk;
  desk.begin();
  Answered answer;
  for (int i = 0; i < 20; ++i) {
    std::string pad(500'000, 'p'), seq = std::to_string(8 + i);
    answer.pieces.push_back(
        record(R"({"is":"frame","seq":)" + seq + R"(,"header":{"ev":"x","pad":")" + pad + "\"}}"));
  }
  desk.route->replies = {answer};
  desk.execute(5);
  desk.settle();
  int waiting = 0;
  while (desk.channel->poll()) ++waiting;
  CHECK(waiting >= 2);
  CHECK(waiting <= 4);
}

TEST_CASE("what is no record, or no frame, is a violation") {
  for (std::string bytes :
       {std::string("\xff\xff\xff\xff\0\0\0\0", 8), record(R"({"is":"stdout"})"),
        record(R"({"seq":9223372036854775807,"is":"stdout"})"),
        record(R"({"seq":9,"is":"nonsense"})"), record(R"({"seq":9,"is":"frame","header":[]})"),
        record(R"({"seq":9,"is":"violation","what":"x"})")}) {
    CAPTURE(bytes);
    Desk desk;
    desk.begin();
    desk.route->replies = {Answered{{bytes}}};
    desk.execute(5);
    CHECK(desk.story().starts_with("violation "));
  }
}

TEST_CASE("a kernel that is let go of is told nothing more") {
  Desk desk;
  desk.begin();
  desk.channel->let_go("left");
  desk.channel->kill();
  desk.channel->interrupt();
  CHECK(desk.story() == "closed ");
  CHECK(desk.route->asked.empty());
  CHECK_THROWS(run_to_end(desk.io, desk.channel->send(object(R"({"op":"shutdown"})"))));
}

}  // namespace
}  // namespace sandbox::pandastack
