// Files by ticket, over the real workspace of this machine: what a ticket is good for, and for how
// long.

#include "tools/tickets.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/tools/fake_backend.hpp"

namespace json = boost::json;
namespace fs = std::filesystem;
using tools::TicketError;
using Why = tools::TicketError::Why;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A world over HTTP with one session.
struct Desk : fake::World {
  explicit Desk(tools::SessionPolicy policy = {}) : World(std::move(policy)) {
    backend.real_files = &pool;
    tickets.offer("https://keep.example/files/");
    json::object code;
    code["code"] = "ok";
    call("run_python", code);
    session = sessions.live("local").front();
  }

  std::string get(const std::string& name) {
    std::ifstream file(session->workspace() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string ask(const char* tool, const char* arguments) {
    return fake::text_of(call(tool, json::parse(arguments).as_object()));
  }
  // The ticket in a text that names its URL.
  static std::string ticket_in(const std::string& text) {
    std::size_t at = text.find("https://keep.example/files/");
    if (at == text.npos) return "";
    return text.substr(
        at + 27, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567", at + 27) - at - 27);
  }
  // Why it cannot be done, or "".
  std::string put(const std::string& ticket, const std::string& bytes,
                  std::optional<std::uint64_t> announced = std::nullopt) {
    try {
      auto upload = wait(tickets.upload(ticket, announced));
      wait(upload->write(bytes));
      said = wait(upload->finish());
    } catch (const TicketError& failure) {
      why = failure.why;
      return failure.what();
    }
    return "";
  }
  std::string fetch(const std::string& ticket) {
    try {
      auto download = wait(tickets.download(ticket));
      return wait(download->file().read(0, 1 << 20));
    } catch (const TicketError& failure) {
      why = failure.why;
      return failure.what();
    }
  }

  std::shared_ptr<tools::Session> session;
  std::string said;
  Why why = Why::unknown;
};

}  // namespace

TEST_CASE("a name alone gives a ticket, good for one upload") {
  Desk desk;
  std::string text = desk.ask("upload_file", R"({"name":"data/big.csv"})");
  std::string ticket = Desk::ticket_in(text);
  CHECK(ticket.size() == 26);
  CHECK(contains(
      text, "Nothing was uploaded yet. To bring a file to /workspace/data/big.csv in session " +
                desk.session->handle()));
  CHECK(contains(text, "at most 1 MiB"));
  CHECK(contains(text, "\ncurl --fail-with-body -T FILE https://keep.example/files/" + ticket));
  CHECK(!fs::exists(desk.session->workspace() / "data/big.csv"));

  CHECK(desk.put(ticket, "a,b\n") == "");
  CHECK(desk.said ==
        "Uploaded 4 B to /workspace/data/big.csv in session " + desk.session->handle() + ".");
  CHECK(desk.get("data/big.csv") == "a,b\n");
  CHECK(contains(desk.put(ticket, "again"), "has been used"));
  CHECK(desk.why == Why::gone);
  CHECK(desk.get("data/big.csv") == "a,b\n");
}

TEST_CASE("a path of the user's machine gives one too, where we read no files of ours") {
  Desk desk;
  std::string text = desk.ask("upload_file", R"({"path":"/home/ada/her file's.csv"})");
  CHECK(contains(text, "-T '/home/ada/her file'\\''s.csv' https://"));
  CHECK(contains(text, "/workspace/her file's.csv"));
  desk.upload_root = desk.directory;
  CHECK(contains(desk.ask("upload_file", R"({"path":"missing.csv"})"), "Cannot open"));
}

TEST_CASE(
    "a wrong target is refused before anything is sent, and over stdio there are no tickets") {
  Desk desk;
  CHECK(contains(desk.ask("upload_file", R"({"name":"../x"})"), "not allowed"));
  CHECK(contains(desk.ask("upload_file", R"({"name":"dir/"})"), "names a directory"));
  CHECK(contains(desk.ask("upload_file", R"({})"), "exactly one of"));
  fs::create_directory_symlink("/etc", desk.session->workspace() / "link");
  CHECK(contains(desk.ask("upload_file", R"({"name":"link/x"})"), "symbolic link"));
  desk.tickets.offer("");
  CHECK(contains(desk.ask("upload_file", R"({"name":"x"})"), "exactly one of"));
}

TEST_CASE("an upload that fails leaves the old file, and the ticket") {
  Desk desk;
  std::ofstream(desk.session->workspace() / "x") << "old";
  std::string ticket = desk.tickets.for_upload(*desk.session, "x").substr(27);
  CHECK(contains(desk.put(ticket, "", (1 << 20) + 1), "larger than an upload may be (1 MiB)"));
  CHECK(desk.why == Why::too_large);
  CHECK(
      contains(desk.put(ticket, std::string((1 << 20) + 1, 'x')), "larger than an upload may be"));
  { auto dropped = desk.wait(desk.tickets.upload(ticket, std::nullopt)); }
  CHECK(desk.get("x") == "old");
  CHECK(std::distance(fs::directory_iterator(desk.session->workspace()), {}) == 1);
  CHECK(desk.put(ticket, "new") == "");
  CHECK(desk.get("x") == "new");
}

TEST_CASE("a workspace has its limit") {
  tools::SessionPolicy policy;
  policy.limits.workspace = 100'000;
  Desk desk(policy);
  std::string ticket = desk.tickets.for_upload(*desk.session, "x").substr(27);
  CHECK(contains(desk.put(ticket, std::string(200'000, 'x')), "Delete files there"));
  CHECK(desk.why == Why::no_space);
}

TEST_CASE("two uploads on one ticket: the second waits for another chance") {
  Desk desk;
  std::string ticket = desk.tickets.for_upload(*desk.session, "x").substr(27);
  auto first = desk.wait(desk.tickets.upload(ticket, std::nullopt));
  CHECK(contains(desk.put(ticket, "second"), "has not ended yet"));
  CHECK(desk.why == Why::in_use);
  desk.wait(first->finish());
  CHECK(desk.get("x").empty());
}

TEST_CASE("what a ticket is not good for") {
  Desk desk;
  std::ofstream(desk.session->workspace() / "x") << "old";
  std::string up = desk.tickets.for_upload(*desk.session, "x").substr(27);
  std::string down = desk.tickets.for_download(*desk.session, "x").substr(27);
  CHECK(contains(desk.put(down, "new"), "for a download"));
  CHECK(desk.why == Why::wrong_direction);
  CHECK(contains(desk.fetch(up), "for an upload"));
  for (const char* unknown : {"", "../x", "aaaaaaaaaaaaaaaaaaaaaaaaaa"})
    CHECK(contains(desk.put(unknown, "new"), "no such ticket"));
  CHECK(desk.fetch(down) == "old");
  CHECK(desk.fetch(down) == "old");  // as often as one likes: a client resumes with ranges

  auto late = desk.wait(desk.tickets.upload(up, std::nullopt));
  desk.wait(desk.sessions.close("local", desk.session->handle()));
  CHECK_THROWS_WITH_AS(desk.wait(late->write("new")), doctest::Contains("was closed meanwhile"),
                       TicketError);
  late.reset();
  CHECK(contains(desk.put(up, "new"), "was closed meanwhile"));
  CHECK(desk.why == Why::gone);
  desk.fetch(down);
  CHECK(desk.why == Why::gone);
}

TEST_CASE("tickets end, and are not kept for ever") {
  Desk desk;
  tools::TicketLimits limits;
  limits.upload_life = std::chrono::seconds(0);
  limits.kept_per_principal = 3;
  tools::Tickets tickets(desk.sessions, limits);
  std::string first = tickets.for_upload(*desk.session, "x");
  CHECK_THROWS_WITH_AS(desk.wait(tickets.upload(first, std::nullopt)),
                       doctest::Contains("has expired"), TicketError);
  for (int i = 0; i < 3; ++i) tickets.for_upload(*desk.session, "x");
  CHECK_THROWS_WITH_AS(desk.wait(tickets.upload(first, std::nullopt)),
                       doctest::Contains("no such ticket"), TicketError);
}

TEST_CASE("download_file names a URL for what a result cannot hold") {
  Desk desk;
  std::ofstream(desk.session->workspace() / "small.txt") << "small";
  std::ofstream(desk.session->workspace() / "long.txt") << std::string(30'000, 'x');
  std::ofstream(desk.session->workspace() / "model.bin") << std::string("\0\1\2", 3);
  CHECK(Desk::ticket_in(desk.ask("download_file", R"({"path":"small.txt"})")).empty());
  std::string text = desk.ask("download_file", R"({"path":"long.txt"})");
  CHECK(contains(text, "to fetch the whole file, within 15 minutes: "));
  CHECK(desk.fetch(Desk::ticket_in(text)).size() == 30'000);
  text = desk.ask("download_file", R"({"path":"/workspace/model.bin"})");
  CHECK(desk.fetch(Desk::ticket_in(text)).size() == 3);
  desk.tickets.offer("");
  CHECK(!contains(desk.ask("download_file", R"({"path":"model.bin"})"), "to fetch"));
}

TEST_CASE("somebody's slow transfers do not grow without end, and give their places back") {
  Desk desk;
  std::size_t most = tools::TicketLimits().at_once_per_principal;
  std::ofstream(desk.session->workspace() / "model.bin") << std::string("\0\1", 2);
  auto ticket = Desk::ticket_in(desk.ask("download_file", R"({"path":"model.bin"})"));
  auto coming = Desk::ticket_in(desk.ask("upload_file", R"({"name":"new.csv"})"));
  std::vector<std::unique_ptr<tools::Tickets::Download>> slow;
  while (slow.size() < most) slow.push_back(desk.wait(desk.tickets.download(ticket)));
  CHECK(contains(desk.fetch(ticket), "Too many of your files"));
  CHECK(desk.why == Why::unavailable);
  CHECK(contains(desk.put(coming, "1"), "Too many of your files"));
  slow.pop_back();
  CHECK(desk.fetch(ticket) == std::string("\0\1", 2));
  CHECK(desk.put(coming, "1") == "");
}
