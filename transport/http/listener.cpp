#include "transport/http/listener.hpp"

#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/ip/tcp.hpp>
#include <system_error>

#include "async/task_group.hpp"
#include "transport/http/connection.hpp"
#include "transport/log.hpp"

namespace transport::http {

namespace asio = boost::asio;
using asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kBackOff{100};
// What the system may hold for one client that does not read.
constexpr int kSendBuffer = 256 << 10;
// A peer that vanished without a word is noticed after about two minutes.
constexpr int kKeepAliveIdle = 60, kKeepAliveInterval = 15, kKeepAliveProbes = 4;

asio::ip::address numeric(const std::string& address) {
  boost::system::error_code failed;
  auto parsed = asio::ip::make_address(address == "localhost" ? "127.0.0.1" : address, failed);
  if (failed) throw std::runtime_error("not a numeric address");
  return parsed;
}

// As people write it: an IPv4 address also where the socket is one of IPv6.
std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

void set(int fd, int level, int option, int value) {
  (void)setsockopt(fd, level, option, &value, sizeof(value));
}

void prepare(int fd) {
  set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set(fd, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdle);
  set(fd, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveInterval);
  set(fd, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
}

// A listening socket; Asio's own would be inherited by the processes we start.
int listen_on(const tcp::endpoint& endpoint) {
  int fd = ::socket(endpoint.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  set(fd, SOL_SOCKET, SO_REUSEADDR, 1);
  set(fd, SOL_SOCKET, SO_SNDBUF, kSendBuffer);  // those accepted have it from here
  if (endpoint.address().is_v6()) set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (fd >= 0 && ::bind(fd, endpoint.data(), static_cast<socklen_t>(endpoint.size())) == 0 &&
      ::listen(fd, SOMAXCONN) == 0)
    return fd;
  int why = errno;
  if (fd >= 0) ::close(fd);
  throw std::runtime_error(std::system_category().message(why));
}

}  // namespace

struct Listener::State {
  State(asio::any_io_executor executor, Handler handler, ListenerLimits limits, Refused refused)
      : acceptor(executor),
        connections(executor, log_defect),
        over(executor, asio::steady_timer::time_point::max()),
        changed(executor) {
    service.handler = std::move(handler);
    service.limits = limits;
    service.refused = std::move(refused);
  }

  awaitable<void> accept();
  awaitable<void> wait_for_one();
  awaitable<void> connection(tcp::socket socket, std::string remote);
  bool accept_one(int& failure);

  Service service;
  tcp::acceptor acceptor;
  tcp::endpoint bound;
  async::TaskGroup connections;
  asio::steady_timer over;  // expired: the end has begun
  async::Changed changed;   // a connection has ended
  milliseconds grace{0};
};

Listener::Listener(asio::any_io_executor executor, const std::string& address, std::uint16_t port,
                   Handler handler, ListenerLimits limits, Refused refused)
    : state_(std::make_shared<State>(executor, std::move(handler), limits, std::move(refused))) {
  try {
    tcp::endpoint endpoint(numeric(address), port);
    state_->acceptor.assign(endpoint.protocol(), listen_on(endpoint));
    state_->bound = state_->acceptor.local_endpoint();
  } catch (const std::exception& failure) {
    throw std::runtime_error("cannot listen on " + address + " port " + std::to_string(port) +
                             ": " + failure.what());
  }
}

Listener::~Listener() = default;

asio::any_io_executor Listener::executor() const { return state_->acceptor.get_executor(); }

std::uint16_t Listener::port() const { return state_->bound.port(); }

std::string Listener::address() const { return state_->bound.address().to_string(); }

const Counters& Listener::counters() const { return state_->service.counters; }

void Listener::stop(milliseconds grace) {
  state_->grace = grace;
  state_->over.expires_at(asio::steady_timer::time_point::min());
}

awaitable<void> Listener::serve() {
  co_await asio::this_coro::throw_if_cancelled(false);
  auto state = state_;
  async::TaskGroup accepting(state->acceptor.get_executor());
  accepting.spawn(state->accept());
  auto token = asio::as_tuple(asio::use_awaitable);
  auto [why] = co_await state->over.async_wait(token);
  (void)why;
  accepting.cancel();
  co_await accepting.join();
  boost::system::error_code ignored;
  state->acceptor.close(ignored);
  state->service.stopping = true;
  for (Connection* connection : state->service.connections) connection->stop();
  auto cancellation = co_await asio::this_coro::cancellation_state;
  bool at_once = cancellation.cancelled() != asio::cancellation_type::none;
  try {
    if (!at_once) co_await async::within(state->grace, state->connections.join());
  } catch (const boost::system::system_error&) {
    // Cancelled: no grace any more.
  }
  state->connections.cancel();
  co_await state->connections.join();
}

awaitable<void> Listener::State::accept() {
  bool said = false;
  for (;;) {
    while (service.counters.open >= service.limits.connections) co_await changed.wait();
    co_await acceptor.async_wait(tcp::acceptor::wait_read, asio::use_awaitable);
    int failure = 0;
    for (int i = 0; i < 64 && accept_one(failure); ++i) continue;
    bool nothing_left = failure == EAGAIN || failure == ECONNABORTED || failure == EINTR;
    if (failure == 0 || nothing_left) continue;
    // Out of descriptors or memory, say: those that are connected go on, and free some.
    if (!std::exchange(said, true))
      spdlog::error("cannot accept connections: {}", std::system_category().message(failure));
    co_await async::sleep_for(kBackOff);
  }
}

// Whether there may be another one.
bool Listener::State::accept_one(int& failure) {
  if (service.counters.open >= service.limits.connections) return false;
  int fd = ::accept4(acceptor.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) failure = errno;
  if (fd < 0) return false;
  prepare(fd);
  tcp::socket socket(acceptor.get_executor());
  boost::system::error_code gone;
  socket.assign(bound.protocol(), fd, gone);
  if (gone) ::close(fd);
  if (gone) return true;
  socket.non_blocking(true, gone);
  std::string remote = text_of(socket.remote_endpoint(gone).address());
  if (gone) return true;
  ++service.counters.connections;
  auto others = service.per_address.find(remote);
  if (others != service.per_address.end() &&
      others->second >= service.limits.connections_per_address) {
    ++service.counters.dropped;
    return true;
  }
  connections.spawn(connection(std::move(socket), std::move(remote)));
  return true;
}

awaitable<void> Listener::State::connection(tcp::socket socket, std::string remote) {
  {
    Connection connection(std::move(socket), std::move(remote), service);
    co_await connection.serve();
  }
  changed.notify();
}

}  // namespace transport::http
