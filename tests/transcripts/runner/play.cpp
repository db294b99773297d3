// Plays transcripts (README.md says how they read): play-transcripts SCHEMAS TRANSCRIPT SERVER...

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/transcripts/runner/conformance.hpp"
#include "tests/transcripts/runner/pattern.hpp"
#include "tests/transcripts/runner/script.hpp"
#include "tests/transcripts/runner/server_process.hpp"

namespace transcripts {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerLimit{60000};  // a first kernel, with sanitizers, on a busy machine
constexpr milliseconds kExitLimit{2000};

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Player {
 public:
  Player(std::vector<Step> steps, const std::vector<std::string>& server,
         const std::filesystem::path& schemas)
      : steps_(std::move(steps)), server_(command(server), environment()), conformance_(schemas) {}

  // With `update`, expectations give way to what the server says; else throws Failure at the first
  // difference.
  void play(bool update) {
    update_ = update;
    for (at_ = 0; at_ < steps_.size(); ++at_) perform(steps_[at_]);
    server_.close_input();
    while (auto message = receive(kExitLimit)) refuse_unexpected(*message);
    auto status = server_.wait(kExitLimit);
    if (!status) throw Failure("the server still runs 2 s after its input has ended");
    if (*status != 0) throw Failure("the server ended with status " + std::to_string(*status));
  }

  const std::vector<Step>& steps() const { return steps_; }
  int line() const { return at_ < steps_.size() ? steps_[at_].line : steps_.back().line; }

 private:
  static bool is_assignment(const std::string& option) {
    return !option.starts_with("-") && option.find('=') != std::string::npos;
  }

  std::vector<std::string> command(std::vector<std::string> server) const {
    for (const Step& step : steps_) {
      if (step.kind != Step::Kind::option || is_assignment(step.text)) continue;
      std::istringstream words(step.text);
      for (std::string word; words >> word;) server.push_back(word);
    }
    return server;
  }

  std::vector<std::string> environment() const {
    std::vector<std::string> assignments;
    for (const Step& step : steps_)
      if (step.kind == Step::Kind::option && is_assignment(step.text))
        assignments.push_back(step.text);
    return assignments;
  }

  void perform(Step& step) {
    switch (step.kind) {
      case Step::Kind::prose:
      case Step::Kind::option:
        break;
      case Step::Kind::send: {
        std::string line = filled_in(step.text, captures_);
        conformance_.client_sent(line);
        server_.send(line, kAnswerLimit);
        break;
      }
      case Step::Kind::expect:
        expect(step);
        break;
      case Step::Kind::expect_any_order:
        expect_in_any_order();
        break;
      case Step::Kind::expect_repeated:
        repeated_ = json::parse(step.text);
        break;
      case Step::Kind::wait:
        std::this_thread::sleep_for(milliseconds(std::stoi(step.text)));
    }
  }

  // The next message that is not one of the repeated ones, checked against its schema.
  std::optional<json::value> receive(milliseconds limit) {
    while (auto line = server_.receive(limit)) {
      boost::system::error_code malformed;
      json::value message = json::parse(*line, malformed);
      if (malformed) throw Failure("the server wrote what is not JSON: " + *line);
      if (auto problem = conformance_.server_sent(message))
        throw Failure(*problem + "\n    in " + *line);
      if (!repeated_ || difference(*repeated_, message, captures_)) return message;
    }
    return std::nullopt;
  }

  json::value must_receive() {
    auto message = receive(kAnswerLimit);
    if (!message) throw Failure("no message came, or the server has ended");
    return *message;
  }

  void expect(Step& step) {
    json::value got = must_receive();
    repeated_.reset();
    auto problem = difference(json::parse(step.text), got, captures_);
    if (!problem) return;
    if (!update_) throw Failure(*problem + "\n    in " + json::serialize(got));
    step.raw = "< " + with_placeholders(json::serialize(got), captures_);
  }

  void expect_in_any_order() {
    std::size_t end = at_;
    while (end < steps_.size() && steps_[end].kind == Step::Kind::expect_any_order) ++end;
    std::set<std::size_t> open;
    for (std::size_t i = at_; i < end; ++i) open.insert(i);
    while (!open.empty()) {
      json::value got = must_receive();
      auto found = open.begin();
      while (found != open.end() && difference(json::parse(steps_[*found].text), got, captures_))
        ++found;
      if (found == open.end()) throw Failure("none of these: " + json::serialize(got));
      open.erase(found);
    }
    repeated_.reset();
    at_ = end - 1;
  }

  void refuse_unexpected(const json::value& message) {
    std::string text = json::serialize(message);
    if (!update_) throw Failure("an unexpected message at the end: " + text);
    steps_.push_back(
        {Step::Kind::expect, "", "< " + with_placeholders(text, captures_), steps_.back().line});
  }

  std::vector<Step> steps_;
  ServerProcess server_;
  Conformance conformance_;
  Captures captures_;
  std::optional<json::value> repeated_;
  std::size_t at_ = 0;
  bool update_ = false;
};

bool play(const std::filesystem::path& script, const std::filesystem::path& schemas,
          const std::vector<std::string>& server) {
  bool update = std::getenv("UPDATE_GOLDEN");
  Player player(read_script(script), server, schemas);
  try {
    player.play(update);
    if (update) write_script(script, player.steps());
    return true;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s:%d: %s\n", script.c_str(), player.line(), failure.what());
    return false;
  }
}

}  // namespace

}  // namespace transcripts

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: play-transcripts SCHEMAS TRANSCRIPT SERVER [ARGUMENT...]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return transcripts::play(argv[2], argv[1], {argv + 3, argv + argc}) ? 0 : 1;
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", argv[2], problem.what());
    return 2;
  }
}
