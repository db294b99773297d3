#include "sandbox/pandastack/http.hpp"

#include <algorithm>
#include <stdexcept>

#include "sandbox/pandastack/call.hpp"
#include "sandbox/pandastack/transfers.hpp"

namespace sandbox::pandastack {

namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// One line break in a header is another header.
void check(const Request& request) {
  auto refuse = [&request](const char* what) {
    throw std::invalid_argument(request.purpose + ": " + what);
  };
  auto is_blank = [](char c) { return is_control(c) || c == ' '; };
  if (std::ranges::any_of(request.url, is_blank)) refuse("the URL has blanks");
  if (std::ranges::any_of(request.method, is_blank)) refuse("the method has blanks");
  for (const auto& [name, value] : request.headers) {
    bool good_name =
        !name.empty() && std::ranges::none_of(name, is_blank) && name.find(':') == name.npos;
    if (!good_name || std::ranges::any_of(value, is_control)) refuse("a header has line breaks");
  }
}

}  // namespace

const std::string* Head::find(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return &value;
  return nullptr;
}

Answer::Answer(std::shared_ptr<Call> call) : call_(std::move(call)) {}

Answer::~Answer() { call_->give_up(); }

const Head& Answer::head() const { return call_->head(); }

awaitable<std::optional<std::string>> Answer::read() { return call_->read(); }

Http::Http(boost::asio::any_io_executor executor, HttpOptions options)
    : executor_(executor),
      transfers_(std::make_shared<Transfers>(std::move(executor), std::move(options))) {}

Http::~Http() { close(); }

void Http::close() { transfers_->stop(); }

awaitable<std::unique_ptr<Answer>> Http::open(Request request) {
  check(request);
  auto call = std::make_shared<Call>(executor_, std::move(request));
  call->transfers = transfers_;
  transfers_->start(call);
  auto answer = std::make_unique<Answer>(call);  // gives the call up when the wait fails
  co_await call->wait_for_head();
  co_return std::move(answer);
}

awaitable<Response> Http::send(Request request) {
  auto answer = co_await open(std::move(request));
  Response response;
  static_cast<Head&>(response) = answer->head();
  while (auto bytes = co_await answer->read()) response.body += *bytes;
  co_return std::move(response);
}

}  // namespace sandbox::pandastack
