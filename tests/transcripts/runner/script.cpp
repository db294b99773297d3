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

// "[local] < {...}": the backend that a line is for, as it stands there.
std::string backend_mark(const std::string& raw) {
  auto end = raw.starts_with("[") ? raw.find("] ") : std::string::npos;
  return end == std::string::npos ? std::string() : raw.substr(0, end + 2);
}

Step to_step(const std::string& raw, int line, const std::string& backend) {
  std::string given = backend_mark(raw);
  bool is_for_another = !given.empty() && given != "[" + backend + "] ";
  if (raw.empty() || is_for_another) return {Step::Kind::prose, "", raw, line, ""};
  std::string step = raw.substr(given.size());
  for (const auto& [mark, kind] : kMarks)
    if (step.starts_with(mark)) return {kind, step.substr(mark.size()), raw, line, given};
  throw std::runtime_error("line " + std::to_string(line) + " has no mark: " + raw);
}

}  // namespace

std::vector<Step> read_script(const std::filesystem::path& file, const std::string& backend) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::vector<Step> steps;
  std::string raw;
  for (int line = 1; std::getline(in, raw); ++line) {
    if (raw.starts_with("  ") && !steps.empty()) {
      steps.back().text += raw.substr(raw.find_first_not_of(' '));
      steps.back().raw += "\n" + raw;
    } else {
      steps.push_back(to_step(raw, line, backend));
    }
  }
  return steps;
}

void write_script(const std::filesystem::path& file, const std::vector<Step>& steps) {
  std::ofstream out(file);
  for (const Step& step : steps) out << step.raw << "\n";
}

}  // namespace transcripts
