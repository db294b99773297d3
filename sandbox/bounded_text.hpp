#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sandbox {

// The greatest size <= `size` that does not cut a UTF-8 sequence in two; `size` itself where the
// bytes around it are no UTF-8. `size` is at most bytes.size().
std::size_t whole_characters(std::string_view bytes, std::size_t size);

// The end of `bytes`, at most `size` of them, fit for an error message: one that a person reads in
// a terminal and that becomes JSON. Control characters are dropped, what is not UTF-8 becomes '?'.
std::string readable_end(std::string_view bytes, std::size_t size);

// "512 B", "1.5 KiB", "2 GiB": as precise as a person wants it.
std::string size_text(std::uint64_t bytes);

}  // namespace sandbox
