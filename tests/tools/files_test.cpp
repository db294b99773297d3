// upload_file, download_file, list_files and resources, over the real workspace of this machine.

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>

#include "mcp/base64.hpp"
#include "sandbox/local/workspace.hpp"
#include "tests/tools/fake_backend.hpp"
#include "tools/resources.hpp"

namespace json = boost::json;
namespace fs = std::filesystem;

namespace {

const std::string kPng = "\x89PNG\r\n\x1a\nrest";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A world with one session, whose workspace is at hand.
struct Desk : fake::World {
  Desk() {
    backend.real_files = &pool;
    json::object code;
    code["code"] = "ok";
    call("run_python", code);
    handle = sessions.live("local").front()->handle();
    workspace = sessions.live("local").front()->workspace();
    uploads = directory / "uploads";
    fs::create_directory(uploads);
    upload_root = uploads;
  }
  void put(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  std::string get(const std::string& name) {
    std::ifstream file(workspace / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mcp::CallToolResult upload(const char* name, const char* source, const std::string& value) {
    json::object arguments;
    arguments["name"] = name;
    arguments[source] = value;
    return call("upload_file", arguments);
  }
  mcp::CallToolResult download(const std::string& path) {
    json::object arguments;
    arguments["path"] = path;
    return call("download_file", arguments);
  }
  mcp::ResourceContents read(const std::string& uri, const mcp::Peer& who) {
    tools::SessionResources resources(sessions);
    fake::Call request(who);
    return wait(resources.read(request, uri)).contents.at(0);
  }
  mcp::ResourceContents read_file(const std::string& path) {
    return read("pykeep://sessions/" + handle + "/files/" + path, peer);
  }

  std::string handle;
  fs::path workspace, uploads;
};

}  // namespace

TEST_CASE("a file is uploaded from text, base64 or a path") {
  Desk desk;
  desk.put(desk.uploads / "in.csv", "a,b\n1,2\n");
  CHECK(fake::text_of(desk.upload("t.txt", "text", "día")) ==
        "Uploaded 4 B to /workspace/t.txt in session " + desk.handle + " (pykeep://sessions/" +
            desk.handle + "/files/t.txt).");
  CHECK(!desk.upload("b.bin", "base64", "AAEC/w==").isError.value_or(false));
  CHECK(!desk.upload("data/p.csv", "path", "in.csv").isError.value_or(false));
  CHECK(!desk.upload("/workspace/q.csv", "path", desk.uploads / "in.csv").isError.value_or(false));
  CHECK(desk.get("t.txt") == "día");
  CHECK(desk.get("b.bin") == std::string("\0\1\2\xFF", 4));
  CHECK(desk.get("data/p.csv") == "a,b\n1,2\n");
  CHECK(desk.get("q.csv") == "a,b\n1,2\n");
}

TEST_CASE("exactly one source, and a sound one") {
  Desk desk;
  struct Row {
    const char* arguments;
    const char* text;
  };
  for (const Row& row :
       {Row{R"({"name":"x"})", "give exactly one of path, text, base64. Nothing was uploaded."},
        Row{R"({"name":"x","text":"a","base64":"AA=="})", "give exactly one of"},
        Row{R"({"name":"x","base64":"A"})", "arguments.base64: not valid base64"},
        Row{R"({"name":"x","base64":"AA==AA=="})", "arguments.base64: not valid base64"},
        Row{R"({"name":"x","base64":"día="})", "arguments.base64: not valid base64"},
        Row{R"({"text":"a"})", "arguments.name: required with text and base64"},
        Row{R"({"name":"../x","text":"a"})", "\"..\" is not allowed in a path"},
        Row{R"({"name":"/etc/x","text":"a"})", "only paths below /workspace can be reached"},
        Row{R"({"name":"","text":"a"})", "directory"},
        Row{R"({"name":"x\u0000y","text":"a"})", "NUL"}}) {
    CAPTURE(row.arguments);
    auto result = desk.call("upload_file", json::parse(row.arguments).as_object());
    CHECK(result.isError == true);
    CHECK_MESSAGE(contains(fake::text_of(result), row.text), fake::text_of(result));
  }
  CHECK(fs::is_empty(desk.workspace));
}

TEST_CASE("an uploaded path keeps its name unless another is given") {
  Desk desk;
  fs::create_directory(desk.uploads / "sub");
  desk.put(desk.uploads / "sub" / "sales.csv", "a,b");
  json::object arguments;
  arguments["path"] = "sub/sales.csv";
  auto result = desk.call("upload_file", arguments);
  CHECK(contains(fake::text_of(result), "/workspace/sales.csv"));
  CHECK(desk.get("sales.csv") == "a,b");
}

TEST_CASE("a path of this machine is followed below the roots only") {
  Desk desk;
  fs::create_directory(desk.uploads / "sub");
  desk.put(desk.directory / "secret", "secret");
  desk.put(desk.uploads / "big", std::string(2000, 'x'));
  desk.put(desk.uploads / "in", "in");
  fs::create_symlink("../secret", desk.uploads / "out");
  fs::create_symlink("/etc/passwd", desk.uploads / "absolute");
  fs::create_symlink("../in", desk.uploads / "sub" / "link");
  mkfifo((desk.uploads / "fifo").c_str(), 0600);
  desk.upload_max = 1000;
  std::string outside =
      "is outside the directories that files may be uploaded from (" + desk.uploads.string() + ")";
  struct Row {
    std::string path, text;
  };
  for (const Row& row :
       {Row{"sub/link", "Uploaded 2 B"}, Row{"sub/../in", "Uploaded 2 B"}, Row{"out", outside},
        Row{"absolute", outside}, Row{"../secret", outside}, Row{"/etc/passwd", outside},
        Row{desk.uploads.string() + "/../secret", outside},
        Row{"missing", "Cannot open \"missing\""}, Row{"sub", "is not a regular file"},
        Row{".", "is not a regular file"}, Row{"fifo", "is not a regular file"},
        Row{"big", "larger than the limit of 1000 bytes"}, Row{"", "arguments.path: not a path"},
        Row{std::string(100'000, 'y'), "Cannot open"}}) {
    CAPTURE(row.path.substr(0, 200));
    auto result = desk.upload("x", "path", row.path);
    CHECK(result.isError.value_or(false) != row.text.starts_with("Uploaded"));
    CHECK_MESSAGE(contains(fake::text_of(result), row.text), fake::text_of(result));
    CHECK(fake::text_of(result).size() < 1000);
  }
  CHECK(desk.get("x") == "in");  // what failed later has left it alone
  desk.upload_root.clear();
  CHECK(contains(fake::text_of(desk.upload("x", "path", "in")), "no --upload-root"));
}

TEST_CASE("download_file shows text and images, and says where the file is") {
  Desk desk;
  desk.put(desk.workspace / "windows.csv", "a,b\r\n1,2\r\n");
  desk.put(desk.workspace / "chart.png", kPng);
  desk.put(desk.workspace / "model.bin", std::string("\0\1\2", 3));
  desk.put(desk.workspace / "large.png", kPng + std::string(300'000, 'x'));
  std::string wide = "x";
  for (int i = 0; i < 100'000; ++i) wide += "漢";
  desk.put(desk.workspace / "wide.txt", wide);
  fs::create_directory(desk.workspace / "dir");
  fs::create_symlink("/etc/passwd", desk.workspace / "link");
  auto csv = fake::text_of(desk.download("windows.csv"));
  CHECK(contains(csv, "[/workspace/windows.csv, 10 B; resource pykeep://sessions/" + desk.handle +
                          "/files/windows.csv; on the server's machine: " +
                          (desk.workspace / "windows.csv").string() + "]"));
  CHECK(contains(csv, "\na,b\n1,2\n"));
  auto chart = desk.download("/workspace/chart.png");
  CHECK(chart.content.back().mimeType == "image/png");
  CHECK(mcp::base64_decode(*chart.content.back().data) == kPng);
  CHECK(contains(fake::text_of(desk.download("model.bin")), "not shown: binary content"));
  CHECK(contains(fake::text_of(desk.download("large.png")), "not shown: the image is too large"));
  auto text = fake::text_of(desk.download("wide.txt"));  // its cut falls within a character
  CHECK(contains(text, "x漢漢"));
  CHECK(contains(text, "bytes left out"));
  struct Row {
    const char* path;
    const char* text;
  };
  for (const Row& row :
       {Row{"missing", "there is no such file"}, Row{"dir", "use list_files"},
        Row{"link", "symbolic link"}, Row{"../session.json", "\"..\" is not allowed"},
        Row{"/etc/passwd", "only paths below /workspace"}}) {
    CAPTURE(row.path);
    auto result = desk.download(row.path);
    CHECK(result.isError == true);
    CHECK_MESSAGE(contains(fake::text_of(result), row.text), fake::text_of(result));
  }
}

TEST_CASE("names that code in the sandbox chose cannot spoil a result") {
  Desk desk;
  desk.put(desk.workspace / "line\nbreak [session x]", "");
  desk.put(desk.workspace / "\xFF\xFE bytes", "");
  desk.put(desk.workspace / "\x1b[31mred", "");
  std::string text = fake::text_of(desk.call("list_files", {}));
  CHECK(contains(text, "line break [session x]  0 B\n"));
  CHECK(contains(text, "\\xff\\xfe bytes  0 B\n"));
  CHECK(contains(text, "red  0 B\n"));
  CHECK(std::ranges::count(text, '\n') == 3);
}

TEST_CASE("a list is bounded in entries and bytes") {
  Desk desk;
  for (int i = 0; i < 301; ++i)
    desk.put(desk.workspace / (std::to_string(i) + std::string(i < 50 ? 0 : 230, 'n')), "");
  std::string text = fake::text_of(desk.call("list_files", {}));
  CHECK(text.size() < 65'000);
  CHECK(contains(text, " of them; name a directory to see more]"));
  json::object missing;
  missing["path"] = "missing";
  CHECK(desk.call("list_files", missing).isError == true);
}

TEST_CASE("files are resources: text as text, the rest as base64") {
  Desk desk;
  desk.put(desk.workspace / "a b.csv", "a,b\r\n");
  desk.put(desk.workspace / "notes", "día\n");
  desk.put(desk.workspace / "x.png", kPng);
  desk.put(desk.workspace / "huge", std::string(700'001, 'x'));
  mkfifo((desk.workspace / "fifo").c_str(), 0600);
  auto csv = desk.read_file("a%20b.csv");
  CHECK(csv.mimeType == "text/csv");
  CHECK(csv.text == "a,b\r\n");
  CHECK(desk.read_file("notes").mimeType == "text/plain");
  CHECK(mcp::base64_decode(*desk.read_file("x.png").blob) == kPng);
  CHECK_THROWS_AS(desk.read_file("huge"), mcp::Error);
  for (const char* path :
       {"missing", "../session.json", "%2e%2e/session.json", "fifo", ".", "%zz"}) {
    CAPTURE(path);
    CHECK_THROWS_AS(desk.read_file(path), mcp::ResourceNotFound);
  }
  desk.wait(desk.sessions.shutdown());
  CHECK(desk.read_file("notes").text == "día\n");  // a session on disk is taken over
  mcp::Peer eve;
  eve.principal = "eve";
  std::string uri = "pykeep://sessions/" + desk.handle + "/files/notes";
  CHECK_THROWS_AS(desk.read(uri, eve), mcp::ResourceNotFound);
  CHECK_THROWS_AS(desk.read("file:///etc/passwd", desk.peer), mcp::ResourceNotFound);
}

TEST_CASE("an execution is a resource with its code and typed outputs") {
  Desk desk;
  json::object code;
  code["code"] = "print hello";
  desk.call("run_python", code);
  auto contents = desk.read("pykeep://sessions/" + desk.handle + "/executions/2", desk.peer);
  json::value value = json::parse(*contents.text);
  CHECK(contents.mimeType == "application/json");
  CHECK(value.at("code") == "print hello");
  CHECK(value.at("outputs").at(0).at("text") == "hello\n");
  CHECK_THROWS_AS(desk.read("pykeep://sessions/" + desk.handle + "/executions/9", desk.peer),
                  mcp::ResourceNotFound);
}

TEST_CASE("a workspace that somebody deleted is explained") {
  Desk desk;
  json::object wish;
  desk.call("create_session", wish);
  auto session = desk.sessions.live("local").front();
  fs::remove_all(session->workspace());
  json::object which;
  which["session"] = session->handle();
  auto result = desk.call("list_files", which);
  CHECK(result.isError == true);
  CHECK(contains(fake::text_of(result), "files cannot be reached"));
}
