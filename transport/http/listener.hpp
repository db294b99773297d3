#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "transport/http/exchange.hpp"

namespace transport::http {

// What the clients of one listener may cost.
struct ListenerLimits {
  std::size_t connections = 4096;  // further ones wait in the kernel's backlog
  std::size_t connections_per_address = 2048;
  std::size_t header_bytes = 32 << 10;  // 431 beyond
  std::size_t streams = 2048;           // responses begun and not ended; 503 beyond
  std::size_t streams_per_principal = 1024;
  std::chrono::milliseconds header_limit{
      15'000};                                    // from the first byte of a request to its headers
  std::chrono::milliseconds body_stall{30'000};   // without a byte of the body: 408
  std::chrono::milliseconds idle_limit{90'000};   // a connection kept alive without a request
  std::chrono::milliseconds write_stall{30'000};  // a client that takes nothing is dropped
};

struct Counters {
  std::uint64_t connections = 0;  // ever accepted
  std::size_t open = 0;
  std::size_t streams = 0;  // open now
  std::uint64_t requests = 0;
  std::uint64_t dropped = 0;  // slow or over a limit
  std::uint64_t bytes_in = 0, bytes_out = 0;
};

// Accepts connections of HTTP/1.1 (and 1.0) on one address and hands each request to `handler`, one
// after the other within a connection. Belongs to the loop's thread.
class Listener {
 public:
  // Binds and listens. `address` is numeric, or "localhost". Throws std::runtime_error that names
  // the address and the reason. Port 0 picks a free one.
  Listener(boost::asio::any_io_executor executor, const std::string& address, std::uint16_t port,
           Handler handler, ListenerLimits limits = {}, Refused refused = {});
  ~Listener();

  boost::asio::any_io_executor executor() const;
  std::uint16_t port() const;
  std::string address() const;  // as bound
  const Counters& counters() const;

  // Serves until cancelled or stopped; every connection has ended when it returns.
  awaitable<void> serve();
  // Takes no new connections and requests, lets those in flight end for at most `grace`.
  void stop(std::chrono::milliseconds grace);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace transport::http
