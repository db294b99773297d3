#include <algorithm>

#include "tools/notebook.hpp"
#include "tools/python_lines.hpp"
#include "tools/text.hpp"

namespace tools {

namespace json = boost::json;

namespace {

constexpr const char* kHead =
    "# The executions of a pykeep session, in order. What they showed is in its notebook.\n"
    "# Their working directory was /workspace, with the session's files.\n";

// user_ns: what a cell defines is there for the cells that are plain Python, and the reverse.
constexpr const char* kIPython =
    "\n# For the cells in IPython's syntax: pip install ipython\n"
    "from IPython.core.interactiveshell import InteractiveShell\n\n"
    "_ipython = InteractiveShell.instance(user_ns=globals())\n";

std::string comment(std::string_view text) {
  std::string out;
  for (const PythonLine& line : python_lines(text)) out += "# " + std::string(line.text) + "\n";
  return out;
}

std::string plain(const std::vector<PythonLine>& lines) {
  std::string out;
  for (const PythonLine& line : lines) out += std::string(line.text) + "\n";
  return out;
}

std::string attempt(const std::vector<PythonLine>& lines) {
  std::string out = "try:\n";
  for (const PythonLine& line : lines)
    out += (line.in_string || line.text.empty() ? "" : "    ") + std::string(line.text) + "\n";
  return out + "except (Exception, SystemExit) as _error:\n    print(repr(_error))\n";
}

// A JSON string is one of Python's too.
std::string in_ipython(const std::vector<PythonLine>& lines, bool may_raise) {
  std::string out = "_ipython.run_cell(\n";
  for (const PythonLine& line : lines)
    out += "    " + json::serialize(json::string(std::string(line.text) + "\n")) + "\n";
  return out + (may_raise ? ")\n" : ").raise_error()\n");
}

bool has_tag(const json::object& cell, std::string_view tag) {
  const json::value* tags = cell.at("metadata").as_object().if_contains("tags");
  if (!tags || !tags->is_array()) return false;
  for (const json::value& each : tags->get_array())
    if (each.is_string() && each.get_string() == tag) return true;
  return false;
}

}  // namespace

std::string script(Cells cells) {
  std::string text;
  bool uses_ipython = false;
  for (const json::object& cell : with_breaks(std::move(cells))) {
    const json::value* number = cell.if_contains("execution_count");
    std::string source(cell.at("source").as_string());
    std::ranges::replace(source, '\0', ' ');  // with one Python reads nothing of a file
    if (!number) {
      text += "\n" + comment(source);
      continue;
    }
    auto lines = python_lines(source);
    bool skipped = has_tag(cell, "skip-execution"), raised = has_tag(cell, "raises-exception");
    bool ipython = !skipped && needs_ipython(lines);
    uses_ipython |= ipython;
    text += "\n# %% In[" + json::serialize(*number) + "]" + (skipped ? ": not run here\n" : "\n");
    text += skipped   ? comment(source)
            : ipython ? in_ipython(lines, raised)
            : raised  ? attempt(lines)
                      : plain(lines);
  }
  return kHead + std::string(uses_ipython ? kIPython : "") + text;
}

}  // namespace tools
