#pragma once

#include <cstdint>
#include <deque>
#include <string>

#include "sandbox/execution.hpp"
#include "sandbox/kernel.hpp"

namespace sandbox {

// Keeps a list of outputs within OutputLimits while it grows: adjacent pieces of one stream are one
// Text; when there is too much text the middle is cut out and a Gap counts what it held, to the
// byte and the line. While it grows the list may hold up to `tail_bytes` more than it will in the
// end.
class OutputLog {
 public:
  // `outputs` outlives the log, and nobody else changes it meanwhile.
  OutputLog(std::deque<Output>& outputs, const OutputLimits& limits)
      : outputs_(outputs), limits_(limits) {}

  void text(StreamName stream, std::string_view bytes);
  // An update takes the place of the display that has its id, if that is still held.
  void display(Display display, bool update);
  void error(PythonError error);
  // Cuts down to the limits; afterwards nothing is added any more.
  void finish();

  // All text so far, while none of it has been cut out.
  std::string whole() const;
  std::uint64_t text_bytes() const { return text_bytes_; }  // ever added

 private:
  bool replace(Display& display, std::uint64_t weight);
  Gap& gap();
  std::size_t end_of_head();
  void cut_middle();

  std::deque<Output>& outputs_;
  OutputLimits limits_;
  std::uint64_t text_bytes_ = 0;
  std::uint64_t held_ = 0;  // cost of the text after the gap, or of all text while there is none
  std::uint64_t display_bytes_ = 0;
  std::size_t displays_ = 0;
  std::size_t errors_ = 0;
  std::optional<std::size_t> gap_;  // its index in outputs_
};

}  // namespace sandbox
