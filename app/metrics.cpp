#include "app/metrics.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include "app/observers.hpp"
#include "app/version.hpp"
#include "tools/render.hpp"

namespace app {

namespace {

const std::vector<double> kRequestBounds{.001, .0025, .005, .01, .025, .05, .1, .5, 1, 5, 30};
const std::vector<double> kExecutionBounds{.005, .025, .1, .5, 1, 5, 15, 60, 300, 600};
const std::vector<double> kStartBounds{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 15};

double seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

std::string label(const char* name, std::string_view value) {
  return std::string(name) + "=\"" + std::string(value) + "\"";
}

class Page {
 public:
  void family(const std::string& name, const char* type, const char* help) {
    text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
    name_ = name;
  }
  void sample(double value, const std::string& labels = "") {
    text += name_ + (labels.empty() ? "" : "{" + labels + "}") + " " + number(value) + "\n";
  }
  void one(const std::string& name, const char* type, const char* help, double value) {
    family(name, type, help);
    sample(value);
  }
  void counts(const char* key, const std::map<std::string, std::uint64_t>& counts) {
    for (const auto& [value, count] : counts) sample(static_cast<double>(count), label(key, value));
  }
  void histograms(const char* key, const std::map<std::string, Histogram>& histograms) {
    for (const auto& [value, histogram] : histograms)
      histogram.print(text, name_, label(key, value));
  }
  const std::string& name() const { return name_; }

  std::string text;

 private:
  std::string name_;
};

std::size_t open_descriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (!directory) return 0;
  std::size_t count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
  closedir(directory);
  return count - 1;  // the directory itself
}

void print_connections(Page& page, const transport::http::Counters& http) {
  page.one("pykeep_http_connections_total", "counter", "Connections accepted.",
           static_cast<double>(http.connections));
  page.one("pykeep_http_connections", "gauge", "Connections open now.",
           static_cast<double>(http.open));
  page.one("pykeep_http_streams", "gauge", "Streamed responses open now.",
           static_cast<double>(http.streams));
  page.one("pykeep_http_dropped_total", "counter", "Connections dropped: slow, or over a limit.",
           static_cast<double>(http.dropped));
  page.family("pykeep_http_bytes_total", "counter", "Bytes received and sent.");
  page.sample(static_cast<double>(http.bytes_in), label("direction", "in"));
  page.sample(static_cast<double>(http.bytes_out), label("direction", "out"));
}

void print_process(Page& page) {
  page.one("process_resident_memory_bytes", "gauge", "Memory of the server alone, without kernels.",
           static_cast<double>(resident_bytes()));
  page.one("process_open_fds", "gauge", "Open descriptors of the server.",
           static_cast<double>(open_descriptors()));
  page.family("pykeep_build_info", "gauge", "The version that runs.");
  page.sample(1, label("version", PYKEEP_VERSION));
}

}  // namespace

void Histogram::observe(double seconds) {
  auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds);
  ++counts_[bucket - bounds_.begin()];
  sum_ += seconds;
}

void Histogram::print(std::string& out, const std::string& name, const std::string& labels) const {
  std::string before = labels.empty() ? "" : labels + ",";
  std::string alone = labels.empty() ? "" : "{" + labels + "}";
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
    out += name + "_bucket{" + before + "le=\"" + bound + "\"} " + std::to_string(below) + "\n";
  }
  out += name + "_sum" + alone + " " + number(sum_) + "\n";
  out += name + "_count" + alone + " " + std::to_string(below) + "\n";
}

Metrics::Metrics() : execution_durations_(kExecutionBounds) {}

void Metrics::request_served(const transport::http::Request& request,
                             const transport::http::Served& served) {
  std::string path(transport::http::path_class(request.path));
  ++requests_[{path, served.status}];
  request_durations_.try_emplace(path, kRequestBounds)
      .first->second.observe(seconds(served.until_head));
}

void Metrics::execution_ended(const tools::ExecutionReport& report) {
  ++executions_[std::string(tools::status_name(report.status))];
  execution_durations_.observe(seconds(report.duration));
  output_bytes_ += report.output_bytes;
}

void Metrics::kernel_started(const std::string&, const std::string&, sandbox::Start how,
                             std::chrono::milliseconds took) {
  kernel_starts_.try_emplace(start_name(how), kStartBounds).first->second.observe(seconds(took));
}

void Metrics::kernel_ended(const std::string&, const std::string& cause) {
  ++kernel_ends_[std::string(cause_kind(cause))];
}

std::string Metrics::text(const Now& now) const {
  Page page;
  page.family("pykeep_http_requests_total", "counter", "Requests answered; status 0: client gone.");
  for (const auto& [key, count] : requests_)
    page.sample(static_cast<double>(count),
                label("path", key.first) + "," + label("status", std::to_string(key.second)));
  page.family("pykeep_http_request_duration_seconds", "histogram",
              "From a request's head to its response's.");
  page.histograms("path", request_durations_);
  print_connections(page, now.http);
  page.one("pykeep_authentication_failures_total", "counter", "Requests refused for their token.",
           static_cast<double>(now.authentication_failures));
  page.one("pykeep_rate_limited_total", "counter", "Requests refused for their number.",
           static_cast<double>(now.rate_limited));
  page.one("pykeep_mcp_sessions", "gauge", "Legacy MCP sessions.",
           static_cast<double>(now.mcp_sessions));
  page.one("pykeep_sessions", "gauge", "Sessions held, with a kernel or without.",
           static_cast<double>(now.sessions));
  page.one("pykeep_kernels", "gauge", "Kernels that run or start.",
           static_cast<double>(now.kernels));
  page.family("pykeep_executions_total", "counter", "Executions that ended, by how.");
  page.counts("outcome", executions_);
  page.family("pykeep_execution_duration_seconds", "histogram", "How long executions ran.");
  execution_durations_.print(page.text, page.name(), "");
  page.one("pykeep_execution_output_bytes_total", "counter", "What executions wrote.",
           static_cast<double>(output_bytes_));
  page.family("pykeep_kernel_start_seconds", "histogram", "How long kernels took to start.");
  page.histograms("how", kernel_starts_);
  page.family("pykeep_kernel_ends_total", "counter", "Kernels that ended, by kind of cause.");
  page.counts("cause", kernel_ends_);
  page.one("pykeep_audit_lost_total", "counter", "Lines the audit file could not take.",
           static_cast<double>(now.audit_lost));
  print_process(page);
  return std::move(page.text);
}

std::string_view cause_kind(std::string_view cause) {
  struct Kind {
    const char* words;
    const char* name;
  };
  // The first that fits; the words are those of exit_cause, Kernel and Sessions.
  static constexpr Kind kKinds[] = {
      {"memory limit", "memory"}, {"idle", "idle"},      {"lack of use", "idle"},
      {"on request", "restart"},  {"closed", "closed"},  {"not ready after", "timeout"},
      {"it sent", "protocol"},    {"exit code", "exit"}, {"SIG", "signal"},
      {"signal ", "signal"},
  };
  for (const Kind& kind : kKinds)
    if (cause.find(kind.words) != cause.npos) return kind.name;
  return "other";
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t whole = 0, resident = 0;
  file >> whole >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace app
