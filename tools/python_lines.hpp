#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tools {

// A physical line of Python, seen just closely enough to tell IPython's syntax from Python's.
struct PythonLine {
  std::string_view text;   // without its end
  bool in_string = false;  // begins inside a string: its indentation is the string's
  bool begins = true;      // begins a statement: not in a string, brackets or a continued line
  std::string code;        // without comments and what is in strings
};

// Of any text at all; the views are into `source`.
std::vector<PythonLine> python_lines(std::string_view source);

// Whether a cell needs IPython: magics, `!commands`, `help?`, automagic (`pip install x`), `await`
// outside a function, prompts (`>>> x`) and an indentation that were copied with it. For a text
// that the scan above misreads, either answer.
bool needs_ipython(const std::vector<PythonLine>& lines);

}  // namespace tools
