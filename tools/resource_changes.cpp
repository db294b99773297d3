#include "tools/resource_changes.hpp"

#include "tools/resource_uri.hpp"

namespace tools {

void ResourceChanges::execution_ended(const ExecutionReport& report) {
  if (hub_.size() == 0 || report.number == 0) return;
  hub_.resource_updated(execution_uri(report.session, report.number), report.principal);
  for (auto format : {ExportFormat::notebook, ExportFormat::script})
    hub_.resource_updated(export_uri(report.session, format), report.principal);
  hub_.resources_updated(file_uri(report.session, ""), report.principal);
}

void ResourceChanges::file_written(const std::string& principal, const std::string& session,
                                   const std::string& path) {
  if (hub_.size() == 0) return;
  hub_.resource_updated(file_uri(session, path), principal);
}

}  // namespace tools
