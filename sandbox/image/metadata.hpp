#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/image/format.hpp"

namespace sandbox::image {

// An image's metadata as values: what the freezer collects, and what image.cpp reads back.
struct Metadata {
  ProcessState process{};
  std::vector<ThreadState> threads;
  std::vector<std::uint8_t> registers;
  std::vector<Mapping> mappings;
  std::vector<Run> runs;
  std::vector<File> files;
  std::vector<Descriptor> descriptors;
  std::vector<Watch> watches;
  std::vector<QueuedSignal> signals;
  std::vector<HotRun> hot_runs;
  std::vector<std::uint64_t> auxv;
  std::string strings{'\0'};
  std::vector<std::uint32_t> lost;
  std::vector<Extent> extents;

  std::uint32_t add_string(std::string_view text);
  std::string string(std::uint32_t offset) const;  // "" if out of bounds
};

// The metadata's bytes; fills in header.sections.
std::string serialize(const Metadata& metadata, Header& header);
// The opposite. Every section lies within `bytes`; returns false otherwise. The elements' own
// numbers are not looked at.
bool deserialize(std::string_view bytes, const Header& header, Metadata& metadata);

}  // namespace sandbox::image
