#include "tools/notebook.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/scratch.hpp"

namespace json = boost::json;
using sandbox::Execution;
using tools::Cells;

namespace {

struct Ran {
  const char* code;
  int number;
  Execution::Status status = Execution::Status::ok;
  std::string prints = "";
};

Cells cells_of(const std::vector<Ran>& all) {
  boost::asio::io_context io;
  Cells cells;
  for (const Ran& ran : all) {
    Execution execution(io.get_executor(), "e", ran.code);
    execution.status = ran.status;
    execution.outputs.push_back({sandbox::Text{sandbox::StreamName::out, ran.prints}});
    cells.push_back(tools::notebook_cell(execution, ran.number, 1 << 20));
  }
  return cells;
}

json::array parsed(const std::string& notebook) {
  return json::parse(notebook).at("cells").as_array();
}

std::string kinds(const json::array& cells) {
  std::string text;
  for (const json::value& cell : cells) {
    const json::value* tags = cell.at("metadata").as_object().if_contains("tags");
    text += cell.at("cell_type") == "markdown" ? 'm' : tags ? tags->at(0).as_string().front() : 'c';
  }
  return text;
}

}  // namespace

TEST_CASE("a notebook says where variables went, and skips what is not part of them") {
  using Status = Execution::Status;
  struct Row {
    const char* what;
    std::vector<Ran> ran;
    const char* kinds;  // c: runs, r: may raise, s: skipped, m: a text
  };
  const Row rows[] = {
      {"nothing special", {{"a", 1}, {"b", 2}}, "cc"},
      {"how cells ended",
       {{"a", 1, Status::raised}, {"b", 2, Status::timed_out}, {"c", 3, Status::interrupted}},
       "rss"},
      {"a new kernel", {{"a", 1}, {"b", 2}, {"c", 1}}, "ccmc"},
      {"back to a checkpoint", {{"a", 1}, {"b", 2}, {"c", 3}, {"d", 2}, {"e", 3}}, "cssmcc"},
      {"twice", {{"a", 1}, {"b", 2}, {"c", 2}, {"d", 2}}, "csmsmc"},
      {"back after a new kernel", {{"a", 1}, {"b", 1}, {"c", 2}, {"d", 2}}, "cmcsmc"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(kinds(parsed(tools::notebook(cells_of(row.ran)))) == row.kinds);
  }
}

TEST_CASE("outputs go before code, and the old before the new") {
  std::string large(100'000, 'x');
  std::vector<Ran> ran;
  for (int i = 1; i <= 4; ++i) ran.push_back({"a", i, Execution::Status::ok, large});
  Cells cells = cells_of(ran);
  tools::fit(cells, 220'000);
  std::string kept;
  for (json::object& cell : cells)
    kept += cell["outputs"].at(0).at("text").as_string().size() == large.size() ? 'k' : '-';
  CHECK(kept == "--kk");
  CHECK(json::serialize(json::array(cells.begin(), cells.end())).size() < 220'000);
  tools::fit(cells, 1'000);
  CHECK(kinds(json::array(cells.begin(), cells.end())).front() == 'm');
  CHECK(cells.size() < 5);
  tools::fit(cells, 0);
  CHECK(cells.size() == 1);
}

TEST_CASE("a script goes on where the session did") {
  std::vector<Ran> ran{{"x = '''\n  y'''\nz", 1, Execution::Status::raised},
                       {"exit(", 2, Execution::Status::kernel_died},
                       {"%cd \"x\"", 1}};
  std::string text = tools::script(cells_of(ran));
  CHECK(text.find("try:\n    x = '''\n  y'''\n    z\nexcept (Exception, SystemExit)") != text.npos);
  CHECK(text.find("# exit(\n\n# A new kernel was started") != text.npos);
  CHECK(text.find("run_cell(\n    \"%cd \\\"x\\\"\\n\"\n).raise_error()\n") != text.npos);
}

TEST_CASE("what is skipped stays a comment, and control characters do not spoil a script") {
  std::vector<Ran> ran{{"def f(:\rprint('ran')", 1, Execution::Status::kernel_died},
                       {"a = '\x1b'\f\rb = 2", 1}};
  std::string text = tools::script(cells_of(ran));
  CHECK(text.find("# def f(:\n# print('ran')\n") != text.npos);
  CHECK(text.find("a = '\x1b'\f\nb = 2\n") != text.npos);
  auto cells = cells_of({{"x", 1}});
  cells[0]["source"] = json::string("'\0'", 3);
  CHECK(tools::script(cells).find('\0') == text.npos);
}

TEST_CASE("an empty execution takes nothing back") {
  CHECK(tools::with_breaks(cells_of({{"a", 1}, {" \n", 2}, {"b", 2}})).size() == 3);
}

TEST_CASE("a history without its beginning goes back as far as it is there") {
  auto cells = tools::with_breaks(cells_of({{"a", 5}, {"b", 3}}));
  REQUIRE(cells.size() == 3);
  CHECK(json::serialize(cells[0]["metadata"]) == R"({"tags":["skip-execution"]})");
}

TEST_CASE("a history that is damaged gives what is whole of it") {
  testing::Scratch scratch;
  auto file = scratch.path / "history.jsonl";
  std::string cell = json::serialize(cells_of({{"good", 1}})[0]);
  std::string deep(100'000, '[');
  std::ofstream(file) << cell << "\nnot json\n[]\n{}\n"
                      << deep << "\n{\"source\": 1}\n\n"
                      << cell << "\n"
                      << cell.substr(0, 20);
  CHECK(parsed(tools::exported(file, tools::ExportFormat::notebook, 1 << 20)).size() ==
        3);  // + a break
  CHECK(parsed(tools::exported(scratch.path / "none", tools::ExportFormat::notebook, 100)).empty());
  tools::shorten_history(file, 1 << 20);
  CHECK(std::filesystem::file_size(file) == 2 * (cell.size() + 1));
}

TEST_CASE("displays are as Jupyter has them") {
  boost::asio::io_context io;
  Execution execution(io.get_executor(), "e", "c");
  execution.status = Execution::Status::ok;
  sandbox::Display display;
  display.is_result = true;
  display.data["text/plain"] = "\xf0\x9f\x98\x80";
  display.data["application/json"] = "{\"a\": [1]}";
  display.data["application/x+json"] = "not json";
  display.binary.push_back({"image/png", std::string("\x89PNG\0", 5)});
  execution.outputs.push_back({std::move(display)});
  execution.outputs.push_back({sandbox::Text{sandbox::StreamName::err,
                                             "a\xff"
                                             "b"}});
  json::object cell = tools::notebook_cell(execution, 7, 1 << 20);
  const json::value& output = cell["outputs"].at(0);
  CHECK(output.at("output_type") == "execute_result");
  CHECK(output.at("execution_count") == 7);
  CHECK(output.at("data").at("application/json").at("a").at(0) == 1);
  CHECK(output.at("data").at("application/x+json") == "not json");
  CHECK(output.at("data").at("image/png") == "iVBORwA=");
  CHECK(cell["outputs"].at(1).at("text") ==
        "a\xef\xbf\xbd"
        "b");
}
