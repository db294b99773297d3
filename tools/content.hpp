#pragma once

#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/protocol.hpp"
#include "tools/render.hpp"

namespace tools {

// Collects a result's text and images in order, within RenderLimits.
class Content {
 public:
  explicit Content(const RenderLimits& limits) : limits_(limits) {}

  void text(std::string_view valid_utf8);
  // Text that stands on lines of its own.
  void line(std::string_view valid_utf8);
  // A line of ours among them: "[running for 45 s; …]".
  void remark(std::string_view line);
  // An image with the line that describes it; a line that says why, if it cannot be sent.
  void image(std::string_view mime, std::string_view bytes, const std::string& description);

  // Here something was left out already. A second gap only adds to the first one's count.
  void gap(const sandbox::Gap& gap);

  // The blocks. Too much text loses its middle, around the gap if there is one; the line that
  // stands there counts what is missing and says with `whole` where all of it is (empty: nowhere).
  std::vector<mcp::Content> finish(const std::string& whole) &&;

 private:
  struct Part {
    std::string text;
    std::string mime, base64;  // of an image
    bool is_gap = false;
  };
  using Parts = std::list<Part>;

  std::string& open_text();
  std::string& open_line();
  static std::size_t characters_in(Parts::iterator from, Parts::iterator to);
  Parts::iterator split(std::size_t at);
  void keep_first(Parts::iterator from, Parts::iterator to, std::size_t count);
  void keep_last(Parts::iterator from, Parts::iterator to, std::size_t count);
  void leave_out(Part& part, std::string_view what);

  RenderLimits limits_;
  Parts parts_;
  sandbox::Gap missing_;
  bool has_gap_ = false, line_ended_ = true;
  std::size_t images_ = 0, image_bytes_ = 0;
};

}  // namespace tools
