// Which era a posted message belongs to, and what is refused before either is asked.

#include "transport/http/ladder.hpp"

#include <doctest/doctest.h>

#include "transport/message_text.hpp"

namespace http = transport::http;

namespace {

using To = http::Step::To;

std::string meta(const std::string& version, const std::string& capabilities = "{}") {
  return R"({"io.modelcontextprotocol/protocolVersion":)" + version +
         R"(,"io.modelcontextprotocol/clientCapabilities":)" + capabilities + "}";
}

std::string request(const std::string& method, const std::string& meta = "{}") {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + method + R"(","params":{"_meta":)" + meta + "}}";
}

const std::string kModern = "\"2026-07-28\"";

}  // namespace

TEST_CASE("a message goes by its own claim, then by the version in its header") {
  struct Row {
    const char* name;
    std::string message;
    const char* version;  // header; null: absent
    To to;
    int status = 0;
    const char* says = "";
  };
  const Row rows[] = {
      // Batches are a thing of one legacy revision.
      {"an empty batch", "[]", nullptr, To::refused, 400, "-32600"},
      {"a batch", "[" + request("ping") + "]", nullptr, To::legacy},
      {"a batch with a modern element", "[" + request("ping", meta(kModern)) + "]", nullptr,
       To::refused, 400, "-32600"},
      {"a batch with initialize", "[" + request("initialize") + "]", nullptr, To::refused, 400,
       "-32600"},
      // What is no message at all.
      {"a number", "1", nullptr, To::refused, 400, "-32600"},
      {"no jsonrpc", R"({"id":7,"method":"ping"})", nullptr, To::refused, 400, "\"id\":7"},
      {"a null id", R"({"jsonrpc":"2.0","id":null,"method":"ping"})", nullptr, To::refused, 400,
       "-32600"},
      {"neither method nor result", R"({"jsonrpc":"2.0","id":7})", nullptr, To::refused, 400,
       "-32600"},
      {"a response", R"({"jsonrpc":"2.0","id":7,"result":{}})", nullptr, To::legacy},
      {"a response, modern header", R"({"jsonrpc":"2.0","id":7,"result":{}})", "2026-07-28",
       To::legacy},
      // Requests without the claim.
      {"initialize", request("initialize"), nullptr, To::legacy},
      {"initialize, legacy header", request("initialize"), "2025-11-25", To::legacy},
      {"initialize, modern header", request("initialize"), "2026-07-28", To::refused, 400,
       "-32020"},
      {"a request", request("tools/list"), nullptr, To::legacy},
      {"a request, unknown version", request("tools/list"), "1999-01-01", To::legacy},
      {"a request, modern header", request("tools/list"), "2026-07-28", To::refused, 400,
       "io.modelcontextprotocol/clientCapabilities"},
      // Notifications.
      {"a notification", R"({"jsonrpc":"2.0","method":"notifications/initialized"})", nullptr,
       To::legacy},
      {"a notification, modern header", R"({"jsonrpc":"2.0","method":"n"})", "2026-07-28",
       To::accepted},
      {"a notification with the claim",
       R"({"jsonrpc":"2.0","method":"n","params":{"_meta":)" + meta(kModern) + "}}", nullptr,
       To::accepted},
      // Requests with the claim: envelope, then header, then version.
      {"modern", request("tools/list", meta(kModern)), "2026-07-28", To::modern},
      {"modern, the header is for later", request("tools/list", meta(kModern)), nullptr,
       To::modern},
      {"even initialize", request("initialize", meta(kModern)), "2026-07-28", To::modern},
      {"a version that is no string", request("ping", meta("1")), "2026-07-28", To::refused, 400,
       "-32602"},
      {"capabilities that are no object", request("ping", meta(kModern, "[]")), "2026-07-28",
       To::refused, 400, "-32602"},
      {"an envelope that is broken, and another header", request("ping", meta("1")), "2025-11-25",
       To::refused, 400, "-32602"},
      {"another version in the header", request("ping", meta(kModern)), "2025-11-25", To::refused,
       400, "-32020"},
      {"another one, and unknown", request("ping", meta("\"2030-01-01\"")), "2026-07-28",
       To::refused, 400, "-32020"},
      {"an unknown version", request("ping", meta("\"2030-01-01\"")), "2030-01-01", To::refused,
       400, R"("supported":["2026-07-28"],"requested":"2030-01-01")"},
      {"a legacy version in the claim", request("ping", meta("\"2025-11-25\"")), "2025-11-25",
       To::refused, 400, "-32022"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    http::Request request;
    if (row.version) request.headers.emplace("mcp-protocol-version", row.version);
    auto message = transport::parse_message(row.message);
    REQUIRE(message);
    http::Step step = http::classify(request, *message);
    CHECK(static_cast<int>(step.to) == static_cast<int>(row.to));
    if (row.to != To::refused) continue;
    CHECK(step.refusal.status == row.status);
    CHECK_MESSAGE(step.refusal.body.find(row.says) != std::string::npos, step.refusal.body);
  }
}

TEST_CASE("a batch has at most 100 messages") {
  boost::json::value message = *transport::parse_message(request("ping"));
  boost::json::array batch(100, message);
  CHECK(http::classify(http::Request(), batch).to == To::legacy);
  batch.push_back(message);
  CHECK(http::classify(http::Request(), batch).refusal.status == 400);
}
