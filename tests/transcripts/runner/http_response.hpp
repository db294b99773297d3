#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace transcripts {

// A response of HTTP/1.1 as its bytes come in; strict, since it holds the server to the rules. Not
// by the library that the server is written with: a fault of that one would then not show.
class HttpResponse {
 public:
  // Takes what has arrived, and gives the messages it completes: the data of each event of a
  // text/event-stream, or the body of an ended application/json. Throws std::runtime_error.
  std::vector<std::string> take(std::string_view bytes);
  // The connection has ended: throws when the response had not.
  void end() const;

  int status() const { return status_; }  // 0 before the head has come
  bool complete() const { return stage_ == Stage::done; }
  std::string header(const std::string& lower_case_name) const;
  const std::string& body() const { return body_; }

 private:
  enum class Stage { head, sized, chunk_size, chunk, chunk_end, done };
  bool step(std::vector<std::string>& messages);
  std::optional<std::string> line();
  void read_head();
  void take_body(std::size_t size, std::vector<std::string>& messages);
  void finish(std::vector<std::string>& messages);
  void events(std::vector<std::string>& messages);

  Stage stage_ = Stage::head;
  std::string in_, body_, data_;
  std::map<std::string, std::string> headers_;
  std::size_t left_ = 0;
  int status_ = 0;
};

}  // namespace transcripts
