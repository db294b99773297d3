// Plays a transcript (README.md says how they read) over pipes or over HTTP:
//   play-transcripts stdio|http SCHEMAS TRANSCRIPT SERVER...

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tests/transcripts/runner/conformance.hpp"
#include "tests/transcripts/runner/http_server.hpp"
#include "tests/transcripts/runner/pattern.hpp"
#include "tests/transcripts/runner/script.hpp"
#include "tests/transcripts/runner/stdio_server.hpp"

namespace transcripts {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerLimit{60000};  // a first kernel, with sanitizers, on a busy machine
constexpr milliseconds kExitLimit{30000};    // to be reached by what hangs alone

struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class Player {
 public:
  Player(std::vector<Step> steps, const std::vector<std::string>& program, bool over_http,
         const std::filesystem::path& schemas)
      : steps_(std::move(steps)), conformance_(schemas) {
    if (over_http)
      server_ = std::make_unique<HttpServer>(command(program), environment());
    else
      server_ = std::make_unique<StdioServer>(command(program), environment());
  }

  // With `update`, expectations give way to what the server says; else throws Failure at the first
  // difference.
  void play(bool update) {
    update_ = update;
    for (at_ = 0; at_ < steps_.size(); ++at_) perform(steps_[at_]);
    server_->leave();
    while (auto message = receive(kExitLimit)) refuse_unexpected(*message);
    auto status = server_->wait(kExitLimit);
    if (!status) throw Failure("the server still runs 30 s after its client has left");
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
      case Step::Kind::stdio_only:
      case Step::Kind::option:
        break;
      case Step::Kind::send: {
        std::string line = filled_in(step.text, captures_);
        conformance_.client_sent(line);
        server_->send(line, kAnswerLimit);
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
    while (auto line = server_->receive(limit)) {
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
    step.raw = step.backend + "< " + with_placeholders(json::serialize(got), captures_);
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
    std::string line = "< " + with_placeholders(text, captures_);
    steps_.push_back({Step::Kind::expect, "", std::move(line), steps_.back().line, ""});
  }

  std::vector<Step> steps_;
  std::unique_ptr<Server> server_;
  Conformance conformance_;
  Captures captures_;
  std::optional<json::value> repeated_;
  std::size_t at_ = 0;
  bool update_ = false;
};

constexpr int kSkipped = 77;  // to ctest

// Why a transcript cannot be played over HTTP; empty if it can.
std::string stdio_only(const std::vector<Step>& steps) {
  for (const Step& step : steps)
    if (step.kind == Step::Kind::stdio_only) return step.text;
  return "";
}

int play(bool over_http, const std::filesystem::path& schemas, const std::filesystem::path& script,
         std::vector<std::string> program) {
  const char* backend = std::getenv("PYKEEP_BACKEND");  // the server reads it, too
  std::vector<Step> steps = read_script(script, backend ? backend : "local");
  std::string reason = stdio_only(steps);
  if (over_http && !reason.empty()) {
    std::printf("skipped: over stdio only: %s\n", reason.c_str());
    return kSkipped;
  }
  if (over_http) program.insert(program.end(), {"http", "--listen", "127.0.0.1:0"});
  bool update = std::getenv("UPDATE_GOLDEN") && !over_http;
  Player player(std::move(steps), program, over_http, schemas);
  try {
    player.play(update);
    if (update) write_script(script, player.steps());
    return 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s:%d: %s\n", script.c_str(), player.line(), failure.what());
    return 1;
  }
}

}  // namespace

}  // namespace transcripts

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() < 4 || (words[0] != "stdio" && words[0] != "http")) {
    std::fprintf(stderr,
                 "usage: play-transcripts stdio|http SCHEMAS TRANSCRIPT SERVER [OPTION...]\n");
    return 2;
  }
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return transcripts::play(words[0] == "http", words[1], words[2],
                             {words.begin() + 3, words.end()});
  } catch (const std::exception& problem) {
    std::fprintf(stderr, "%s: %s\n", words[2].c_str(), problem.what());
    return 2;
  }
}
