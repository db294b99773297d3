#include "mcp/random_id.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace mcp {

std::string random_id() {
  std::array<unsigned char, 26> bytes;
  // Never short for up to 256 bytes once the pool is initialised (getrandom(2)).
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  std::string id;
  for (unsigned char byte : bytes) id += "abcdefghijklmnopqrstuvwxyz234567"[byte & 31];
  return id;
}

}  // namespace mcp
