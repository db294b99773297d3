#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <map>
#include <string>

#include "mcp/inputs.hpp"

namespace mcp {

// A request that ended with questions to the client (modern era), waiting for the client to make it
// again with the answers.
struct Question {
  std::string principal;
  std::string method;
  boost::json::object params;  // without what differs from one try to the next
  std::string state;           // the handler's own, never shown to the client
  InputRequests requests;
};

// The open questions by their token (the wire's `requestState`): 128 random bits. The client only
// ever holds the token, so there is nothing it could alter. Questions expire, and the oldest make
// room for new ones, since a client may never come back.
class Questions {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::minutes kLifetime{30};
  static constexpr std::size_t kMaxOpen = 256;
  static constexpr std::size_t kMaxBytes = 64 << 20;  // of all that is kept

  // Returns the new question's token.
  std::string open(Question question, Clock::time_point now = Clock::now());

  // The question, if its request was this one. Unknown, expired, another principal's and another
  // request's token are the same to the caller: nullptr.
  const Question* find(const std::string& token, const std::string& principal,
                       const std::string& method, const boost::json::object& params,
                       Clock::time_point now = Clock::now());

  // Removes and returns it: a token is good for one answer.
  Question take(const std::string& token);

  std::size_t size() const { return open_.size(); }

 private:
  struct Entry {
    Question question;
    Clock::time_point asked;
    std::size_t bytes;
  };

  void expire(Clock::time_point now);
  void erase(std::map<std::string, Entry>::iterator entry);
  void erase_oldest();

  std::map<std::string, Entry> open_;
  std::size_t bytes_ = 0;
};

}  // namespace mcp
