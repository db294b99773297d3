# The image loader: a program without a C library, linked at a place of its own, which the sandbox
# library carries along (sandbox/image/embedded_loader.cpp). Built the same way in every configuration:
# no sanitizer, no LTO, no instruction that needs registers a frozen thread may be using.
enable_language(ASM)

set(loader_directory ${CMAKE_SOURCE_DIR}/sandbox/image/loader)
set(vdso_proxy ${CMAKE_BINARY_DIR}/vdso_proxy.so)
add_custom_command(OUTPUT ${vdso_proxy}
  COMMAND ${CMAKE_CXX_COMPILER} -nostdlib -shared -Wl,-soname,linux-vdso.so.1 -Wl,--hash-style=both
          -Wl,--build-id=none -Wl,-T,${loader_directory}/vdso_proxy.lds
          ${loader_directory}/vdso_proxy.S -o ${vdso_proxy}
  DEPENDS ${loader_directory}/vdso_proxy.S ${loader_directory}/vdso_proxy.lds
  VERBATIM)

file(GLOB loader_sources CONFIGURE_DEPENDS ${loader_directory}/*.cpp)
add_executable(image-loader ${loader_sources} ${loader_directory}/entry.S)
set(image_loader ${CMAKE_BINARY_DIR}/image-loader)
set_target_properties(image-loader PROPERTIES LINK_LIBRARIES "" INTERPROCEDURAL_OPTIMIZATION OFF
  RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
set_source_files_properties(${loader_directory}/entry.S PROPERTIES
  OBJECT_DEPENDS ${vdso_proxy} COMPILE_DEFINITIONS "VDSO_PROXY=\"${vdso_proxy}\"")
set_source_files_properties(${loader_sources} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
target_include_directories(image-loader PRIVATE ${CMAKE_SOURCE_DIR})
target_compile_options(image-loader PRIVATE $<$<COMPILE_LANGUAGE:CXX>:
  -O2 -Wall -Wextra -Wpedantic -Werror -ffreestanding -fPIE -fno-exceptions -fno-rtti -mgeneral-regs-only
  -fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -fno-threadsafe-statics
  $<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns> -U_FORTIFY_SOURCE>)
target_link_options(image-loader PRIVATE -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,norelro
  -Wl,-z,noexecstack -Wl,-z,max-page-size=4096 -Wl,-T,${loader_directory}/loader.lds)
set_target_properties(image-loader PROPERTIES LINK_DEPENDS
  "${loader_directory}/loader.lds")

set_source_files_properties(${CMAKE_SOURCE_DIR}/sandbox/image/embedded_loader.cpp PROPERTIES
  OBJECT_DEPENDS ${image_loader} COMPILE_OPTIONS -fno-lto SKIP_PRECOMPILE_HEADERS ON
  COMPILE_DEFINITIONS "IMAGE_LOADER=\"${image_loader}\"")
