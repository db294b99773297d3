#include "transport/http/random_id.hpp"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace transport::http {

std::string random_id() {
  std::array<unsigned char, 16> random;
  // Up to 256 bytes come whole (random(4)).
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (unsigned char byte : random) {
    id += kDigits[byte >> 4];
    id += kDigits[byte & 15];
  }
  return id;
}

}  // namespace transport::http
