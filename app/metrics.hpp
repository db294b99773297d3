#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/observer.hpp"
#include "transport/http/listener.hpp"
#include "transport/http/request_log.hpp"

namespace app {

// Durations in fixed buckets, as Prometheus wants a histogram.
class Histogram {
 public:
  // Upper bounds in seconds, ascending.
  explicit Histogram(std::vector<double> bounds) : bounds_(bounds), counts_(bounds.size() + 1) {}

  void observe(double seconds);
  // Its samples, each a line that begins with `name`; `labels` is empty or `a="b"`.
  void print(std::string& out, const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // the last one is of what is beyond all bounds
  double sum_ = 0;
};

// What the server counts, in Prometheus' text format 0.0.4 (docs/operations.md lists it). No label
// is the client's to choose, so the number of series is bounded; nothing in them tells of
// principals, sessions or code.
class Metrics final : public tools::Observer {
 public:
  // What others count, at the moment of asking.
  struct Now {
    transport::http::Counters http;
    std::size_t sessions = 0, kernels = 0, mcp_sessions = 0;
    std::uint64_t authentication_failures = 0, rate_limited = 0, audit_lost = 0;
  };

  Metrics();

  void request_served(const transport::http::Request& request,
                      const transport::http::Served& served);
  void execution_ended(const tools::ExecutionReport& report) override;
  void kernel_started(const std::string& principal, const std::string& session, sandbox::Start how,
                      std::chrono::milliseconds took) override;
  void kernel_ended(const std::string& session, const std::string& cause) override;

  std::string text(const Now& now) const;

 private:
  std::map<std::pair<std::string, int>, std::uint64_t> requests_;  // path class, status
  std::map<std::string, Histogram> request_durations_;             // by path class
  std::map<std::string, std::uint64_t> executions_;                // by outcome
  Histogram execution_durations_;
  std::uint64_t output_bytes_ = 0;
  std::map<std::string, Histogram> kernel_starts_;    // by how
  std::map<std::string, std::uint64_t> kernel_ends_;  // by kind of cause
};

// The kind of a cause that a lost kernel is explained with: "memory", "signal", "exit", "timeout",
// "idle", "closed", "restart", "protocol" or "other".
std::string_view cause_kind(std::string_view cause);

// Memory this process has in RAM, in bytes; 0 where /proc does not say.
std::uint64_t resident_bytes();

}  // namespace app
