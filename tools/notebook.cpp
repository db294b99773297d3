#include "tools/notebook.hpp"

#include <algorithm>

#include "mcp/base64.hpp"
#include "sandbox/history_file.hpp"
#include "tools/text.hpp"

namespace tools {

namespace json = boost::json;
using sandbox::Execution;
using Status = Execution::Status;

namespace {

constexpr std::size_t kMaxSource = 1 << 20;
constexpr std::size_t kNote = 200;      // the most that fit() adds to a cell
constexpr std::size_t kJsonDepth = 32;  // of a display; deeper it stays text

json::object stream(const char* name, std::string_view text) {
  json::object output;
  output["output_type"] = "stream";
  output["name"] = name;
  output["text"] = text;
  return output;
}

// Valid UTF-8, with the control characters that Jupyter and Python have a use for.
std::string as_written(std::string_view bytes) {
  std::string out;
  for (;;) {
    std::size_t end = std::min(bytes.find_first_of("\b\f\r\x1b"), bytes.size());
    out += valid_utf8(bytes.substr(0, end));
    if (end == bytes.size()) return out;
    out += bytes[end];
    bytes.remove_prefix(end + 1);
  }
}

json::object note(const std::string& text) { return stream("stderr", "[" + text + "]\n"); }

json::object markdown(std::string_view text) {
  json::object cell;
  cell["cell_type"] = "markdown";
  cell["metadata"] = json::object();
  cell["source"] = text;
  return cell;
}

// nbformat wants the value of a JSON type, where displays have its text.
json::value mime_value(std::string_view mime, const json::value& value) {
  if (!value.is_string()) return json::value(json::serialize(value));
  const json::string& text = value.get_string();
  if (mime != "application/json" && !mime.ends_with("+json")) return value;
  boost::system::error_code malformed;
  json::parse_options options;
  options.max_depth = kJsonDepth;
  json::value parsed = json::parse(text, malformed, {}, options);
  return malformed ? value : parsed;
}

json::object as_output(const sandbox::Text& text, int) {
  return stream(text.stream == sandbox::StreamName::out ? "stdout" : "stderr",
                as_written(text.bytes));
}

json::object as_output(const sandbox::Display& display, int number) {
  json::object data;
  for (const auto& part : display.data) data[part.key()] = mime_value(part.key(), part.value());
  for (const auto& binary : display.binary) data[binary.mime] = mcp::base64_encode(binary.bytes);
  json::object output;
  output["output_type"] = display.is_result ? "execute_result" : "display_data";
  if (display.is_result) output["execution_count"] = number;
  output["data"] = std::move(data);
  output["metadata"] = json::object();
  return output;
}

json::object as_output(const sandbox::PythonError& error, int) {
  json::array lines;
  for (const std::string& line : error.traceback) lines.push_back(json::value(as_written(line)));
  json::object output;
  output["output_type"] = "error";
  output["ename"] = valid_utf8(error.name);
  output["evalue"] = valid_utf8(error.value);
  output["traceback"] = std::move(lines);
  return output;
}

json::object as_output(const sandbox::Gap& gap, int) {
  return note(with_thousands(gap.bytes) + " bytes of text and " + with_thousands(gap.displays) +
              " displays left out");
}

std::string how_it_ended(const Execution& execution) {
  switch (execution.status) {
    case Status::interrupted:
      return "interrupted";
    case Status::timed_out:
      return "timed out";
    case Status::kernel_died:
      return "the kernel died: " + one_line(execution.cause);
    default:
      return "";
  }
}

// Without its end it would be other code.
std::string source_of(const Execution& execution) {
  if (execution.code.size() <= kMaxSource) return as_written(execution.code);
  return "# " + with_thousands(execution.code.size()) + " bytes of code, too large to be kept";
}

// Python did not even begin with it.
bool is_no_python(const Execution& execution) {
  if (execution.outputs.empty()) return false;
  const auto* error = std::get_if<sandbox::PythonError>(&execution.outputs.back().what);
  if (!error) return false;
  return error->name == "SyntaxError" || error->name == "IndentationError" ||
         error->name == "TabError";
}

// By SystemExit, of which the kernel says so (magics.py); a script would end there, too.
bool ended_by_exit(const Execution& execution) {
  if (execution.outputs.empty()) return false;
  const auto* text = std::get_if<sandbox::Text>(&execution.outputs.back().what);
  return text && text->bytes.find("(exit: the cell ended here;") != text->bytes.npos;
}

json::array tags(const Execution& execution) {
  json::array tags;
  bool skipped = execution.status > Status::raised || is_no_python(execution);
  if (skipped)
    tags.emplace_back("skip-execution");
  else if (execution.status == Status::raised || ended_by_exit(execution))
    tags.emplace_back("raises-exception");
  return tags;
}

void skip(json::object& cell) {
  json::array tags;
  tags.emplace_back("skip-execution");
  cell["metadata"].as_object()["tags"] = std::move(tags);
}

constexpr const char* kNewKernel =
    "A new kernel was started here: the variables from before were gone.";

std::string went_back(int execution) {
  return "The session went back to its state after execution " + std::to_string(execution) +
         ": what was executed since is skipped.";
}

// Of what stands as a string in the JSON of a result.
std::size_t cost(const json::value& value) {
  return json::serialize(json::string(json::serialize(value))).size();
}

int number_of(const json::object& cell) {
  const json::value* number = cell.if_contains("execution_count");
  return number && number->is_int64() ? static_cast<int>(number->get_int64()) : 0;
}

// What comes first stays, as far as there is room; `left` is what is then left of that.
void keep_outputs(json::array& outputs, std::size_t& left) {
  json::array kept;
  std::size_t missing = 0;
  for (json::value& output : outputs) {
    std::size_t size = cost(output);
    if (size > left) {
      ++missing;
      continue;
    }
    left -= size;
    kept.push_back(std::move(output));
  }
  if (missing > 0)
    kept.push_back(note(std::to_string(missing) + " outputs left out: it would be too large"));
  outputs = std::move(kept);
}

// Null: a cell of text.
json::array* outputs_of(json::object& cell) {
  json::value* outputs = cell.if_contains("outputs");
  return outputs ? outputs->if_array() : nullptr;
}

// An empty one has the number of the next one, too.
bool is_counted(const json::object& cell) {
  const json::string& source = cell.at("source").as_string();
  return number_of(cell) > 0 && source.find_first_not_of(" \t\f\r\n") != source.npos;
}

bool is_cell(const json::value& value) {
  const json::object* cell = value.if_object();
  if (!cell) return false;
  auto has = [&](const char* name, json::kind kind) {
    const json::value* member = cell->if_contains(name);
    return member && member->kind() == kind;
  };
  bool is_code = has("outputs", json::kind::array) && number_of(*cell) > 0;
  return has("source", json::kind::string) && has("metadata", json::kind::object) &&
         (is_code || !cell->contains("outputs"));
}

Cells read_cells(const std::filesystem::path& history) {
  Cells cells;
  json::parse_options options;
  options.max_depth = 2 * kJsonDepth;
  for (const std::string& line : sandbox::read_history(history)) {
    boost::system::error_code malformed;
    json::value value = json::parse(line, malformed, {}, options);
    if (!malformed && is_cell(value)) cells.push_back(std::move(value.get_object()));
  }
  return cells;
}

}  // namespace

json::object notebook_cell(const Execution& execution, int number, std::size_t bytes) {
  json::array outputs;
  auto add = [&](const auto& what) { outputs.push_back(as_output(what, number)); };
  for (const auto& output : execution.background) std::visit(add, output.what);
  for (const auto& output : execution.outputs) std::visit(add, output.what);
  if (std::string ending = how_it_ended(execution); !ending.empty())
    outputs.push_back(note(ending));
  json::object metadata;
  if (auto tagged = tags(execution); !tagged.empty()) metadata["tags"] = std::move(tagged);
  json::object cell;
  cell["cell_type"] = "code";
  cell["execution_count"] = number;
  cell["metadata"] = std::move(metadata);
  cell["source"] = source_of(execution);
  keep_outputs(outputs, bytes);
  cell["outputs"] = std::move(outputs);
  return cell;
}

void fit(Cells& cells, std::size_t bytes) {
  std::vector<std::size_t> bare;  // what each takes without its outputs
  for (json::object& cell : cells) {
    json::array* outputs = outputs_of(cell);
    json::array aside = outputs ? std::exchange(*outputs, json::array()) : json::array();
    bare.push_back(cost(cell) + kNote);
    if (outputs) *outputs = std::move(aside);
  }
  std::size_t left = bytes, first = cells.size();
  while (first > 0 && bare[first - 1] <= left) left -= bare[--first];
  for (std::size_t i = cells.size(); i > first; --i)
    if (json::array* outputs = outputs_of(cells[i - 1])) keep_outputs(*outputs, left);
  if (first == 0) return;
  cells.erase(cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(first));
  cells.insert(cells.begin(), markdown("Older executions are left out: it would be too large."));
}

Cells with_breaks(Cells cells) {
  Cells all;
  int last = 0;
  for (json::object& cell : cells) {
    int number = number_of(cell);
    bool is_code = number > 0;
    if (is_code && number <= last) {
      auto lost = all.rbegin();  // what was before may be missing
      for (; number > 1 && lost != all.rend() && number_of(*lost) >= number; ++lost) skip(*lost);
      all.push_back(markdown(number == 1 ? kNewKernel : went_back(number - 1)));
    }
    if (is_counted(cell)) last = number;
    all.push_back(std::move(cell));
  }
  return all;
}

std::string notebook(Cells cells) {
  std::string text = "{\"cells\": [\n";
  std::size_t index = 0;
  for (json::object& cell : with_breaks(std::move(cells))) {
    cell["id"] = "cell-" + std::to_string(++index);
    text += (index > 1 ? ",\n" : "") + json::serialize(cell);
  }
  return text +
         "\n],\n\"metadata\": {\"kernelspec\": {\"display_name\": \"Python 3\", \"language\": "
         "\"python\", \"name\": \"python3\"}, \"language_info\": {\"name\": \"python\"}},\n"
         "\"nbformat\": 4,\n\"nbformat_minor\": 5}\n";
}

std::string exported(const std::filesystem::path& history, ExportFormat format, std::size_t bytes) {
  Cells cells = read_cells(history);
  if (format == ExportFormat::script)
    for (json::object& cell : cells)
      if (json::array* outputs = outputs_of(cell)) outputs->clear();
  fit(cells, bytes);
  return format == ExportFormat::notebook ? notebook(std::move(cells)) : script(std::move(cells));
}

void shorten_history(const std::filesystem::path& history, std::size_t bytes) {
  Cells cells = read_cells(history);
  fit(cells, bytes);
  std::vector<std::string> lines;
  for (const json::object& cell : cells) lines.push_back(json::serialize(cell));
  sandbox::write_history(history, lines);
}

}  // namespace tools
