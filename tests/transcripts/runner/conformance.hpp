#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

namespace transcripts {

namespace json = boost::json;

// Holds what the server sends to the released schemas: the JSON-RPC envelope and, by the method of
// the request it answers, the result. Follows the conversation to know revision and method of each
// answer.
class Conformance {
 public:
  explicit Conformance(std::filesystem::path schemas);
  ~Conformance();

  // Takes note of what the client sends; anything, also what is not JSON.
  void client_sent(const std::string& line);
  // What is wrong with a message of the server's, or nothing.
  std::optional<std::string> server_sent(const json::value& message);

 private:
  struct Asked {
    std::string method;
    std::string revision;
  };
  class Revision;

  void note(const json::value& message);
  std::optional<std::string> check_response(const json::object& message);
  std::optional<std::string> check_call(const json::object& message);
  std::string legacy() const;
  Revision& revision(const std::string& name);

  std::filesystem::path schemas_;
  std::map<std::string, std::unique_ptr<Revision>> revisions_;
  std::map<std::string, Asked> asked_;           // by the id's JSON text
  std::map<std::string, std::string> progress_;  // revision, by the progress token's JSON text
  std::string negotiated_;                       // by `initialize`
  bool modern_seen_ = false;
};

}  // namespace transcripts
