#pragma once

#include <filesystem>

#include "sandbox/image/metadata.hpp"
#include "sandbox/image/proc.hpp"

namespace sandbox::image {

// An image, opened and understood.
struct ImageFile {
  Handle file;
  Header header{};
  Metadata metadata;
};

// Checks checksums of header and metadata, and every number in them that refers to something.
// Throws ThawError.
ImageFile open_image(const std::filesystem::path& path);

// Replaces the metadata of an image that nobody uses yet. Throws FreezeError.
void rewrite_metadata(const std::filesystem::path& path, const Metadata& metadata, Header header);

}  // namespace sandbox::image
