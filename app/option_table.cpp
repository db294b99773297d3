#include "app/option_table.hpp"

#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

namespace app {

namespace {

// "--memory 2GiB" and plain bytes. CLI11's own sizes make no difference between GB and GiB, and
// std::stoull takes "-1" for a size of 16 EiB.
std::optional<std::uint64_t> read_size(std::string_view text) {
  std::uint64_t value = 0;
  const char* last = text.data() + text.size();
  auto [end, failed] = std::from_chars(text.data(), last, value);
  if (failed != std::errc() || value == 0) return std::nullopt;
  std::string unit = CLI::detail::to_lower(std::string(end, last));
  if (unit.empty() || unit == "b") return value;
  constexpr const char* kUnits[] = {"k", "m", "g", "t"};
  for (int i = 0; i < 4; ++i) {
    std::string name = kUnits[i];
    if (unit != name && unit != name + "b" && unit != name + "ib") continue;
    int shift = 10 * (i + 1);
    bool fits = value <= std::numeric_limits<std::uint64_t>::max() >> shift;
    return fits ? std::optional(value << shift) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::string OptionTable::environment_name(std::string option) {
  for (char& c : option) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
  return "PYKEEP_" + option;
}

void OptionTable::flag(const std::string& name, bool& value, const std::string& help) {
  app_.add_flag("--" + name, value, help)->envname(environment_name(name));
}

void OptionTable::size(const std::string& name, std::uint64_t& value, const std::string& help) {
  auto read = [name, &value](const std::string& text) {
    auto size = read_size(text);
    if (!size) throw CLI::ValidationError("--" + name, "expected a size such as 512MiB: " + text);
    value = *size;
  };
  app_.add_option_function<std::string>("--" + name, read, help)
      ->envname(environment_name(name))
      ->default_str(std::to_string(value >> 20) + "MiB")
      ->type_name("SIZE");
}

}  // namespace app
