#include "mcp/era.hpp"

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

using mcp::Revision;

TEST_CASE("a revision and its name belong together") {
  for (const char* name : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"}) {
    CAPTURE(name);
    auto revision = mcp::parse_revision(name);
    REQUIRE(revision);
    CHECK(mcp::to_string(*revision) == name);
  }
  for (const char* name : {"", "2024-10-07", "2025-11-25 ", "DRAFT-2026-v1", "2026-06-18"}) {
    CAPTURE(name);
    CHECK_FALSE(mcp::parse_revision(name));
  }
}

TEST_CASE("initialize answers the revision it was asked for, else the newest with a handshake") {
  struct Row {
    const char* asked;
    const char* answered;
  };
  for (const Row& row : {
           Row{"2024-11-05", "2024-11-05"},
           Row{"2025-03-26", "2025-03-26"},
           Row{"2025-06-18", "2025-06-18"},
           Row{"2025-11-25", "2025-11-25"},
           Row{"2026-07-28", "2025-11-25"},  // Claude Code would go on in the modern era
           Row{"2024-10-07", "2025-11-25"},
           Row{"1999-01-01", "2025-11-25"},
           Row{"", "2025-11-25"},
       }) {
    CAPTURE(row.asked);
    Conversation client;
    CHECK(client.initialize(row.asked).at("protocolVersion") == row.answered);
    REQUIRE(client.peer.legacy);
    CHECK(mcp::to_string(client.peer.legacy->revision) == row.answered);
  }
}

TEST_CASE("every message is served by its own claim") {
  // A legacy tools/list has no resultType, a modern one has.
  auto era_of_list = [](Conversation& client, std::string params) {
    json::value result = client.result("tools/list", params);
    REQUIRE(result.as_object().contains("tools"));
    return result.as_object().contains("resultType") ? "modern" : "legacy";
  };
  Conversation client;
  CHECK(era_of_list(client, "{}") == "legacy");  // before any handshake
  CHECK(era_of_list(client, modern()) == "modern");
  CHECK(client.result("server/discover", modern()).as_object().contains("supportedVersions"));
  CHECK(client.initialize("2025-06-18").at("protocolVersion") == "2025-06-18");
  CHECK(era_of_list(client, "{}") == "legacy");
  CHECK(era_of_list(client, modern()) == "modern");
  CHECK(client.initialize("2024-11-05").at("protocolVersion") == "2024-11-05");  // once more
  CHECK(mcp::to_string(client.peer.legacy->revision) == "2024-11-05");
  // Only the version's key is a claim.
  CHECK(era_of_list(client, R"({"_meta":{"io.modelcontextprotocol/clientCapabilities":{}}})") ==
        "legacy");
  CHECK(era_of_list(client, R"({"_meta":null})") == "legacy");
}

TEST_CASE("a method exists in the eras that have it") {
  struct Row {
    const char* method;
    const char* fields;
    bool legacy;
    bool modern;
  };
  for (const Row& row : {
           Row{"initialize", R"("protocolVersion":"2025-11-25")", true, false},
           Row{"ping", "", true, false},
           Row{"logging/setLevel", R"("level":"info")", true, false},
           Row{"server/discover", "", false, true},
           Row{"tools/list", "", true, true},
           Row{"tools/call", R"("name":"echo","arguments":{"text":"a"})", true, true},
           Row{"resources/list", "", true, true},
           Row{"resources/templates/list", "", true, true},
           Row{"resources/read", R"("uri":"test://here")", true, true},
           Row{"prompts/list", "", false, false},
           Row{"prompts/get", R"("name":"x")", false, false},
           Row{"completion/complete", "", false, false},
           Row{"resources/subscribe", R"("uri":"test://here")", false, false},
           Row{"resources/unsubscribe", R"("uri":"test://here")", false, false},
           Row{"subscriptions/listen", R"("notifications":{})", false, false},
           Row{"tasks/list", "", false, false},
           Row{"notifications/initialized", "", false, false},  // with an id: a request
           Row{"", "", false, false},
           Row{"Tools/List", "", false, false},
       }) {
    CAPTURE(row.method);
    Conversation client;
    json::value legacy = client.result(row.method, "{" + std::string(row.fields) + "}");
    json::value modern_one = client.result(row.method, modern(row.fields));
    auto missing = [](const json::value& result) {
      const json::value* code = result.as_object().if_contains("code");
      return code && *code == -32601;
    };
    CHECK(missing(legacy) == !row.legacy);
    CHECK(missing(modern_one) == !row.modern);
    if (row.legacy) CHECK_FALSE(legacy.as_object().contains("code"));
    if (row.modern) CHECK_FALSE(modern_one.as_object().contains("code"));
  }
}

TEST_CASE("a modern request states its version and its client's capabilities") {
  struct Row {
    const char* meta;
    int code;
  };
  for (const Row& row : {
           Row{R"("V":"2026-07-28")", -32602},
           Row{R"("V":"2026-07-28","C":null)", -32602},
           Row{R"("V":"2026-07-28","C":[])", -32602},
           Row{R"("V":20260728,"C":{})", -32602},
           Row{R"("V":null,"C":{})", -32602},
           Row{R"("V":"2026-07-29","C":{})", -32022},
           Row{R"("V":"2025-11-25","C":{})", -32022},
           Row{R"("V":"","C":{})", -32022},
           Row{R"("V":"2026-07-28","C":{},"L":"loud")", -32602},
           Row{R"("V":"2026-07-28","C":{},"L":3)", -32602},
       }) {
    CAPTURE(row.meta);
    std::string meta = row.meta;
    auto spell = [&](std::string_view letter, std::string name) {
      std::string key = "\"" + std::string(letter) + "\":";
      if (auto at = meta.find(key); at != std::string::npos)
        meta.replace(at, key.size(), "\"io.modelcontextprotocol/" + name + "\":");
    };
    spell("V", "protocolVersion");
    spell("C", "clientCapabilities");
    spell("L", "logLevel");
    Conversation client;
    for (const char* method : {"tools/list", "server/discover", "no/such/method"}) {
      json::value error = client.result(method, R"({"_meta":{)" + meta + "}}");
      REQUIRE(error.as_object().contains("code"));
      CHECK(error.at("code") == row.code);
    }
  }
  Conversation client;
  json::value error = client.result(
      "tools/list", R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2030-01-01",)"
                    R"("io.modelcontextprotocol/clientCapabilities":{}}})");
  CHECK(error.at("data") ==
        json::parse(R"({"supported":["2026-07-28"],"requested":"2030-01-01"})"));
}
