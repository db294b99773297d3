#include "app/audit.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "tools/identifiers.hpp"
#include "tools/render.hpp"
#include "transport/log.hpp"

namespace app {

namespace json = boost::json;

namespace {

std::string line_of(const tools::ExecutionReport& report) {
  json::object line;
  line["time"] = transport::time_text(std::chrono::system_clock::now());
  line["principal"] = report.principal;
  line["session"] = report.session;
  line["execution"] = report.execution;
  line["code_sha256"] = tools::hash_of(report.code);
  line["duration_ms"] = report.duration.count();
  line["outcome"] = tools::status_name(report.status);
  if (!report.cause.empty()) line["cause"] = report.cause;
  return json::serialize(line) + "\n";
}

}  // namespace

Audit::Audit(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
             std::filesystem::path file)
    : pool_(pool),
      file_(std::filesystem::absolute(file)),
      changed_(executor),
      fd_(open_file(file_)) {
  if (fd_ < 0) throw std::runtime_error(file_.string() + ": " + std::strerror(errno));
}

Audit::~Audit() {
  account(waiting_, write(waiting_, false));
  close(fd_);
}

// -1 and errno. A pipe or a device in its place would make a writer wait: refused.
int Audit::open_file(const std::filesystem::path& file) {
  int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  int fd = open(file.c_str(), flags, S_IRUSR | S_IWUSR);
  struct stat status {};
  if (fd < 0 || (fstat(fd, &status) == 0 && S_ISREG(status.st_mode))) return fd;
  close(fd);
  errno = EINVAL;
  return -1;
}

void Audit::execution_ended(const tools::ExecutionReport& report) {
  if (waiting_.size() >= kMaxWaiting) {
    ++lost_;
    return;
  }
  waiting_.push_back(line_of(report));
  changed_.notify();
}

void Audit::reopen() {
  reopen_ = true;
  changed_.notify();
}

async::awaitable<void> Audit::run() {
  for (;;) {
    while (waiting_.empty() && !reopen_) co_await changed_.wait();
    Lines lines = std::exchange(waiting_, {});
    bool reopen = std::exchange(reopen_, false);
    auto work = [this, &lines, reopen] { return write(lines, reopen); };
    Wrote wrote = co_await async::on_pool(pool_, work);
    account(lines, wrote);
  }
}

Audit::Wrote Audit::write(const Lines& lines, bool reopen) {
  if (reopen) {
    int fd = open_file(file_);
    if (fd < 0)
      spdlog::warn("{}: {}; the file open before is used", file_.string(), std::strerror(errno));
    if (fd >= 0) close(std::exchange(fd_, fd));
    if (fd >= 0) torn_ = false;
  }
  Wrote wrote;
  for (const std::string& line : lines) {
    std::string whole = torn_ ? "\n" + line : line;
    ssize_t size = ::write(fd_, whole.data(), whole.size());
    if (size == static_cast<ssize_t>(whole.size()))
      ++wrote.lines;
    else
      wrote.failure = size < 0 ? errno : ENOSPC;
    if (size > 0) torn_ = size != static_cast<ssize_t>(whole.size());
  }
  return wrote;
}

void Audit::account(const Lines& lines, const Wrote& wrote) {
  lost_ += lines.size() - wrote.lines;
  if (!wrote.failure) {
    if (!lines.empty() && std::exchange(warned_, false))
      spdlog::warn("{}: written again; lines lost so far: {}", file_.string(), lost_);
  } else if (!std::exchange(warned_, true)) {
    spdlog::warn("{}: {}: lines are lost until it can be written again", file_.string(),
                 std::strerror(wrote.failure));
  }
}

}  // namespace app
