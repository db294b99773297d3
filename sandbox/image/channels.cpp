#include "sandbox/image/channels.hpp"

#include <fcntl.h>
#include <limits.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace sandbox::image {

namespace {

bool is_pipe(const Channel& channel) { return channel.record->kind == DescriptorKind::pipe; }
bool writes(const Channel& channel) { return (channel.record->flags & O_ACCMODE) == O_WRONLY; }

int unread(const Channel& channel) {
  int bytes = 0;
  return ioctl(channel.copy.get(), FIONREAD, &bytes) == -1 ? 0 : bytes;
}

int option(const Channel& socket, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  getsockopt(socket.copy.get(), SOL_SOCKET, name, &value, &size);
  return value;
}

// What the peer has not read yet.
int unread_by_peer(const Channel& socket) {
  int bytes = 0;
  return ioctl(socket.copy.get(), SIOCOUTQ, &bytes) == -1 ? 0 : bytes;
}

// Of a pipe's end whose other end the process does not have.
bool is_held_elsewhere(const Channel& end) {
  pollfd state{end.copy.get(), 0, 0};
  return poll(&state, 1, 0) == 0;  // else POLLERR or POLLHUP
}

bool is_stream(const Channel& socket) { return socket.record->value == SOCK_STREAM; }

void join(Channel& one, Channel& other) {
  one.record->other = other.record->number;
  other.record->other = one.record->number;
}

}  // namespace

Channels::Channels(pid_t pid, Writer& writer)
    : process_(static_cast<int>(syscall(SYS_pidfd_open, pid, 0))), writer_(writer) {
  if (!process_) refuse_errno("cannot hold the process");
}

void Channels::capture(std::vector<Channel>& all) {
  for (Channel& channel : all) {
    if (!channel.lost.empty()) continue;
    channel.copy = Handle(
        static_cast<int>(syscall(SYS_pidfd_getfd, process_.get(), channel.record->number, 0)));
    if (!channel.copy) refuse_errno("cannot look at the process's descriptors");
    if (!is_pipe(channel)) examine_socket(channel);
  }
  pair_pipes(all);
  pair_sockets(all);
}

// The two ends have one inode. An end that is missing was closed, unless it is ours: the process
// may have put away what it was given as stdout.
void Channels::pair_pipes(std::vector<Channel>& all) {
  for (std::size_t index = 0; index < all.size(); ++index) {
    Channel& one = all[index];
    if (!is_pipe(one) || !one.lost.empty()) continue;
    for (std::size_t next = index + 1; next < all.size(); ++next) {
      Channel& other = all[next];
      if (!is_pipe(other) || !other.lost.empty() || other.inode != one.inode) continue;
      if (one.record->other == -1 && writes(one) != writes(other))
        join(one, other);
      else if (other.record->other == -1)
        other.lost = "an end of a pipe, opened again";
    }
    if (one.record->other == -1 && is_held_elsewhere(one)) {
      one.lost = "a pipe to something outside of the process";
      continue;
    }
    auto capacity = fcntl(one.copy.get(), F_GETPIPE_SZ);
    one.record->value = capacity > 0 ? static_cast<std::uint64_t>(capacity) : 0;
    if (!writes(one)) save_pipe(one);
  }
}

// tee() copies what a pipe holds and leaves it there.
void Channels::save_pipe(Channel& reader) {
  int held = unread(reader);
  if (held <= 0) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == -1) refuse_errno("cannot make a pipe");
  Handle from(ends[0]), to(ends[1]);
  fcntl(to.get(), F_SETPIPE_SZ, static_cast<int>(reader.record->value));
  tee(reader.copy.get(), to.get(), INT_MAX, SPLICE_F_NONBLOCK);
  std::string bytes(static_cast<std::size_t>(held), '\0');
  std::size_t size = 0;
  for (ssize_t part; size < bytes.size(); size += static_cast<std::size_t>(part)) {
    part = read(from.get(), bytes.data() + size, bytes.size() - size);
    if (part <= 0) break;
  }
  if (size < bytes.size()) {
    reader.lost = "a pipe whose contents cannot be copied";
    return;
  }
  reader.record->contents = writer_.append(bytes);
  reader.record->contents_size = bytes.size();
}

void Channels::examine_socket(Channel& socket) {
  int domain = option(socket, SO_DOMAIN), type = option(socket, SO_TYPE);
  bool listens = option(socket, SO_ACCEPTCONN);
  socket.record->value = static_cast<std::uint64_t>(type);
  const char* kind = domain == AF_UNIX                         ? "a UNIX socket"
                     : domain != AF_INET && domain != AF_INET6 ? "a socket"
                     : type == SOCK_STREAM                     ? "a TCP socket"
                                                               : "a UDP socket";
  sockaddr_un own{}, peer{};
  socklen_t own_size = sizeof own, peer_size = sizeof peer;
  bool connected =
      getpeername(socket.copy.get(), reinterpret_cast<sockaddr*>(&peer), &peer_size) == 0;
  getsockname(socket.copy.get(), reinterpret_cast<sockaddr*>(&own), &own_size);
  constexpr socklen_t kUnnamed = sizeof own.sun_family;
  if (domain != AF_UNIX || listens || !connected || own_size > kUnnamed || peer_size > kUnnamed)
    socket.lost = std::string(kind) + (listens ? ", listening" : connected ? ", connected" : "");
  else if (!is_stream(socket) && unread(socket) > 0)
    socket.lost = "a UNIX socket with unread messages";
}

// No call says who a socket's peer is. So: send a byte, see who has it, take it back. Only towards
// a peer that has nothing unread: a byte behind others could not be taken back.
void Channels::pair_sockets(std::vector<Channel>& all) {
  auto open = [](const Channel& channel) {
    return !is_pipe(channel) && channel.lost.empty() && channel.record->other == -1;
  };
  for (Channel& sender : all) {
    if (!open(sender) || unread_by_peer(sender) > 0) continue;
    char byte = 0;
    constexpr int kFlags = MSG_DONTWAIT | MSG_NOSIGNAL;
    if (send(sender.copy.get(), &byte, 1, kFlags) != 1) {
      if (errno == EPIPE || errno == ECONNREFUSED || errno == ECONNRESET)
        save_socket(sender);  // its peer was closed: -1 says so
      else
        sender.lost = "a UNIX socket";
      continue;
    }
    auto receiver = std::ranges::find_if(all, [&](const Channel& other) {
      return &other != &sender && open(other) && unread(other) == 1;
    });
    if (receiver == all.end()) {
      sender.lost = "a UNIX socket";
      continue;
    }
    if (recv(receiver->copy.get(), &byte, 1, MSG_DONTWAIT) != 1)
      refuse("a socket pair changed while the process stood still");
    join(sender, *receiver);
    save_socket(sender);
    save_socket(*receiver);
  }
  for (Channel& channel : all)
    if (open(channel) && unread_by_peer(channel) > 0)
      channel.lost = is_stream(channel) ? "a UNIX socket with unread data in both directions"
                                        : "a UNIX socket with unread messages";
}

void Channels::save_socket(Channel& socket) {
  int held = unread(socket);
  if (held <= 0) return;
  std::string bytes(static_cast<std::size_t>(held), '\0');
  iovec vector{bytes.data(), bytes.size()};
  char control[256];
  msghdr message{};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  // Installs copies of descriptors that are in it, to be closed with `control`'s.
  ssize_t size = recvmsg(socket.copy.get(), &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size != held || message.msg_controllen > 0 || (message.msg_flags & MSG_CTRUNC)) {
    socket.lost = "a UNIX socket with descriptors, or more than fits, unread in it";
    return;
  }
  socket.record->contents = writer_.append(bytes);
  socket.record->contents_size = bytes.size();
}

}  // namespace sandbox::image
