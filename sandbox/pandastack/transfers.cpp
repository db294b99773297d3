#include "sandbox/pandastack/transfers.hpp"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>

#include "sandbox/pandastack/curl.hpp"
#include "sandbox/pandastack/transfer.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;

namespace {

constexpr const char* kClosed = "it was given up, since the client was closed";
constexpr long kMostKeptConnections = 32;

CURLM* new_multi() {
  CURLM* multi = curl().multi_init();
  if (!multi) throw StartError("libcurl does not start");
  curl().multi_setopt(multi, CURLMOPT_MAXCONNECTS, kMostKeptConnections);
  return multi;
}

// Signals are the main thread's; threads inherit what is blocked, those of libcurl's resolver too.
template <class Work>
std::thread thread_without_signals(Work work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(work));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

Transfers::Transfers(asio::any_io_executor executor, HttpOptions options)
    : executor_(std::move(executor)), options_(std::move(options)), multi_(new_multi()) {}

Transfers::~Transfers() {
  stop();
  curl().multi_cleanup(multi_);
}

void Transfers::start(std::shared_ptr<Call> call) {
  if (!thread_.joinable()) thread_ = thread_without_signals([this] { run(); });
  call->id = ++last_id_;
  Wish wish{.id = call->id, .start = call};
  if (send(std::move(wish))) return;
  Arrival arrival;
  arrival.end = End{.ok = false, .failure = Failure::closed, .why = kClosed};
  call->arrived(std::move(arrival));
}

void Transfers::was_read(std::uint64_t id, std::size_t bytes) {
  send(Wish{.id = id, .was_read = bytes});
}

void Transfers::give_up(std::uint64_t id) { send(Wish{.id = id, .give_up = true}); }

void Transfers::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  if (!thread_.joinable()) return;
  curl().multi_wakeup(multi_);
  thread_.join();
}

bool Transfers::send(Wish wish) {
  std::lock_guard lock(mutex_);
  if (stopped_) return false;
  wishes_.push_back(std::move(wish));
  curl().multi_wakeup(multi_);
  return true;
}

void Transfers::run() {
  while (grant_wishes()) {
    int running = 0;
    curl().multi_perform(multi_, &running);
    end_finished();
    post_arrivals();
    if (curl().multi_poll(multi_, nullptr, 0, 60'000, nullptr) != CURLM_OK)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // short of memory: not in a spin
  }
  end_all();
}

// False once it is to stop.
bool Transfers::grant_wishes() {
  std::vector<Wish> wishes;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) return false;
    wishes.swap(wishes_);
  }
  for (Wish& wish : wishes) {
    if (wish.start) {
      start_transfer(wish.id, std::move(wish.start));
      continue;
    }
    auto found = under_way_.find(wish.id);
    if (found == under_way_.end()) continue;  // it has ended meanwhile
    if (wish.was_read) found->second->was_read(wish.was_read);
    if (wish.give_up) found->second->end(Failure::closed, kClosed);
  }
  return true;
}

void Transfers::start_transfer(std::uint64_t id, std::shared_ptr<Call> call) {
  auto transfer = std::make_unique<Transfer>(options_, std::move(call));
  if (curl().multi_add_handle(multi_, transfer->handle()) != CURLM_OK)
    transfer->end(Failure::no_connection, "libcurl does not take it");
  under_way_.emplace(id, std::move(transfer));
}

void Transfers::end_finished() {
  int left = 0;
  while (CURLMsg* message = curl().multi_info_read(multi_, &left))
    if (message->msg == CURLMSG_DONE)
      Transfer::of(message->easy_handle).finished(message->data.result);
}

void Transfers::post_arrivals() {
  for (auto next = under_way_.begin(); next != under_way_.end();) {
    auto transfer = next++;
    Arrival arrival = transfer->second->take_arrival();
    if (arrival.empty()) continue;
    std::shared_ptr<Call> call = transfer->second->call();
    if (arrival.end) {
      curl().multi_remove_handle(multi_, transfer->second->handle());
      under_way_.erase(transfer);
    }
    // The call goes along: its last owner has to be on the event loop.
    asio::post(executor_, [call = std::move(call), arrival = std::move(arrival)]() mutable {
      call->arrived(std::move(arrival));
    });
  }
}

void Transfers::end_all() {
  // Nobody adds a wish any more. What was to be started arrives at its end like the others.
  for (Wish& wish : wishes_)
    if (wish.start) start_transfer(wish.id, std::move(wish.start));
  wishes_.clear();
  for (auto& [id, transfer] : under_way_) transfer->end(Failure::closed, kClosed);
  post_arrivals();
}

}  // namespace sandbox::pandastack
