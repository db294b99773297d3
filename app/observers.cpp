#include "app/observers.hpp"

#include "tools/render.hpp"
#include "transport/log.hpp"

namespace app {

void Observers::execution_ended(const tools::ExecutionReport& report) {
  if (transport::logs_events()) {
    std::vector<transport::Field> fields;
    fields.push_back({"request", report.origin});
    fields.push_back({"principal", report.principal});
    fields.push_back({"session", report.session});
    fields.push_back({"execution", report.execution});
    fields.push_back({"outcome", std::string(tools::status_name(report.status))});
    fields.push_back({"ms", std::to_string(report.duration.count())});
    fields.push_back({"output_bytes", std::to_string(report.output_bytes)});
    fields.push_back({"cause", report.cause});
    transport::log_event("execution", fields);
  }
  for (const auto& other : others_) other->execution_ended(report);
}

void Observers::kernel_started(const std::string& principal, const std::string& session,
                               sandbox::Start how, std::chrono::milliseconds took) {
  if (transport::logs_events()) {
    std::vector<transport::Field> fields;
    fields.push_back({"principal", principal});
    fields.push_back({"session", session});
    fields.push_back({"how", start_name(how)});
    fields.push_back({"ms", std::to_string(took.count())});
    transport::log_event("kernel_started", fields);
  }
  for (const auto& other : others_) other->kernel_started(principal, session, how, took);
}

void Observers::file_written(const std::string& principal, const std::string& session,
                             const std::string& path) {
  for (const auto& other : others_) other->file_written(principal, session, path);
}

void Observers::kernel_ended(const std::string& session, const std::string& cause) {
  if (transport::logs_events()) {
    std::vector<transport::Field> fields;
    fields.push_back({"session", session});
    fields.push_back({"cause", cause});
    transport::log_event("kernel_ended", fields);
  }
  for (const auto& other : others_) other->kernel_ended(session, cause);
}

const char* start_name(sandbox::Start how) {
  switch (how) {
    case sandbox::Start::cold:
      return "cold";
    case sandbox::Start::template_image:
      return "template_image";
    case sandbox::Start::image:
      return "image";
  }
  return "";
}

}  // namespace app
