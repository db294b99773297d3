#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "sandbox/pandastack/http.hpp"

namespace sandbox::pandastack {

class Transfer;

// Bytes of one answer that may wait for their reader.
inline constexpr std::size_t kWindow = 1 << 20;

// The thread that runs libcurl. The event loop's wishes reach it through one queue under the only
// mutex; what comes of them is posted to the loop's executor. Nothing else is shared.
class Transfers {
 public:
  // Throws StartError. The thread starts with the first transfer.
  Transfers(boost::asio::any_io_executor executor, HttpOptions options);
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;
  ~Transfers();

  // On the event loop:
  void start(std::shared_ptr<Call> call);
  void was_read(std::uint64_t id, std::size_t bytes);
  void give_up(std::uint64_t id);
  void stop();  // each call under way then arrives at its end

 private:
  struct Wish {
    std::uint64_t id;
    std::shared_ptr<Call> start;
    std::size_t was_read = 0;
    bool give_up = false;
  };

  bool send(Wish wish);

  // On the thread:
  void run();
  bool grant_wishes();
  void start_transfer(std::uint64_t id, std::shared_ptr<Call> call);
  void end_finished();
  void post_arrivals();
  void end_all();

  const boost::asio::any_io_executor executor_;
  const HttpOptions options_;
  void* const multi_;
  std::thread thread_;
  std::uint64_t last_id_ = 0;                                     // the event loop's
  std::map<std::uint64_t, std::unique_ptr<Transfer>> under_way_;  // the thread's

  std::mutex mutex_;
  std::vector<Wish> wishes_;
  bool stopped_ = false;
};

}  // namespace sandbox::pandastack
