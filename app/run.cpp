#include <cstdio>
#include <fstream>
#include <iostream>
#include <sstream>

#include "app/commands.hpp"
#include "app/keep.hpp"
#include "tools/text.hpp"

namespace app {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using sandbox::Execution;
using sandbox::Output;

namespace {

constexpr const char* kPrincipal = "local";

std::string read_all(std::istream& in) {
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string code_of(const Options& options) {
  if (!options.code.empty()) return options.code;
  if (options.file == "-") return read_all(std::cin);
  std::ifstream file(options.file, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + options.file);
  return read_all(file);
}

std::string ending_of(const std::string& mime) {
  if (mime == "image/png") return ".png";
  if (mime == "image/jpeg") return ".jpg";
  return mime == "image/webp" ? ".webp" : "";
}

// Prints an execution's outputs as they come, and saves its images.
class Printer {
 public:
  explicit Printer(fs::path directory) : directory_(std::move(directory)) {
    fs::create_directories(directory_);
  }

  // The head of the outputs never changes; what stands behind a gap is only final at the end.
  void print(const Execution& execution) {
    for (; next_ < execution.outputs.size(); ++next_, printed_ = 0) {
      const Output& output = execution.outputs[next_];
      bool last = next_ + 1 == execution.outputs.size();
      if (std::holds_alternative<sandbox::Gap>(output.what) && !execution.finished()) return;
      std::visit([&](const auto& what) { write(what); }, output.what);
      if (last && !execution.finished()) return;
    }
  }

 private:
  void write(const sandbox::Text& text) {
    std::FILE* stream = text.stream == sandbox::StreamName::out ? stdout : stderr;
    std::fwrite(text.bytes.data() + printed_, 1, text.bytes.size() - printed_, stream);
    std::fflush(stream);
    printed_ = text.bytes.size();
  }

  void write(const sandbox::Display& display) {
    if (std::exchange(printed_, 1) != 0) return;
    for (const auto& binary : display.binary) {
      std::string ending = ending_of(binary.mime);
      if (ending.empty()) continue;
      fs::path path = next_free(ending);
      std::ofstream file(path, std::ios::binary);
      file << binary.bytes;
      if (!file.flush()) throw std::runtime_error("cannot write " + path.string());
      std::printf("[image: %s]\n", path.c_str());
      return;
    }
    const auto* plain = display.data.if_contains("text/plain");
    if (plain && plain->is_string())
      std::printf("%s\n", tools::plain_text(plain->get_string()).c_str());
  }

  // A chart of an earlier run stays.
  fs::path next_free(const std::string& ending) {
    fs::path path;
    do path = directory_ / ("pykeep-" + std::to_string(++images_) + ending);
    while (fs::exists(fs::symlink_status(path)));
    return path;
  }

  void write(const sandbox::PythonError& error) {
    if (std::exchange(printed_, 1) != 0) return;
    std::fflush(stdout);
    for (const std::string& line : error.traceback)
      std::fprintf(stderr, "%s\n", tools::plain_text(line).c_str());
  }

  void write(const sandbox::Gap& gap) {
    std::fprintf(stderr, "\n[... %s bytes left out ...]\n",
                 tools::with_thousands(gap.bytes).c_str());
  }

  fs::path directory_;
  std::size_t next_ = 0;
  std::size_t printed_ = 0;  // of the output at next_
  int images_ = 0;
};

int exit_code(const Execution& execution) {
  switch (execution.status) {
    case Execution::Status::ok:
      return 0;
    case Execution::Status::timed_out:
      return 124;  // as timeout(1) has it
    case Execution::Status::abandoned:
      return 2;
    default:
      return 1;
  }
}

bool misses_module(const Execution& execution) {
  if (execution.outputs.empty()) return false;
  const auto* error = std::get_if<sandbox::PythonError>(&execution.outputs.back().what);
  return error && error->name == "ModuleNotFoundError";
}

async::awaitable<void> run_code(Keep& keep, const Options& options, int& code) {
  tools::Sessions::Wish wish;
  auto session = co_await keep.sessions.create(kPrincipal, wish);
  tools::Cell cell;
  cell.code = code_of(options);
  cell.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(options.timeout * 1000));
  if (options.read_stdin) cell.stdin_text = read_all(std::cin);
  Printer printer(options.output_directory.empty() ? "." : options.output_directory);
  auto run = session->submit(std::move(cell));
  Execution& execution = *run->execution;
  while (!execution.finished()) {
    co_await execution.changed.wait();
    printer.print(execution);
  }
  printer.print(execution);
  for (const std::string& note : execution.notes) std::fprintf(stderr, "[%s]\n", note.c_str());
  if (!execution.cause.empty())
    std::fprintf(stderr, "pykeep: %s\n", tools::plain_text(execution.cause).c_str());
  if (session->record().python == "system" && misses_module(execution))
    std::fprintf(
        stderr,
        "pykeep: this is the system's Python and what it has; `pykeep template build` makes "
        "an environment with the usual packages\n");
  code = exit_code(execution);
  co_await keep.sessions.close(kPrincipal, session->handle());
}

async::awaitable<void> live(Keep& keep, const Options& options, int& code) {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    co_await run_code(keep, options, code);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pykeep: %s\n", failure.what());
  }
  co_await keep.sessions.shutdown();
}

}  // namespace

int run(const Options& options) {
  int code = 2;
  run_to_end(options, [&](Keep& keep) { return live(keep, options, code); });
  return code;
}

}  // namespace app
