#include "mcp/era.hpp"

namespace mcp {

namespace {

constexpr std::array<std::string_view, 5> kRevisions = {"2024-11-05", "2025-03-26", "2025-06-18",
                                                        "2025-11-25", "2026-07-28"};

}  // namespace

std::string_view to_string(Revision revision) {
  return kRevisions[static_cast<std::size_t>(revision)];
}

std::optional<Revision> parse_revision(std::string_view text) {
  for (std::size_t i = 0; i < kRevisions.size(); ++i) {
    if (kRevisions[i] == text) return static_cast<Revision>(i);
  }
  return std::nullopt;
}

Revision negotiate(std::string_view requested) {
  std::optional<Revision> known = parse_revision(requested);
  return known && era_of(*known) == Era::legacy ? *known : kNewestLegacy;
}

}  // namespace mcp
