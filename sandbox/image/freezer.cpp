#include "sandbox/image/freezer.hpp"

#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <memory>
#include <thread>

#include "sandbox/bounded_text.hpp"
#include "sandbox/image/descriptors.hpp"
#include "sandbox/image/image_file.hpp"
#include "sandbox/image/memory.hpp"
#include "sandbox/image/threads.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::image {

namespace {

using Clock = std::chrono::steady_clock;

// Shared memory is saved while the process stands still: more of it, and a fork saves no time.
constexpr std::uint64_t kMaxSharedForFork = 64 << 20;

std::int64_t now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

std::string joined(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 5;
  std::string all;
  for (std::size_t index = 0; index < texts.size() && index < kShown; ++index)
    all += (index ? "; " : "") + texts[index];
  if (texts.size() > kShown) all += "; and " + std::to_string(texts.size() - kShown) + " more";
  return all;
}

ImageFile open_template(const std::filesystem::path& image) try {
  return open_image(image);
} catch (const ThawError& error) {
  refuse("the template's image cannot be used: " + std::string(error.what()));
}

// A stopped copy of the process, gone when this is.
class Copy {
 public:
  Copy(Tracee& tracee, pid_t pid) : tracee_(tracee), pid_(pid) {}
  ~Copy() { end(); }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;
  void end() {
    if (pid_ > 0) tracee_.end_copy(pid_);
    pid_ = 0;
  }
  pid_t pid() const { return pid_; }

 private:
  Tracee& tracee_;
  pid_t pid_;
};

class Freeze {
 public:
  Freeze(pid_t pid, const std::filesystem::path& image, const FreezeRequest& request)
      : pid_(pid),
        request_(request),
        deadline_(Clock::now() + request.limit),
        writer_(image, request.max_bytes),
        root_(pid),
        advice_(read_advice(pid)) {}

  Frozen run() {
    open_base();
    std::unique_ptr<Tracee> stopped = stop();
    Tracee& tracee = *stopped;
    capture(tracee);
    Memory memory({root_, advice_, base_inode_, base_device_, base_path_, request_.copied + '/',
                   deadline_, request_.given_up},
                  metadata_, writer_, result_.lost);
    std::vector<MapsLine> lines = read_maps(pid_);
    memory.save_shared(pid_, lines);
    refuse_lost();
    Copy copy(tracee, copy_of(tracee, lines));
    if (copy.pid() > 0) {
      end_pause();
      tracee.release();
      memory.save_private(copy.pid(), lines);
      copy.end();
      result_.by_fork = true;
    } else {
      memory.save_private(pid_, lines);
    }
    memory.finish();
    for (const std::string& text : result_.lost)
      metadata_.lost.push_back(metadata_.add_string(text));
    if (copy.pid() == 0 && !result_.by_fork && request_.keep_running) {
      end_pause();
      tracee.release();  // its memory is copied; the disk may take its time
    }
    auto check = [this] {
      if (request_.given_up && *request_.given_up) refuse("it was given up");
    };
    result_.bytes = writer_.commit(metadata_, header_, request_.sync, check);
    if (!request_.keep_running) {
      tracee.kill();
      end_pause();
    }
    return result_;
  }

 private:
  void open_base() {
    if (request_.base.empty()) return;
    ImageFile base = open_template(request_.base);
    struct stat status {};
    if (fstat(base.file.get(), &status) == -1) refuse_errno("cannot look at the template's image");
    static const std::uint8_t none[16] = {};
    if (std::memcmp(base.header.base_id, none, sizeof none) != 0)
      refuse("an image can only refer to a template's image");
    base_inode_ = status.st_ino;
    base_device_ = status.st_dev;
    std::error_code failed;
    base_path_ = std::filesystem::canonical(request_.base, failed).string();
    std::memcpy(header_.base_id, base.header.id, sizeof header_.base_id);
    metadata_.hot_runs = std::move(base.metadata.hot_runs);  // the same addresses
  }

  std::unique_ptr<Tracee> stop() {
    constexpr int kLink = 3;
    constexpr std::chrono::milliseconds kLongest{20};
    for (std::chrono::milliseconds pause{1};; pause = std::min(2 * pause, kLongest)) {
      auto tracee = std::make_unique<Tracee>(pid_, deadline_);
      bool waits = !request_.when_waiting || tracee->waits_for(kLink);
      if (waits && tracee->leave_loader()) return tracee;
      tracee.reset();
      if (Clock::now() + pause > deadline_) refuse("the kernel is busy");
      std::this_thread::sleep_for(pause);
    }
  }

  void capture(Tracee& tracee) {
    stopped_at_ = tracee.stopped_at();
    std::vector<std::string> others = others_in_sandbox(tracee);
    if (!others.empty() && !request_.allow_lost)
      refuse("other processes run in the sandbox, which an image cannot hold: " + joined(others));
    std::ranges::move(others, std::back_inserter(result_.lost));
    std::string timers = read_proc(proc_path(pid_, "timers")).value_or("");
    if (!timers.empty()) result_.lost.push_back("timers made by timer_create");
    capture_threads(tracee, metadata_);
    capture_descriptors(tracee, root_, metadata_, writer_, result_.lost);
    capture_directory();
    describe();
  }

  void capture_directory() {
    std::string path = proc_path(pid_, "cwd");
    std::string directory = read_link(path);
    struct stat status {};
    auto found = root_.find(directory);
    if (stat(path.c_str(), &status) == -1 || !found || found->inode != status.st_ino ||
        (found->temporary && directory != "/" && directory != "/tmp")) {
      result_.lost.push_back("its working directory " + readable_end(directory, 200) +
                             ", which is not kept: os.chdir('/workspace') first");
      directory = "/";
    }
    metadata_.process.directory = metadata_.add_string(directory);
  }

  void describe() {
    if (getrandom(header_.id, sizeof header_.id, 0) != sizeof header_.id)
      refuse_errno("cannot choose an identity");
    header_.loader_abi = loader_abi();
    header_.cpu = read_cpu();
    header_.real_ns = now(CLOCK_REALTIME);
    header_.monotonic_ns = now(CLOCK_MONOTONIC);
    header_.boottime_ns = now(CLOCK_BOOTTIME);
    utsname system{};
    uname(&system);
    std::strncpy(header_.kernel, system.release, sizeof header_.kernel - 1);
  }

  void refuse_lost() {
    if (result_.lost.empty() || request_.allow_lost) return;
    refuse("some of what it uses cannot be kept in an image: " + joined(result_.lost));
  }

  // 0: the memory has to be read from the process itself.
  pid_t copy_of(Tracee& tracee, const std::vector<MapsLine>& lines) {
    bool partial =
        std::ranges::any_of(advice_, [](const Advice& advice) { return advice.flags & kDontFork; });
    if (!request_.by_fork || !request_.keep_running || partial ||
        Memory::shared_bytes(lines) > kMaxSharedForFork)
      return 0;
    pid_t copy = tracee.fork();
    if (copy > 0 && read_maps(copy) != lines) {
      tracee.end_copy(copy);
      return 0;
    }
    return copy;
  }

  void end_pause() {
    result_.pause =
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - stopped_at_);
  }

  pid_t pid_;
  const FreezeRequest& request_;
  Clock::time_point deadline_, stopped_at_;
  Writer writer_;
  InnerRoot root_;
  std::vector<Advice> advice_;
  Header header_{};
  Metadata metadata_;
  Frozen result_;
  std::uint64_t base_inode_ = 0, base_device_ = 0;
  std::string base_path_;
};

constexpr std::uint64_t kHotGap = 0;  // a page more is 4 KiB in every session

}  // namespace

Frozen freeze(pid_t pid, const std::filesystem::path& image, const FreezeRequest& request) {
  // In a thread of its own, which then ends: should a step fail in the middle, the kernel lets go
  // of whatever is still traced.
  return std::async(std::launch::async, [&] { return Freeze(pid, image, request).run(); }).get();
}

void train(pid_t pid, const std::filesystem::path& image) {
  ImageFile file = open_template(image);
  file.metadata.hot_runs = own_runs(pid, file.metadata.mappings, kHotGap);
  rewrite_metadata(image, file.metadata, file.header);
}

}  // namespace sandbox::image
