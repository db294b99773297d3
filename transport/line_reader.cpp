#include "transport/line_reader.hpp"

#include <algorithm>

namespace transport {

namespace asio = boost::asio;

void LineReader::take(const char* end) {
  std::size_t size = end - begin_;
  if (text_.size() + size > cap_) {
    too_long_ = true;
    text_ = {};  // gives the memory back
  }
  if (!too_long_) text_.append(begin_, size);
  begin_ = end;
}

async::awaitable<Line> LineReader::next() {
  auto token = asio::as_tuple(asio::use_awaitable);
  Line line;
  for (;;) {
    const char* newline = std::find(begin_, end_, '\n');
    take(newline);
    if (newline != end_) {
      ++begin_;
      line.kind = too_long_ ? Line::Kind::too_long : Line::Kind::whole;
      break;
    }
    auto [failed, size] = co_await in_.async_read_some(asio::buffer(chunk_), token);
    if (failed) {
      line.kind = text_.empty() ? Line::Kind::end : Line::Kind::cut;
      break;
    }
    begin_ = chunk_.data();
    end_ = begin_ + size;
  }
  line.text = std::exchange(text_, {});
  too_long_ = false;
  co_return line;
}

}  // namespace transport
