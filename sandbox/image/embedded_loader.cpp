#include "sandbox/image/image.hpp"

// IMAGE_LOADER: the linked loader (cmake/loader.cmake).
asm(R"(
    .section .rodata
    .balign 16
    .globl pykeep_image_loader
pykeep_image_loader:
    .incbin ")" IMAGE_LOADER R"("
    .globl pykeep_image_loader_end
pykeep_image_loader_end:
    .previous
)");

extern "C" const char pykeep_image_loader[], pykeep_image_loader_end[];

namespace sandbox::image {

std::string_view loader_program() {
  return {pykeep_image_loader,
          static_cast<std::size_t>(pykeep_image_loader_end - pykeep_image_loader)};
}

}  // namespace sandbox::image
