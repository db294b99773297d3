// What a reader gets of an execution that code in the sandbox filled with anything it liked.

#include "tools/render.hpp"

#include <doctest/doctest.h>

#include "tests/tools/fake_backend.hpp"
#include "tools/text.hpp"

namespace json = boost::json;
using sandbox::Display;
using sandbox::Execution;
using sandbox::Output;

namespace {

struct Desk : fake::World {
  Desk() {
    json::object code;
    code["code"] = "ok";
    call("run_python", code);
    session = sessions.live("local").front();
    run.execution = std::make_shared<Execution>(io.get_executor(), "e-1", "code");
    run.execution->status = Execution::Status::ok;
  }
  ~Desk() { session.reset(); }
  void show(Display display) {
    Output output;
    output.what = std::move(display);
    run.execution->outputs.push_back(std::move(output));
  }
  std::string text() { return fake::text_of(tools::render(*session, run)); }

  std::shared_ptr<tools::Session> session;
  tools::Run run;
};

Display with(const char* mime, const char* text) {
  Display display;
  display.data[mime] = text;
  return display;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("of a display's forms the most readable one is shown") {
  struct Row {
    const char* forms;
    const char* text;
  };
  for (const Row& row :
       {Row{R"({"text/plain":"42"})", "42"},
        Row{R"({"text/plain":"<IPython.core.display.Markdown object>","text/markdown":"# T"})",
            "# T"},
        Row{R"({"text/plain":"   a\n0  1","text/html":"<table>"})", "   a\n0  1"},
        Row{R"({"text/plain":"<x object>","text/html":"<b>only</b>"})", "<b>only</b>"},
        Row{R"({"text/plain":"<x object>"})", "<x object>"}}) {
    CAPTURE(row.forms);
    Desk desk;
    Display display;
    display.data = json::parse(row.forms).as_object();
    desk.show(std::move(display));
    CHECK(desk.text() == row.text);
  }
}

TEST_CASE("how an execution ended, and how to go on, is said in words") {
  struct Row {
    Execution::Status status;
    bool kept;
    const char* text;
    bool is_error;
  };
  using Status = Execution::Status;
  for (const Row& row : {Row{Status::interrupted, true, "variables are kept", true},
                         Row{Status::interrupted, false, "Variables are lost", true},
                         Row{Status::timed_out, true, "timed out after", true},
                         Row{Status::kernel_died, false, "the kernel died: the reason", true},
                         Row{Status::abandoned, true, "not run: the reason", true},
                         Row{Status::running, true, "wait_execution", false},
                         Row{Status::queued, true, "wait_execution", false},
                         Row{Status::ok, true, "(no output)", false}}) {
    CAPTURE(row.text);
    Desk desk;
    desk.run.execution->status = row.status;
    desk.run.execution->kept = row.kept;
    desk.run.execution->cause = "the reason";
    CHECK(contains(desk.text(), row.text));
    CHECK(tools::render(*desk.session, desk.run).isError.value_or(false) == row.is_error);
  }
}

TEST_CASE("whatever the sandbox puts into it, a result is valid UTF-8 and below a million bytes") {
  Desk desk;
  std::string wide;
  for (int i = 0; i < 5000; ++i) wide += "漢";
  for (int i = 0; i < 300; ++i) {
    Display display = with("text/plain", wide.c_str());
    for (int k = 0; k < 50; ++k) display.data["x-" + std::to_string(k) + wide] = wide;
    for (int k = 0; k < 20; ++k) {
      Display::Binary binary;
      binary.mime = "application/" + wide;
      display.binary.push_back(std::move(binary));
    }
    json::object image;
    image["title"] = wide;
    image["file"] = wide;
    display.metadata["image"] = std::move(image);
    desk.show(std::move(display));
  }
  auto result = tools::render(*desk.session, desk.run);
  std::string meta = json::serialize(*result._meta), text = fake::text_of(result);
  CHECK(tools::is_text(meta));
  CHECK(tools::is_text(text));
  CHECK(meta.size() + text.size() < 1'000'000);
}

TEST_CASE("a display of a type it does not know is named, an image is checked") {
  Desk desk;
  Display display;
  Display::Binary binary;
  binary.mime = "image/png";
  binary.bytes = "GIF89a";
  display.binary.push_back(std::move(binary));
  desk.show(std::move(display));
  CHECK(contains(desk.text(), "not shown: not a sound image/png"));
}
