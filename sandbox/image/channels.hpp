#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "sandbox/image/writer.hpp"

namespace sandbox::image {

// A pipe's end or a socket of the stopped process.
struct Channel {
  Descriptor* record = nullptr;  // `other`, `value` and the contents are filled in
  ino_t inode = 0;
  std::string lost;  // why it cannot be carried; set from the beginning: not to be looked at
  Handle copy;       // our own descriptor of the same open file
};

// Finds out which ends belong together and what they hold. The process must stand still, and nobody
// else may hold the ends: what is sent to find a socket's peer is taken back at once.
class Channels {
 public:
  Channels(pid_t pid, Writer& writer);
  void capture(std::vector<Channel>& all);

 private:
  void pair_pipes(std::vector<Channel>& all);
  void save_pipe(Channel& reader);
  void examine_socket(Channel& socket);
  void pair_sockets(std::vector<Channel>& all);
  void save_socket(Channel& socket);

  Handle process_;  // pidfd
  Writer& writer_;
};

}  // namespace sandbox::image
