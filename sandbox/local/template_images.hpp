#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/image/image.hpp"
#include "sandbox/local/process.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// The images that sessions start from. Those of an environment that `pykeep template build` made
// are kept in it (<environment>/share/pykeep/images), others below the server's own directory. Each
// is named by what must be the same for a session: the kernel package and the loader, the
// interpreter, the variables that libraries read when they are loaded. Nothing here is ever
// changed, and what is thawed or referred to stays: an image that is replaced only loses its name.
// All functions block for a few file operations.

struct TemplateImage {
  std::filesystem::path path;
  Fd file;
  image::ImageInfo info;
};

struct ImageSearch {
  std::optional<TemplateImage> image;
  std::string why_not;  // for the reader, without a remedy; empty when found
};

// `package`: as install_kernel_package() returned it. Never throws.
ImageSearch find_template_image(const SandboxSpec& spec, const std::filesystem::path& package,
                                const std::filesystem::path& kernel_root);

// The directories that have the same path inside a sandbox of this Python as here.
std::vector<std::filesystem::path> same_inside(const Template& python);

// Why sessions with this spec cannot start from an image whatever is baked; empty if they can.
std::string never_from_image(const SandboxSpec& spec);

// Held while an image is made, so that servers do not all make the same one; what one that was
// killed has left unfinished is removed. Empty when another makes one. Throws FreezeError when the
// place cannot be written.
Fd hold_image_place(const Template& python, const std::filesystem::path& kernel_root);

// Where a new one is to be written aside, and where it then belongs.
struct ImagePlace {
  std::filesystem::path aside, final;
};
ImagePlace image_place(const SandboxSpec& spec, const std::filesystem::path& package,
                       const std::filesystem::path& kernel_root);

// Puts it in its place and removes the oldest others. Throws FreezeError.
void publish_image(const ImagePlace& place);

}  // namespace sandbox::local
