#include "tools/resources.hpp"

#include <algorithm>

#include "mcp/base64.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"

namespace tools {

namespace json = boost::json;

namespace {

// A whole result stays below 1,000,000 bytes: 700,000 are 933,336 as base64; text may double when
// JSON escapes it.
constexpr std::size_t kMaxBinary = 700'000;
constexpr std::size_t kMaxText = 450'000;
constexpr std::size_t kMaxExport = 900'000;  // of a notebook or script, as JSON
constexpr std::size_t kMaxCode = 100'000;    // of an execution's text; longer code is cut

std::string_view mime_of(std::string_view path, bool readable) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".csv", "text/csv"},
      {".gif", "image/gif"},
      {".html", "text/html"},
      {".ipynb", "application/x-ipynb+json"},
      {".jpeg", "image/jpeg"},
      {".jpg", "image/jpeg"},
      {".json", "application/json"},
      {".md", "text/markdown"},
      {".pdf", "application/pdf"},
      {".png", "image/png"},
      {".py", "text/x-python"},
      {".svg", "image/svg+xml"},
      {".txt", "text/plain"},
      {".webp", "image/webp"},
      {".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
      {".zip", "application/zip"}};
  for (const auto& [ending, mime] : kTypes)
    if (path.ends_with(ending)) return mime;
  return readable ? "text/plain" : "application/octet-stream";
}

bool is_readable(std::string_view bytes) { return bytes.size() <= kMaxText && is_text(bytes); }

json::object as_json(const sandbox::Output& output) {
  json::object out;
  if (const auto* text = std::get_if<sandbox::Text>(&output.what)) {
    out["type"] = text->stream == sandbox::StreamName::out ? "stdout" : "stderr";
    out["text"] = valid_utf8(text->bytes);
  } else if (const auto* display = std::get_if<sandbox::Display>(&output.what)) {
    out["type"] = "display";
    out["data"] = display->data;
    json::array binary;
    for (const auto& part : display->binary) {
      json::object entry;
      entry["mime"] = part.mime;
      entry["bytes"] = part.bytes.size();
      binary.push_back(std::move(entry));
    }
    out["binary"] = std::move(binary);
    out["metadata"] = display->metadata;
  } else if (const auto* error = std::get_if<sandbox::PythonError>(&output.what)) {
    out["type"] = "error";
    out["name"] = valid_utf8(error->name);
    out["value"] = valid_utf8(error->value);
    json::array lines;
    for (const std::string& line : error->traceback) lines.push_back(json::value(valid_utf8(line)));
    out["traceback"] = std::move(lines);
  } else if (const auto* gap = std::get_if<sandbox::Gap>(&output.what)) {
    out["type"] = "left_out";
    out["bytes"] = gap->bytes;
    out["lines"] = gap->lines;
    out["displays"] = gap->displays;
  }
  return out;
}

// All typed results of an execution (HTML, JSON, markdown, SVG …); images are named with their size
// and lie as files in the workspace.
std::string execution_text(const Execution& execution) {
  json::object out;
  out["execution_count"] = execution.number;
  out["code"] = valid_utf8(without_cut_end(std::string_view(execution.code).substr(0, kMaxCode)));
  json::array outputs;
  std::size_t left = kMaxText - kMaxCode;
  for (const sandbox::Output& output : execution.outputs) {
    json::object entry = as_json(output);
    std::size_t size = json::serialize(entry).size();
    if (size > left) {
      outputs.push_back(json::value("(the rest is too large for a resource)"));
      break;
    }
    left -= size;
    outputs.push_back(std::move(entry));
  }
  out["outputs"] = std::move(outputs);
  return json::serialize(out);
}

}  // namespace

std::vector<mcp::ResourceTemplate> SessionResources::templates() const {
  mcp::ResourceTemplate files;
  files.uriTemplate = "pykeep://sessions/{session}/files/{+path}";
  files.name = "session-file";
  files.title = "File of a session";
  files.description = "A file below /workspace of a session, as results and list_files name it.";
  mcp::ResourceTemplate executions;
  executions.uriTemplate = "pykeep://sessions/{session}/executions/{n}";
  executions.name = "execution";
  executions.title = "Outputs of an execution";
  executions.description =
      "Code and typed outputs (text, HTML, JSON, markdown, SVG) of In[n] of a session.";
  executions.mimeType = "application/json";
  mcp::ResourceTemplate notebook;
  notebook.uriTemplate = "pykeep://sessions/{session}/notebook.ipynb";
  notebook.name = "session-notebook";
  notebook.title = "Session as a notebook";
  notebook.description = "All executions of a session, with text and charts, for Jupyter.";
  notebook.mimeType = std::string(mime_of(notebook.uriTemplate, true));
  mcp::ResourceTemplate script;
  script.uriTemplate = "pykeep://sessions/{session}/script.py";
  script.name = "session-script";
  script.title = "Session as a script";
  script.description = "The code of all executions of a session, to be run again.";
  script.mimeType = std::string(mime_of(script.uriTemplate, true));
  std::vector<mcp::ResourceTemplate> all;
  all.push_back(std::move(files));
  all.push_back(std::move(executions));
  all.push_back(std::move(notebook));
  all.push_back(std::move(script));
  return all;
}

awaitable<mcp::ReadResourceResult> SessionResources::read(mcp::Call& call, std::string uri) {
  auto parsed = parse_resource_uri(uri);
  if (!parsed) throw mcp::ResourceNotFound(uri);
  auto session = co_await sessions_.reach(call.peer().principal, parsed->session);
  if (!session) throw mcp::ResourceNotFound(uri);
  mcp::ReadResourceResult result;
  if (parsed->execution > 0) {
    auto run = session->runs().find(parsed->execution);
    if (!run) throw mcp::ResourceNotFound(uri);
    mcp::ResourceContents contents;
    contents.uri = std::move(uri);
    contents.mimeType = "application/json";
    contents.text = execution_text(*run->execution);
    result.contents.push_back(std::move(contents));
    co_return result;
  }
  if (parsed->whole) {
    mcp::ResourceContents contents;
    contents.mimeType = std::string(mime_of(uri, true));
    contents.uri = std::move(uri);
    contents.text = co_await session->executed().exported(*parsed->whole, kMaxExport);
    result.contents.push_back(std::move(contents));
    co_return result;
  }
  auto contents = co_await read_file(session, std::move(parsed->file), std::move(uri));
  result.contents.push_back(std::move(contents));
  co_return result;
}

awaitable<mcp::ResourceContents> SessionResources::read_file(std::shared_ptr<Session> session,
                                                             std::string path, std::string uri) {
  std::string bytes;
  try {
    auto files = co_await session->files();
    bytes = co_await files->read(path, 0, kMaxBinary + 1);
  } catch (const sandbox::FileError&) {
    throw mcp::ResourceNotFound(uri);
  }
  if (bytes.size() > kMaxBinary)
    throw mcp::Error(mcp::ErrorCode::internal_error,
                     "The file is larger than a resource may be (" + with_thousands(kMaxBinary) +
                         " bytes): read it in parts with run_python");
  mcp::ResourceContents contents;
  contents.uri = std::move(uri);
  bool readable = is_readable(bytes);
  contents.mimeType = std::string(mime_of(path, readable));
  if (readable)
    contents.text = std::move(bytes);
  else
    contents.blob = mcp::base64_encode(bytes);
  co_return contents;
}

}  // namespace tools
