#include "transport/http/request_log.hpp"

#include <array>

#include "transport/log.hpp"

namespace transport::http {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array kPaths = {"/mcp",    "/sse",     "/messages", "/healthz",
                               "/readyz", "/metrics", "/files/",   "/.well-known/"};
constexpr std::size_t kShownOfSession = 8;  // enough to tell sessions apart, not to use one

// An exchange that takes notes; all else is the one below.
class Noted final : public Exchange {
 public:
  explicit Noted(Exchange& inner) : inner_(inner) {}

  const Request& request() const override { return inner_.request(); }
  Request& request() override { return inner_.request(); }
  awaitable<std::optional<std::string>> body(std::size_t limit) override {
    return inner_.body(limit);
  }
  int body_failure() const override { return inner_.body_failure(); }
  awaitable<std::size_t> read(std::span<char> buffer) override { return inner_.read(buffer); }
  awaitable<void> reply(Response response) override {
    note(response.status);
    return inner_.reply(std::move(response));
  }
  awaitable<void> begin(Response head) override {
    note(head.status);
    served_.streamed = true;
    return inner_.begin(std::move(head));
  }
  awaitable<bool> write(std::string_view part) override { return inner_.write(part); }
  awaitable<void> end() override { return inner_.end(); }
  awaitable<void> gone() override { return inner_.gone(); }
  bool is_gone() const override { return inner_.is_gone(); }

  Served ended() {
    if (served_.status == 0) served_.until_head = since();
    served_.whole = since();
    return served_;
  }
  void failed() {
    if (served_.status == 0) note(500);
  }

 private:
  std::chrono::microseconds since() const {
    return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - began_);
  }
  void note(int status) {
    served_.status = status;
    served_.until_head = since();
  }

  Exchange& inner_;
  Clock::time_point began_ = Clock::now();
  Served served_;
};

std::string milliseconds(std::chrono::microseconds time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(time.count()) / 1000);
  return text;
}

std::string header_of(const Request& request, std::string_view name) {
  const std::string* value = request.header(name);
  return value ? *value : std::string();
}

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == text.npos;
}

// The caller's place in a trace, if it is well formed (W3C Trace Context, section 3.2): others may
// hold anything. A version after 00 may have more at its end, which is not ours to read.
std::string traceparent(const Request& request) {
  std::string text = header_of(request, "traceparent");
  std::string_view all = text;
  if (all.size() < 55 || (all.size() > 55 && (all.starts_with("00") || all[55] != '-'))) return {};
  std::string_view version = all.substr(0, 2), trace = all.substr(3, 32),
                   parent = all.substr(36, 16);
  bool dashes = all[2] == '-' && all[35] == '-' && all[52] == '-';
  bool hex = is_hex(version) && is_hex(trace) && is_hex(parent) && is_hex(all.substr(53, 2));
  bool zero =
      trace.find_first_not_of('0') == trace.npos || parent.find_first_not_of('0') == parent.npos;
  if (!dashes || !hex || zero || version == "ff") return {};
  return text.substr(0, 55);
}

void log(const Request& request, const Served& served) {
  if (!logs_events()) return;
  std::vector<Field> fields;
  fields.push_back({"id", request.id});
  fields.push_back({"method", request.method});
  fields.push_back({"path", std::string(path_class(request.path))});
  fields.push_back({"status", std::to_string(served.status)});
  fields.push_back({"head_ms", milliseconds(served.until_head)});
  fields.push_back({"ms", milliseconds(served.whole)});
  fields.push_back({"principal", request.principal});
  fields.push_back({"remote", request.remote});
  fields.push_back({"traceparent", traceparent(request)});
  fields.push_back({"mcp_method", header_of(request, "Mcp-Method")});
  fields.push_back({"mcp_name", header_of(request, "Mcp-Name")});
  fields.push_back(
      {"mcp_session", header_of(request, "Mcp-Session-Id").substr(0, kShownOfSession)});
  log_event("request", fields);
}

void conclude(const Request& request, const Served& served,
              const std::function<void(const Request&, const Served&)>& on_served) {
  log(request, served);
  if (on_served) on_served(request, served);
}

awaitable<void> handle(const Handler& inner, Exchange& exchange,
                       const std::function<void(const Request&, const Served&)>& on_served) {
  Noted noted(exchange);
  try {
    co_await inner(noted);
  } catch (...) {
    noted.failed();
    conclude(exchange.request(), noted.ended(), on_served);
    throw;
  }
  conclude(exchange.request(), noted.ended(), on_served);
}

}  // namespace

std::string_view path_class(std::string_view path) {
  for (std::string_view known : kPaths)
    if (known.ends_with('/') ? path.starts_with(known) : path == known) return known;
  return "other";
}

Handler logged(Handler inner, std::function<void(const Request&, const Served&)> on_served) {
  return [inner = std::move(inner), on_served = std::move(on_served)](Exchange& exchange) {
    return handle(inner, exchange, on_served);
  };
}

Refused logged_refusals(std::function<void(const Request&, const Served&)> on_served) {
  return [on_served = std::move(on_served)](const Request& request, int status) {
    Served served;
    served.status = status;
    conclude(request, served, on_served);
  };
}

}  // namespace transport::http
