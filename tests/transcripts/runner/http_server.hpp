#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include "tests/transcripts/runner/child.hpp"
#include "tests/transcripts/runner/http_response.hpp"
#include "tests/transcripts/runner/server.hpp"

namespace transcripts {

// A server over Streamable HTTP, and the client's part of that: each message is a POST on a
// connection of its own. A legacy conversation gets its session from `initialize` and keeps it;
// what speaks 2026-07-28 has its headers from the message, and cancels by closing its connection.
class HttpServer final : public Server {
 public:
  // The command starts it, and it says on stderr where it serves; what else it says there is told
  // on ours. Throws std::runtime_error when it does not.
  HttpServer(std::vector<std::string> command, const std::vector<std::string>& environment);
  ~HttpServer() override;

  void send(const std::string& message, std::chrono::milliseconds limit) override;
  std::optional<std::string> receive(std::chrono::milliseconds limit) override;
  void leave() override;
  std::optional<int> wait(std::chrono::milliseconds limit) override;

 private:
  struct Post {
    int fd = -1;
    int number = 0;
    std::string id;  // of the request in it, as JSON text; empty if there is none
    bool is_initialize = false;
    HttpResponse response;
  };

  void find_address();
  void tell_stderr();
  int connect() const;
  // Sends a request whose response is read later; its number.
  int begin(const std::string& verb, const std::string& headers, const std::string& body,
            Post post);
  std::string headers_for(const boost::json::value& message) const;
  bool cancels(const boost::json::value& message);
  bool is_open(int number) const;
  // Reads what comes, from all of them, until that one has ended; false at the deadline.
  bool read_until_ended(int number, Clock::time_point deadline);
  void read_some(Clock::time_point deadline);
  void read(Post& post);
  void settle(const HttpResponse& response, const std::string& answer);

  Child child_;
  std::string host_, path_, stderr_;
  std::uint16_t port_ = 0;
  std::string session_, revision_;
  std::list<Post> open_;
  int posts_ = 0;
  std::deque<std::string> messages_;
};

}  // namespace transcripts
