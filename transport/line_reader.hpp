#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <string>

#include "async/async.hpp"

namespace transport {

struct Line {
  enum class Kind {
    whole,     // `text` without its newline
    cut,       // what came after the last newline before the input ended
    too_long,  // skipped; no text
    end,       // the input has ended, or cannot be read any more
  };
  Kind kind = Kind::end;
  std::string text;
};

// Splits a byte stream at '\n' alone: U+2028 and a lone '\r' are ordinary bytes. Holds one line of
// at most `cap` bytes and one chunk, however long the lines are.
class LineReader {
 public:
  LineReader(boost::asio::posix::stream_descriptor& in, std::size_t cap) : in_(in), cap_(cap) {}

  async::awaitable<Line> next();

 private:
  void take(const char* end);

  boost::asio::posix::stream_descriptor& in_;
  std::size_t cap_;
  std::array<char, 65536> chunk_;
  const char* begin_ = chunk_.data();  // what is left of the chunk
  const char* end_ = chunk_.data();
  std::string text_;
  bool too_long_ = false;
};

}  // namespace transport
