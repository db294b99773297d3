#pragma once

#include <array>
#include <boost/json.hpp>
#include <optional>
#include <string_view>

namespace mcp {

// The released revisions, oldest first: comparisons mean "at least".
enum class Revision { v2024_11_05, v2025_03_26, v2025_06_18, v2025_11_25, v2026_07_28 };

enum class Era { legacy, modern };

constexpr Era era_of(Revision revision) {
  return revision < Revision::v2026_07_28 ? Era::legacy : Era::modern;
}

// What is negotiated with a client that names no legacy revision of ours, and assumed for one that
// sends legacy requests without a handshake.
inline constexpr Revision kNewestLegacy = Revision::v2025_11_25;

std::string_view to_string(Revision revision);
std::optional<Revision> parse_revision(std::string_view text);

// What `initialize` is answered with: the revision asked for if it is a legacy one we speak, else
// the newest legacy one (2025-11-25). Never 2026-07-28, which has no handshake.
Revision negotiate(std::string_view requested);

}  // namespace mcp
