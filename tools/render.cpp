#include "tools/render.hpp"

#include <algorithm>
#include <cstdio>

#include "tools/content.hpp"
#include "tools/fatal_error.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"

namespace tools {

namespace json = boost::json;
using sandbox::Display;
using sandbox::Gap;
using sandbox::Output;
using sandbox::PythonError;
using sandbox::Text;
using Status = Execution::Status;

std::string_view status_name(Status status) {
  switch (status) {
    case Status::queued:
      return "queued";
    case Status::running:
      return "running";
    case Status::waiting_input:
      return "waiting_input";
    case Status::ok:
      return "ok";
    case Status::raised:
      return "raised";
    case Status::interrupted:
      return "interrupted";
    case Status::timed_out:
      return "timed_out";
    case Status::kernel_died:
      return "kernel_died";
    case Status::abandoned:
      return "abandoned";
  }
  return "";
}

namespace {

// Of a result's _meta, whose members are no text that RenderLimits counts.
constexpr std::size_t kMaxListed = 50;
constexpr std::size_t kMaxTypes = 8;
constexpr std::size_t kMaxTypeName = 80;

std::string seconds(std::chrono::steady_clock::duration time) {
  char text[32];
  double value = std::chrono::duration<double>(time).count();
  std::snprintf(text, sizeof text, value < 10 ? "%.1f s" : "%.0f s", value);
  return text;
}

const json::string* text_of(const Display& display, std::string_view mime) {
  const json::value* found = display.data.if_contains(mime);
  return found ? found->if_string() : nullptr;
}

// "<IPython.core.display.Markdown object>" says less than what it stands for.
bool is_placeholder(std::string_view plain) {
  return plain.starts_with("<") && plain.ends_with(" object>");
}

std::string readable(const Display& display) {
  const json::string* plain = text_of(display, "text/plain");
  for (const char* mime : {"text/markdown", "text/plain", "text/latex", "application/json",
                           "text/html", "image/svg+xml"}) {
    const json::string* text = text_of(display, mime);
    if (text == plain && plain && is_placeholder(*plain)) continue;
    if (text) return plain_text(*text);
  }
  return plain ? plain_text(*plain) : "";
}

std::string member(const json::object* object, const char* key) {
  const json::value* found = object ? object->if_contains(key) : nullptr;
  if (!found) return {};
  if (found->is_string()) return plain_text(found->get_string()).substr(0, 300);
  return found->is_number() ? json::serialize(*found) : "";
}

std::string describe_image(const Display& display, const std::string& mime) {
  const json::value* found = display.metadata.if_contains("image");
  const json::object* image = found ? found->if_object() : nullptr;
  std::string title = member(image, "title"), axes = member(image, "axes");
  std::string width = member(image, "width"), height = member(image, "height");
  std::string file = member(image, "file");
  std::string line = title.empty() ? "image" : "image \"" + title + "\"";
  if (!axes.empty()) line += ", " + axes;
  if (!width.empty() && !height.empty()) line += ", " + width + "x" + height + " px";
  line += ", " + mime.substr(mime.find('/') + 1);
  if (!file.empty()) line += ", original: /workspace/" + file;
  std::ranges::replace(line, '\n', ' ');
  return valid_utf8(line);  // a cut above may have split a character
}

void add(Content& content, const Display& display) {
  for (const auto& binary : display.binary) {
    if (!binary.mime.starts_with("image/")) continue;
    return content.image(binary.mime, binary.bytes, describe_image(display, binary.mime));
  }
  std::string text = readable(display);
  if (!text.empty()) content.line(text);
}

void add(Content& content, const PythonError& error) {
  std::string text;
  for (const std::string& line : error.traceback) text += plain_text(line) + "\n";
  if (text.empty()) text = plain_text(error.name + ": " + error.value) + "\n";
  content.line(text);
}

void add(Content& content, const Gap& gap) { content.gap(gap); }

void add_all(Content& content, const std::deque<Output>& outputs, bool died = false) {
  auto add_one = [&](const auto& what) {
    if constexpr (std::is_same_v<decltype(what), const Text&>)
      content.text(died ? shorten_fatal_error(plain_text(what.bytes)) : plain_text(what.bytes));
    else
      add(content, what);
  };
  for (const Output& output : outputs) std::visit(add_one, output.what);
}

std::string what_is_left(const Session& session, const Run& run) {
  std::string rescue = session.rescue(run);
  if (!rescue.empty()) return ". " + rescue;
  return ". Variables are lost; files in /workspace are kept; the next call starts a new kernel";
}

std::string fate(const Session& session, const Run& run) {
  if (run.execution->kept) return " and was interrupted: variables are kept";
  return " and did not stop when interrupted: the kernel was killed" + what_is_left(session, run);
}

std::string how_it_ended(const Session& session, const Run& run) {
  const Execution& execution = *run.execution;
  auto ran = [&] { return seconds(execution.ended - execution.started); };
  switch (execution.status) {
    case Status::interrupted:
      return "ran for " + ran() + fate(session, run);
    case Status::timed_out:
      return "timed out after " + seconds(execution.timeout) + fate(session, run);
    case Status::kernel_died:
      if (execution.unreachable)
        return "how it ended is not known: " + plain_text(execution.cause) +
               ". It is not run again by itself; the next call finds out whether the kernel, with "
               "its variables, is still there";
      return "the kernel died: " + plain_text(execution.cause) + what_is_left(session, run);
    case Status::abandoned:
      return execution.cause.empty() ? "not run: it was cancelled while it waited for its turn"
                                     : "not run: " + plain_text(execution.cause);
    default:
      return "";
  }
}

std::string how_to_go_on(const Session& session, const Execution& execution) {
  std::string wait = "call wait_execution with execution=\"" + execution.id + "\"";
  auto now = std::chrono::steady_clock::now();
  bool is_active = session.active() && session.active()->execution.get() == &execution;
  if (execution.status == Status::queued && session.active() && !is_active)
    return "queued behind execution " + session.active()->execution->id + "; " + wait;
  if (execution.status == Status::queued) return "queued: the kernel is starting; " + wait;
  std::string since = seconds(now - execution.started);
  if (execution.status == Status::waiting_input)
    return "waiting for an answer to input(), " + since + " after its start; " + wait;
  return "running for " + since + "; " + wait + ", or interrupt_execution to stop it";
}

// fork() and pthread_create() say EAGAIN, and Python no more than that.
bool lacks_processes(const PythonError& error) {
  bool fork = error.name == "BlockingIOError" && error.value.starts_with("[Errno 11]");
  bool thread = error.name == "RuntimeError" && error.value == "can't start new thread";
  return fork || thread;
}

void add_hints(Content& content, const Session& session, const Execution& execution) {
  if (execution.outputs.empty()) return;
  const auto* error = std::get_if<PythonError>(&execution.outputs.back().what);
  if (!error) return;
  if (lacks_processes(*error))
    content.remark("the sandbox has room for " + with_thousands(session.limits().processes) +
                   " processes and threads, also ended ones that were not waited for: end or await "
                   "some, or start anew with interrupt_execution and restart=true");
  if (error->name == "ModuleNotFoundError" && session.record().python == "system")
    content.remark(
        "this session runs on the system's Python and what it has; `pykeep template build` "
        "on the server's machine makes an environment with the usual packages");
  if (error->name == "MemoryError")
    content.remark("the sandbox has " + size_text(session.memory()) +
                   " of memory, with what variables hold: `del` what is not needed any more");
}

// Files that the execution left for its reader, as far as it said so.
json::array artifacts(const Execution& execution) {
  json::array paths;
  for (const Output& output : execution.outputs) {
    const auto* display = std::get_if<Display>(&output.what);
    const json::value* image = display ? display->metadata.if_contains("image") : nullptr;
    std::string file = member(image ? image->if_object() : nullptr, "file");
    if (!file.empty() && paths.size() < kMaxListed) paths.push_back(json::value(valid_utf8(file)));
  }
  if (!execution.full_output.empty()) paths.push_back(json::value(execution.full_output));
  return paths;
}

// What the sandbox calls them; longer than any real type's name, they are cut.
json::array mime_types(const Display& display) {
  json::array types;
  auto add_type = [&](std::string_view mime) {
    if (types.size() < kMaxTypes)
      types.push_back(json::value(first_characters(valid_utf8(mime), kMaxTypeName)));
  };
  for (const auto& entry : display.data) add_type(entry.key());
  for (const auto& binary : display.binary) add_type(binary.mime);
  return types;
}

json::object execution_meta(const Session& session, const Execution& execution) {
  json::array results;
  for (const Output& output : execution.outputs) {
    const auto* display = std::get_if<Display>(&output.what);
    if (display && results.size() < kMaxListed) results.push_back(mime_types(*display));
  }
  auto end = execution.finished() ? execution.ended : std::chrono::steady_clock::now();
  bool began = execution.started != std::chrono::steady_clock::time_point();
  json::object meta;
  meta["session"] = session.handle();
  meta["execution"] = execution.id;
  meta["status"] = status_name(execution.status);
  meta["execution_count"] = execution.number;
  meta["generation"] = execution.generation;
  meta["duration_ms"] =
      began ? std::chrono::duration_cast<std::chrono::milliseconds>(end - execution.started).count()
            : 0;
  meta["results"] = std::move(results);
  meta["artifacts"] = artifacts(execution);
  return meta;
}

std::string whole_text(const Session& session, const Execution& execution) {
  if (execution.full_output.empty()) return {};
  return with_thousands(execution.bytes_out) + " bytes in /workspace/" + execution.full_output +
         " (" + file_uri(session.handle(), execution.full_output) + ")";
}

}  // namespace

mcp::CallToolResult render(const Session& session, const Run& run, const RenderLimits& limits) {
  const Execution& execution = *run.execution;
  Content content(limits);
  for (const std::string& line : run.announcements) content.remark(plain_text(line));
  if (!execution.background.empty()) {
    content.remark("output from the background, since the last execution");
    add_all(content, execution.background);
    content.remark("end of the output from the background");
  }
  bool nothing = execution.outputs.empty();
  add_all(content, execution.outputs, execution.status == Status::kernel_died);
  for (const std::string& note : execution.notes) content.remark(plain_text(note));
  add_hints(content, session, execution);
  if (!execution.finished()) {
    content.remark(how_to_go_on(session, execution));
  } else if (std::string ending = how_it_ended(session, run); !ending.empty()) {
    content.remark(ending);
  } else if (nothing) {
    content.line("(no output)");
  }
  mcp::CallToolResult result;
  result.content = std::move(content).finish(whole_text(session, execution));
  if (result.content.empty()) result.content.push_back(mcp::text_content("(no output)"));
  if (execution.finished() && execution.status != Status::ok) result.isError = true;
  json::object meta;
  meta["io.pykeep/execution"] = execution_meta(session, execution);
  result._meta = std::move(meta);
  return result;
}

}  // namespace tools
