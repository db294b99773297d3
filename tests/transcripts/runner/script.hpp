#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace transcripts {

// One line of a transcript with its continuation lines.
struct Step {
  enum class Kind {
    prose,
    stdio_only,
    option,
    send,
    expect,
    expect_any_order,
    expect_repeated,
    wait
  };
  Kind kind;
  std::string text;  // without its mark, continuation lines joined
  std::string raw;   // as in the file, for writing it back
  int line;
  std::string backend;  // its mark, "[local] "; empty: it is for any
};

// As it is played with `backend`; lines for another one are prose. Throws std::runtime_error that
// names the line.
std::vector<Step> read_script(const std::filesystem::path& file, const std::string& backend);

void write_script(const std::filesystem::path& file, const std::vector<Step>& steps);

}  // namespace transcripts
