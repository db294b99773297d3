#include "tools/fatal_error.hpp"

namespace tools {

namespace {

bool has(std::string_view line, std::string_view part) { return line.find(part) != line.npos; }

bool is_noise(std::string_view line) {
  if (line.starts_with("Extension modules: ")) return true;
  return line.starts_with("  File \"") &&
         (has(line, "/pykeep_kernel/") || has(line, "-packages/IPython/"));
}

// `  File "<cell 3>", line 1 in f` is, as in tracebacks, `  Cell In[3], line 1 in f`.
std::string shortened(std::string_view line) {
  constexpr std::string_view kFile = "  File \"", kCell = "  File \"<cell ", kCellEnd = ">\"";
  std::size_t end = line.find(kCellEnd);
  if (line.starts_with(kCell) && end != line.npos)
    return "  Cell In[" + std::string(line.substr(kCell.size(), end - kCell.size())) + "]" +
           std::string(line.substr(end + kCellEnd.size()));
  std::size_t packages = line.find("site-packages/");
  if (line.starts_with(kFile) && packages != line.npos)
    return std::string(kFile) + ".../" + std::string(line.substr(packages));
  return std::string(line);
}

}  // namespace

std::string shorten_fatal_error(std::string_view text) {
  std::size_t start = text.find("Fatal Python error: ");
  if (start == text.npos) return std::string(text);
  std::string out(text.substr(0, start));
  std::string_view rest = text.substr(start);
  while (!rest.empty()) {
    std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    if (is_noise(line)) continue;
    bool blank_again = line.empty() && out.ends_with("\n\n");
    if (!blank_again) out += shortened(line) + "\n";
  }
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

}  // namespace tools
