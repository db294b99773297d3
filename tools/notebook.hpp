#pragma once

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/execution.hpp"

namespace tools {

// The executions of a session, oldest first, as code cells of Jupyter's notebook format (nbformat
// 4.5; `source` is one string). Tags say how each is to be run again, to Jupyter's own tools too
// (nbclient): "raises-exception" and goes on, "skip-execution".
using Cells = std::vector<boost::json::object>;

// An execution that has ended, as In[number]. Text, displays with the images that results show,
// errors; at most about `bytes` of them. `execution` is only read.
boost::json::object notebook_cell(const sandbox::Execution& execution, int number,
                                  std::size_t bytes);

// Leaves out outputs, the oldest first, and then the oldest cells, until all take at most `bytes`
// as JSON within JSON. What was left out says so.
void fit(Cells& cells, std::size_t bytes);

// Adds what no cell says: where a new kernel began, and where the session went back to a state
// before, whose later executions are then tagged to be skipped.
Cells with_breaks(Cells cells);

// An .ipynb file. It names neither the session nor this machine: notebooks are passed on.
std::string notebook(Cells cells);

// The same as a Python script (script.cpp): cells stand as they were, set off by "# %%". One that
// raised is in a `try`, one that is to be skipped is a comment, and what is IPython's syntax rather
// than Python's runs in IPython.
std::string script(Cells cells);

enum class ExportFormat { notebook, script };

// A session's history file as either, at most about `bytes`. Blocks.
std::string exported(const std::filesystem::path& history, ExportFormat format, std::size_t bytes);

// The history file itself cut down to about `bytes`. Blocks; throws StoreError.
void shorten_history(const std::filesystem::path& history, std::size_t bytes);

}  // namespace tools
