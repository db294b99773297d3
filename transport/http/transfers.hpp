#pragma once

// Files over HTTP, below /files/: PUT brings one in, GET and HEAD fetch one, and neither is ever
// held in memory. What follows is a ticket: a secret that a tool gave out for one file.
//
// These paths need no token, because the ticket is one: it was given to who had the token, stands
// for this one transfer and ends within minutes, and `curl` on the user's machine shall not need
// the token of the whole server. Host and Origin are checked as for every path.

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "transport/http/router.hpp"

namespace transport::http {

// A transfer that cannot be done. The text goes to the client: what happened, what is intact.
struct TransferError : std::runtime_error {
  TransferError(int http_status, const std::string& what)
      : std::runtime_error(what), status(http_status) {}
  int status;
};

// A file that comes in. Nothing is left of it without finish().
class Upload {
 public:
  virtual ~Upload() = default;
  virtual awaitable<void> write(std::string_view part) = 0;  // throws TransferError
  virtual awaitable<std::string> finish() = 0;               // says what was stored
};

// A file that goes out; the same one to its end, whatever is put in its place meanwhile.
class Download {
 public:
  virtual ~Download() = default;
  virtual std::string name() const = 0;  // any bytes
  virtual std::uint64_t size() const = 0;
  virtual std::string version() const = 0;  // differs when the content may; fit for an ETag
  // Shorter at its end. Throws TransferError.
  virtual awaitable<std::string> read(std::uint64_t offset, std::size_t size) = 0;
};

// What a ticket stands for. Both throw TransferError: 404 unknown, 405 for the other direction, 410
// expired or used.
class Transfers {
 public:
  virtual ~Transfers() = default;
  // `size` is what the client announced.
  virtual awaitable<std::unique_ptr<Upload>> upload(std::string ticket,
                                                    std::optional<std::uint64_t> size) = 0;
  virtual awaitable<std::unique_ptr<Download>> download(std::string ticket) = 0;
};

inline constexpr std::string_view kFilesPath = "/files/";

// Serves them. `transfers` outlives the router. More than `at_once` are refused with 503.
void mount(Router& router, Transfers& transfers, std::size_t at_once = 64);

}  // namespace transport::http
