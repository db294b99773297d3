#include "sandbox/image/metadata.hpp"

#include <cstring>

namespace sandbox::image {

namespace {

constexpr std::size_t kAlignment = 64;

class Writer {
 public:
  explicit Writer(Header& header) : header_(header) {}

  template <class Elements>
  void add(Sections section, const Elements& elements) {
    bytes_.resize((bytes_.size() + kAlignment - 1) & ~(kAlignment - 1));
    header_.sections[section] = {bytes_.size(), elements.size()};
    bytes_.append(reinterpret_cast<const char*>(elements.data()),
                  elements.size() * sizeof *elements.data());
  }
  std::string take() { return std::move(bytes_); }

 private:
  Header& header_;
  std::string bytes_;
};

class Reader {
 public:
  Reader(std::string_view bytes, const Header& header) : bytes_(bytes), header_(header) {}

  template <class Elements>
  void read(Sections section, Elements& elements) {
    const Section& at = header_.sections[section];
    constexpr std::size_t kSize = sizeof(typename Elements::value_type);
    if (at.offset > bytes_.size() || at.count > (bytes_.size() - at.offset) / kSize) {
      good = false;
      return;
    }
    elements.resize(at.count);
    if (at.count > 0) std::memcpy(elements.data(), bytes_.data() + at.offset, at.count * kSize);
  }

  bool good = true;

 private:
  std::string_view bytes_;
  const Header& header_;
};

// Calls `visit(section, member)` for every array but the process's.
template <class Visit, class SomeMetadata>
void for_each_section(SomeMetadata& metadata, Visit visit) {
  visit(kThreads, metadata.threads);
  visit(kRegisters, metadata.registers);
  visit(kMappings, metadata.mappings);
  visit(kRuns, metadata.runs);
  visit(kFiles, metadata.files);
  visit(kDescriptors, metadata.descriptors);
  visit(kWatches, metadata.watches);
  visit(kSignals, metadata.signals);
  visit(kHotRuns, metadata.hot_runs);
  visit(kAuxv, metadata.auxv);
  visit(kStrings, metadata.strings);
  visit(kLost, metadata.lost);
  visit(kExtents, metadata.extents);
}

}  // namespace

std::uint32_t Metadata::add_string(std::string_view text) {
  auto offset = static_cast<std::uint32_t>(strings.size());
  strings.append(text.substr(0, text.find('\0')));
  strings.push_back('\0');
  return offset;
}

std::string Metadata::string(std::uint32_t offset) const {
  if (offset >= strings.size()) return {};
  return {strings.data() + offset, strnlen(strings.data() + offset, strings.size() - offset)};
}

std::string serialize(const Metadata& metadata, Header& header) {
  Writer writer(header);
  writer.add(kProcess, std::vector<ProcessState>{metadata.process});
  for_each_section(metadata,
                   [&](Sections section, const auto& elements) { writer.add(section, elements); });
  return writer.take();
}

bool deserialize(std::string_view bytes, const Header& header, Metadata& metadata) {
  Reader reader(bytes, header);
  std::vector<ProcessState> process;
  reader.read(kProcess, process);
  for_each_section(metadata,
                   [&](Sections section, auto& elements) { reader.read(section, elements); });
  if (!reader.good || process.size() != 1 || metadata.threads.empty()) return false;
  metadata.process = process[0];
  return metadata.strings.starts_with('\0') && metadata.strings.ends_with('\0');
}

}  // namespace sandbox::image
