// Any lines as messages to the protocol, without a transport: as stdio hands them over.

#include <boost/asio/io_context.hpp>
#include <set>

#include "async/task_group.hpp"
#include "mcp/server.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/support/fixture_tools.hpp"
#include "transport/message_text.hpp"

namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLines = 16;

class Outbox final : public mcp::Outbox {
 public:
  mcp::awaitable<void> send(json::value message) override {
    sent(message);
    co_return;
  }
  bool offer(json::object message) override {
    sent(std::move(message));
    return true;
  }
  bool carries_requests() const override { return true; }

 private:
  static void sent(const json::value& message) {
    check_message(message);
    check(well_formed(json::serialize(message)) == message, "what is sent reads as it was meant");
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = as_text(data, size);
  boost::asio::io_context io(1);
  mcp::Server server = fixture_server();
  mcp::Peer peer;
  Outbox out;
  async::TaskGroup calls(io.get_executor());
  for (std::size_t line = 0; line < kMaxLines && !text.empty(); ++line) {
    auto message = transport::parse_message(std::string(cut(text, "\n")));
    if (!message) continue;
    well_formed(json::serialize(*message));
    calls.spawn(server.handle(std::move(*message), peer, out));
    io.restart();
    io.poll();
  }
  calls.cancel();
  io.restart();
  io.poll();
  check(calls.size() == 0, "a cancelled call ends");
  check(peer.in_flight.empty(), "no ended call is in flight");
  return 0;
}
