#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace client_config {

// Where the members of a JSON object are in its text.
struct JsonObject {
  struct Member {
    std::string key;
    std::size_t begin = 0;              // of the key, with its quote
    std::size_t value = 0, end = 0;     // of the value
    std::optional<std::size_t> comma;   // behind it
    std::optional<std::size_t> object;  // the value is that one of JsonText::objects
  };
  std::size_t open = 0, close = 0;  // its braces
  std::vector<Member> members;
};

// A JSON text with comments and trailing commas (VS Code's and Zed's settings), checked whole.
struct JsonText {
  std::vector<JsonObject> objects;  // all of them
  std::optional<std::size_t> root;  // absent: there is no value, just blanks and comments
  std::size_t end = 0;              // behind what is there
};

// Throws EditError for anything else, keys that come twice in one object included.
JsonText scan_json(std::string_view text);

}  // namespace client_config
