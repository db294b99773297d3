#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace transport::http {

// A part of a file, in bytes.
struct ByteRange {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;  // 0: no byte of the file is in it (416)
};

// What a Range header asks of a file of `size` bytes (RFC 9110, section 14). nullopt where the
// whole file is to be sent: another unit, bad syntax, or several ranges, which we may ignore.
std::optional<ByteRange> byte_range(std::string_view header, std::uint64_t size);

// "attachment" with the file's name: as ASCII for old clients, and as UTF-8 (RFC 6266, RFC 8187).
// `name` may be any bytes; nothing of it can end the header or the quotes.
std::string attachment(std::string_view name);

// The type by the name's ending where it is one that no browser executes; else
// application/octet-stream. HTML, SVG, XML and scripts are never told as such.
std::string_view inert_type(std::string_view name);

}  // namespace transport::http
