#include "tools/session_images.hpp"

#include <spdlog/spdlog.h>

#include "sandbox/remove_tree.hpp"
#include "sandbox/state_files.hpp"
#include "tools/identifiers.hpp"
#include "tools/text.hpp"

namespace tools {

namespace {

constexpr std::size_t kMaxLost = 20;
constexpr std::size_t kMaxLostText = 200;
constexpr std::size_t kShownLost = 5;
constexpr std::size_t kMaxBackground = 4'000;
constexpr int kCheckpointPause = 10;  // times as long as the last one took

}  // namespace

std::string after_execution(int number) {
  return number == 0 ? "before its first execution" : "after execution " + std::to_string(number);
}

std::string list_of(const std::vector<std::string>& lost) {
  std::string text;
  for (std::size_t i = 0; i < lost.size() && i < kShownLost; ++i)
    text += (i ? ", " : "") + one_line(lost[i]);
  if (lost.size() > kShownLost)
    text += ", and " + std::to_string(lost.size() - kShownLost) + " more";
  return text;
}

SessionImages::SessionImages(boost::asio::thread_pool& pool, sandbox::SessionStore& store,
                             sandbox::SessionLease& lease, CheckpointPolicy policy)
    : pool_(pool), store_(store), lease_(lease), policy_(policy) {}

bool SessionImages::current() const {
  return record() && record()->current && record()->generation == lease_.record.generation;
}

awaitable<sandbox::FreezeReport> SessionImages::take(sandbox::Sandbox& sandbox, int execution,
                                                     sandbox::FreezeOptions options) {
  auto before = record();
  int number = before ? before->number + 1 : 1;
  std::filesystem::path made = lease_.image(number);
  auto report = co_await sandbox.freeze(made, options);
  sandbox::ImageRecord image;
  image.number = number;
  image.generation = lease_.record.generation;
  image.execution = execution;
  image.current = !options.keep_running;
  image.bytes = report.bytes;
  for (std::size_t i = 0; i < report.lost.size() && i < kMaxLost; ++i)
    image.lost.emplace_back(first_characters(one_line(report.lost[i]), kMaxLostText));
  std::string printed = options.keep_running ? "" : valid_utf8(sandbox.background());
  if (!printed.empty()) image.background = last_characters(printed, kMaxBackground);
  auto seal = [&made] { return sandbox::fingerprint(made); };
  image.seal = co_await async::on_pool(pool_, seal);
  lease_.record.image = std::move(image);
  tried_ = std::chrono::steady_clock::now();
  cells_ = 0;
  work_ = work_.zero();
  bool saved = co_await save();  // until here the record names the image before
  auto remove = [this, &before] { sandbox::remove_tree(lease_.image(before->number)); };
  if (saved && before) co_await async::on_pool(pool_, remove);
  co_return report;
}

awaitable<void> SessionImages::check() const {
  auto read = [path = path()] { return sandbox::fingerprint(path); };
  std::string seal = co_await async::on_pool(pool_, read);
  if (seal.empty()) throw sandbox::ThawError("the image is not there any more.");
  if (seal != record()->seal)
    throw sandbox::ThawError("the image is damaged, or it is not the one of this session.");
}

awaitable<void> SessionImages::outdate() {
  cells_ = 0;
  work_ = work_.zero();
  if (!checkpoints()) {
    co_await drop();
    co_return;
  }
  lease_.record.image->current = false;
  lease_.record.image->background.reset();
  bool saved = co_await save();
  if (!saved) co_await drop();  // else it would be taken for the last state one day
}

awaitable<void> SessionImages::drop() {
  auto directory = record() ? path() : std::filesystem::path();
  lease_.record.image.reset();
  co_await save();  // first: an image that is named is whole
  if (directory.empty()) co_return;
  auto remove = [&directory] { sandbox::remove_tree(directory); };
  co_await async::on_pool(pool_, remove);
}

void SessionImages::worked(std::chrono::steady_clock::duration time) {
  ++cells_;
  work_ += time;
}

bool SessionImages::due() const {
  if (std::chrono::steady_clock::now() - tried_ < pause_) return false;
  return (policy_.cells > 0 && cells_ >= policy_.cells) ||
         (policy_.work.count() > 0 && work_ >= policy_.work);
}

void SessionImages::tried(std::chrono::steady_clock::duration time) {
  cells_ = 0;
  work_ = work_.zero();
  tried_ = std::chrono::steady_clock::now();
  pause_ = kCheckpointPause * time;
}

awaitable<bool> SessionImages::save() {
  lease_.record.used = now_seconds();
  auto write = [this] { store_.save(lease_); };
  try {
    co_await async::on_pool(pool_, write);
    co_return true;
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("session {}: {}", lease_.record.id, failure.what());
    co_return false;
  }
}

}  // namespace tools
