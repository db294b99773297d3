#include "tools/prompts.hpp"

#include <spdlog/spdlog.h>

#include "tools/text.hpp"

namespace tools {

namespace {

using Arguments = mcp::Prompt::Arguments;

constexpr std::string_view kInstructions =
    "run_python executes code in a persistent, isolated IPython kernel. State persists: define "
    "things once and reuse them; do not reload data in each call. Show charts: just plot, figures "
    "come back as images. End a cell with an expression to see its value. Results name the "
    "session: pass `session` on if your host starts a new connection for each call. Bring data in "
    "with upload_file (by path where possible); files live in /workspace. A long execution "
    "answers `running` and goes on: poll it with wait_execution. The session as a notebook: "
    "pykeep://sessions/{session}/notebook.ipynb.";

constexpr int kDepth = 4;
constexpr std::size_t kMaxFiles = 1000;

struct Argument {
  const char* name;
  const char* description;
  bool required = false;
  const char* says = "";  // what a given one adds to the text; {} is its value
};

struct Row {
  const char* name;
  const char* title;
  const char* description;
  const char* text;
  std::vector<Argument> arguments;
};

constexpr const char* kFetch =
    "If list_files does not show it in the session, bring it in with upload_file first.";

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"analyse_file",
       "Analyse a file",
       "Look into a data file: what it holds, what is notable in it, with charts.",
       "Work with run_python, in one session, step by step. Look at the file first: size, format "
       "and encoding, the first rows, types, missing values. Then say in two or three sentences "
       "what it holds, find what is notable in it (distributions, relations, outliers, changes "
       "over time), and show the two or three charts that say most. End with the findings, each "
       "with the numbers behind it, and with what the data cannot tell.",
       {{"file", "The file: in the session, or on this machine", true,
         "Analyse the file {} with Python. "},
        {"question", "What you want to know", false, "Answer this above all: {}"}}},
      {"chart",
       "Make a chart",
       "Make a chart from a description of it.",
       "Work with run_python. Look at the data before you plot it. Label the axes with their "
       "units, give the chart a title that says what it shows, and choose scale, order and colours "
       "so that it can be read without the code. Look at the image that comes back and mend what "
       "is cut off, crowded or misleading. Then say in one sentence what it shows, and name the "
       "file of the original.",
       {{"description", "What it is to show", true, "Make this chart with Python: {}"},
        {"file", "The file with the data", false, "The data is in the file {}. "}}},
      {"clean_data",
       "Clean a data set",
       "Find and mend what is wrong in a data set, with an account of every change.",
       "Work with run_python, in one session. Look for what is wrong: types and formats that do "
       "not fit, missing and impossible values, duplicates, several spellings of one thing, units "
       "that are mixed. Show what you found with counts and examples before you change anything. "
       "Mend what is certain, leave and list what is not. Never write over the original: save the "
       "result beside it with -clean in its name. End with a table of the changes (what, why, how "
       "many rows) and the number of rows before and after.",
       {{"file", "The file: in the session, or on this machine", true,
         "Clean the data set {} with Python. "},
        {"rules", "What has to hold afterwards", false, "Afterwards this has to hold: {}"}}}};
  return all;
}

std::string filled(std::string text, const std::string& value) {
  return text.replace(text.find("{}"), 2, value);
}

// What is asked, how to go about it, and what else was said.
std::string text_for(const Row& row, const Arguments& given) {
  std::string text;
  for (const Argument& argument : row.arguments) {
    auto value = given.find(argument.name);
    if (value == given.end() || value->second.empty()) continue;
    text += filled(argument.says, value->second);
    if (std::string_view(argument.name) == "file") text += kFetch;
    text += "\n\n";
  }
  return text + row.text;
}

awaitable<mcp::GetPromptResult> get(const Row& row, const Arguments& given) {
  mcp::GetPromptResult result;
  result.description = row.description;
  mcp::PromptMessage& message = result.messages.emplace_back();
  message.role = "user";
  message.content = mcp::text_content(text_for(row, given));
  co_return result;
}

mcp::Prompt prompt(const Row& row) {
  mcp::Prompt prompt;
  prompt.info.name = row.name;
  prompt.info.title = row.title;
  prompt.info.description = row.description;
  for (const Argument& each : row.arguments) {
    mcp::PromptArgument& argument = prompt.info.arguments.emplace_back();
    argument.name = each.name;
    argument.description = each.description;
    argument.required = each.required;
  }
  prompt.get = [&row](mcp::Call&, const Arguments& given) { return get(row, given); };
  return prompt;
}

awaitable<std::vector<std::string>> files_of(std::shared_ptr<Session> session) {
  std::vector<std::string> paths;
  try {
    auto files = co_await session->files();
    auto listing = co_await files->list("", kDepth, kMaxFiles);
    for (const auto& entry : listing.entries)
      if (!entry.is_directory) paths.push_back(one_line(entry.path));
  } catch (const sandbox::FileError& failure) {
    spdlog::debug("no files to complete with: {}", failure.what());
  }
  co_return paths;
}

awaitable<std::vector<std::string>> complete(Sessions& sessions, mcp::Call& call,
                                             const mcp::CompleteParams& params) {
  auto own = sessions.live(call.peer().principal);  // the last one used comes first
  std::vector<std::string> values;
  if (params.argument.name == "session")
    for (const auto& session : own) values.push_back(session->handle());
  bool is_file = params.argument.name == "file" && params.ref.type == "ref/prompt";
  if (is_file && !own.empty()) values = co_await files_of(own.front());
  std::erase_if(
      values, [&](const std::string& value) { return !value.starts_with(params.argument.value); });
  co_return values;
}

}  // namespace

std::string instructions(bool network_isolation) {
  return std::string(kInstructions) +
         (network_isolation ? " There is no network unless a session was created with it."
                            : " Code has internet access.");
}

std::vector<mcp::Prompt> prompts() {
  std::vector<mcp::Prompt> all;
  for (const Row& row : rows()) all.push_back(prompt(row));
  return all;
}

mcp::Completer completer(Sessions& sessions) {
  return [&sessions](mcp::Call& call, const mcp::CompleteParams& params) {
    return complete(sessions, call, params);
  };
}

}  // namespace tools
