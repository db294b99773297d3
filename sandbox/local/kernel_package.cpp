#include "sandbox/local/kernel_package.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <system_error>

#include "embedded/kernel_package.hpp"
#include "sandbox/image/image.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

namespace fs = std::filesystem;

namespace {

// FNV-1a: tells versions apart; what is on disk is compared in full.
std::string digest() {
  std::uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](std::string_view text) {
    for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const embedded::File& file : embedded::kernel_package()) add(file.name), add(file.text);
  add(image::loader_program());
  char hex[17];
  snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return hex;
}

bool holds(const fs::path& path, std::string_view text) {
  std::ifstream in(path, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == text;
}

void write_file(const fs::path& path, std::string_view text, fs::perms permissions) {
  // Aside and renamed: another server, or another thread of ours, may be at the same file right
  // now.
  static std::atomic<unsigned> serial = 0;
  std::string name(".");
  name.append(path.filename().string()).append(".").append(std::to_string(getpid()));
  name.append(".").append(std::to_string(++serial));
  fs::path aside = path.parent_path() / name;
  errno = 0;
  std::ofstream out(aside, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (!out)
    throw fs::filesystem_error("write", aside, std::error_code(errno, std::generic_category()));
  fs::permissions(aside, permissions);
  fs::rename(aside, path);
}

}  // namespace

fs::path install_kernel_package(const fs::path& root) try {
  fs::path directory = root / digest();
  fs::path package = directory / "pykeep_kernel";
  fs::create_directories(package);
  for (const fs::path& made : {directory, package}) fs::permissions(made, fs::perms(0755));
  for (const embedded::File& file : embedded::kernel_package())
    if (!holds(package / file.name, file.text))
      write_file(package / file.name, file.text, fs::perms(0644));
  if (!holds(directory / "loader", image::loader_program()))
    write_file(directory / "loader", image::loader_program(), fs::perms(0755));
  return directory;
} catch (const fs::filesystem_error& failure) {
  throw StartError("the kernel's own files cannot be written to " + root.string() + ": " +
                   failure.code().message() +
                   ". Make room there or make it writable, or choose another state directory.");
}

}  // namespace sandbox::local
