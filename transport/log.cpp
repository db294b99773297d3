#include "transport/log.hpp"

#include <spdlog/formatter.h>
#include <spdlog/spdlog.h>

#include <boost/json.hpp>
#include <boost/system/system_error.hpp>
#include <ctime>

#include "transport/log_sink.hpp"

namespace transport {

namespace json = boost::json;

namespace {

constexpr const char* kEvents = "event";  // name of the logger whose messages are members of JSON
constexpr std::size_t kMaxValue = 256;

LogFormat format_of_events = LogFormat::text;

std::string quoted(std::string_view text) {
  std::string ascii;  // a log is no place for what a terminal would obey, nor for broken UTF-8
  for (char c : text) ascii += c >= ' ' && c < 0x7f ? c : '?';
  return json::serialize(json::string(ascii));
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    std::string_view text(message.payload.data(), message.payload.size());
    std::string_view logger(message.logger_name.data(), message.logger_name.size());
    auto level = spdlog::level::to_string_view(message.level);
    std::string line = "{\"time\":\"" + time_text(message.time) + "\",\"level\":\"";
    line.append(level.data(), level.size()).append("\",");
    if (logger != kEvents) line += "\"message\":";
    line += logger == kEvents ? std::string(text) : quoted(text);
    line += "}\n";
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

bool is_plain(std::string_view value) {
  for (char c : value)
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '=' || c == '\\') return false;
  return true;
}

}  // namespace

std::string time_text(std::chrono::system_clock::time_point time) {
  auto since = time.time_since_epoch();
  std::time_t seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  auto fraction = std::chrono::duration_cast<std::chrono::milliseconds>(since).count() % 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32], whole[48];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(whole, sizeof whole, "%s.%03dZ", text, static_cast<int>(fraction));
  return whole;
}

void start_log(int fd, const std::string& level, LogFormat format) {
  auto sink = std::make_shared<LogSink>(fd);
  if (format == LogFormat::json) sink->set_formatter(std::make_unique<JsonFormatter>());
  auto logger = std::make_shared<spdlog::logger>("pykeep", sink);
  auto events = std::make_shared<spdlog::logger>(kEvents, sink);
  logger->set_level(spdlog::level::from_str(level));
  events->set_level(logger->level());
  spdlog::set_default_logger(std::move(logger));
  spdlog::drop(kEvents);
  spdlog::register_logger(std::move(events));
  format_of_events = format;
}

bool logs_events() { return spdlog::should_log(spdlog::level::info); }

void log_defect(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error&) {
  } catch (const std::exception& defect) {
    spdlog::error("a task ended by a defect: {}", defect.what());
  }
}

void log_event(std::string_view event, const std::vector<Field>& fields) {
  if (!logs_events()) return;
  bool as_json = format_of_events == LogFormat::json;
  std::string line(event);
  if (as_json) line = "\"event\":" + quoted(event);
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    std::string value = field.value.substr(0, kMaxValue);
    bool bare = !as_json && is_plain(value);
    line += as_json ? ",\"" : " ";
    line.append(field.name).append(as_json ? "\":" : "=");
    line += bare ? value : quoted(value);
  }
  if (auto logger = spdlog::get(kEvents)) logger->info("{}", line);
}

}  // namespace transport
