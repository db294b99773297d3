#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// Descriptors for a launch. All are close-on-exec and numbered from kAboveProgram, so that the
// launcher can put copies at the program's numbers without overwriting one it still needs.
// Failures throw std::system_error.

constexpr int kAboveProgram = 64;

struct Pipe {
  Fd read;
  Fd write;
};

Pipe make_pipe();
std::pair<Fd, Fd> make_stream_pair();
Fd open_null();
// An anonymous file in memory that holds `bytes`, positioned at its start.
Fd memory_file(const char* name, std::string_view bytes);

void set_nonblocking(const Fd& fd);

}  // namespace sandbox::local
