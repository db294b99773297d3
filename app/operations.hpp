#pragma once

#include <functional>
#include <memory>

#include "app/audit.hpp"
#include "app/keep.hpp"
#include "app/metrics.hpp"
#include "transport/http/router.hpp"

namespace app {

// What `pykeep http` tells its operator: a line in the log for every request, the metrics, the
// audit file.
class Operations {
 public:
  // Throws std::runtime_error when the audit file cannot be opened.
  Operations(boost::asio::any_io_executor executor, Keep& keep, const HttpOptions& options);

  // `handler`, with every request logged and counted.
  transport::http::Handler observe(transport::http::Handler handler);
  // The same for what is refused before a handler sees it.
  transport::http::Refused observe_refusals();

  // Serves /metrics. `now` says what the HTTP side counts; the rest of it is filled in.
  void mount(transport::http::Router& router, std::function<Metrics::Now()> now);

  // Writes the audit file, until cancelled.
  async::awaitable<void> run();
  // On SIGHUP: goes on in a new audit file.
  void reload();

 private:
  std::function<void(const transport::http::Request&, const transport::http::Served&)> counting();
  Metrics::Now complete(Metrics::Now now) const;

  Keep& keep_;
  std::shared_ptr<Metrics> metrics_;
  std::shared_ptr<Audit> audit_;  // may be null
};

}  // namespace app
