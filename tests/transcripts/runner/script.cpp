#include "tests/transcripts/runner/script.hpp"

#include <fstream>
#include <stdexcept>
#include <string_view>

namespace transcripts {

namespace {

constexpr struct {
  std::string_view mark;
  Step::Kind kind;
} kMarks[] = {
    {"#", Step::Kind::prose},
    {"! stdio only: ", Step::Kind::stdio_only},
    {"$ ", Step::Kind::option},
    {"> ", Step::Kind::send},
    {"< ", Step::Kind::expect},
    {"<| ", Step::Kind::expect_any_order},
    {"<* ", Step::Kind::expect_repeated},
    {"~ ", Step::Kind::wait},
};

Step to_step(const std::string& raw, int line) {
  if (raw.empty()) return {Step::Kind::prose, "", raw, line};
  for (const auto& [mark, kind] : kMarks)
    if (raw.starts_with(mark)) return {kind, raw.substr(mark.size()), raw, line};
  throw std::runtime_error("line " + std::to_string(line) + " has no mark: " + raw);
}

}  // namespace

std::vector<Step> read_script(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::vector<Step> steps;
  std::string raw;
  for (int line = 1; std::getline(in, raw); ++line) {
    if (raw.starts_with("  ") && !steps.empty()) {
      steps.back().text += raw.substr(raw.find_first_not_of(' '));
      steps.back().raw += "\n" + raw;
    } else {
      steps.push_back(to_step(raw, line));
    }
  }
  return steps;
}

void write_script(const std::filesystem::path& file, const std::vector<Step>& steps) {
  std::ofstream out(file);
  for (const Step& step : steps) out << step.raw << "\n";
}

}  // namespace transcripts
