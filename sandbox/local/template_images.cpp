#include "sandbox/local/template_images.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <vector>

#include "sandbox/local/environment.hpp"
#include "sandbox/local/image_record.hpp"

namespace sandbox::local {

namespace fs = std::filesystem;

namespace {

constexpr const char* kEnding = ".image";
constexpr std::size_t kKept = 3;  // versions of pykeep may take turns with one template

// What libraries read once, when they are loaded: an image has it already.
constexpr const char* kReadEarly[] = {"OMP_",    "OPENBLAS_", "MKL_",   "NUMEXPR_",
                                      "PYTHON",  "LD_",       "ARROW_", "GLIBC_",
                                      "MALLOC_", "MPL",       "LC_",    "LANG"};

std::string hex(std::uint64_t number) {
  char text[17];
  snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}

// FNV-1a: these tell versions of our own apart, nothing hostile.
std::string digest(const std::vector<std::string>& parts) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::string& part : parts) {
    for (unsigned char byte : part) hash = (hash ^ byte) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  }
  return hex(hash);
}

fs::path home(const Template& python, const fs::path& kernel_root) {
  fs::path environment = python.python.parent_path().parent_path();
  std::error_code absent;
  if (fs::exists(environment / "template.json", absent) && access(environment.c_str(), W_OK) == 0)
    return environment / "share" / "pykeep" / "images";
  return kernel_root / "images" / digest({python.python.string()});
}

std::string name_of(const SandboxSpec& spec, const fs::path& package) {
  SandboxSpec fixed = spec;
  fixed.environment.clear();  // a thawed kernel is told of these
  std::vector<std::string> parts = {package.filename().string(), spec.python.python.string()};
  for (const auto& [name, value] : program_environment(fixed)) parts.push_back(name + "=" + value);
  return digest(parts) + kEnding;
}

std::vector<fs::path> images_in(const fs::path& directory) {
  std::vector<fs::path> all;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(directory, absent))
    if (entry.path().extension() == kEnding) all.push_back(entry.path());
  return all;
}

}  // namespace

std::vector<fs::path> same_inside(const Template& python) {
  std::vector<fs::path> paths = {"/usr", "/lib", "/lib64"};
  paths.insert(paths.end(), python.visible.begin(), python.visible.end());
  return paths;
}

std::string never_from_image(const SandboxSpec& spec) {
  for (const auto& [name, value] : spec.environment)
    for (const char* prefix : kReadEarly)
      if (name.starts_with(prefix)) return "the variable " + name + " is read while Python starts";
  return {};
}

ImageSearch find_template_image(const SandboxSpec& spec, const fs::path& package,
                                const fs::path& kernel_root) try {
  ImageSearch search;
  fs::path directory = home(spec.python, kernel_root);
  fs::path path = directory / name_of(spec, package);
  std::error_code absent;
  if (!fs::exists(path, absent)) {
    search.why_not = images_in(directory).empty()
                         ? "the template has no image yet"
                         : "the template's image is not of this version of pykeep, or not for "
                           "these variables and processors";
    return search;
  }
  TemplateImage found{path, open_own(path), image::inspect(path)};
  if (auto reason = image::why_not_here(found.info, same_inside(spec.python)))
    search.why_not = "the template's image does not fit any more: " + *reason;
  else
    search.image = std::move(found);
  return search;
} catch (const std::exception& damaged) {
  ImageSearch search;
  search.why_not = std::string("the template's image cannot be used: ") + damaged.what();
  return search;
}

Fd hold_image_place(const Template& python, const fs::path& kernel_root) {
  fs::path directory = home(python, kernel_root);
  std::error_code failed;
  fs::create_directories(directory, failed);
  Fd lock(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock)
    throw FreezeError(directory.string() +
                      " cannot be made: " + std::generic_category().message(errno));
  if (flock(lock.get(), LOCK_EX | LOCK_NB) == -1) return {};
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.path().extension() != kEnding) fs::remove_all(entry.path(), failed);
  return lock;
}

ImagePlace image_place(const SandboxSpec& spec, const fs::path& package,
                       const fs::path& kernel_root) {
  fs::path directory = home(spec.python, kernel_root);
  std::string name = name_of(spec, package);
  return {directory / (name + "." + std::to_string(getpid())), directory / name};
}

void publish_image(const ImagePlace& place) {
  std::error_code failed;
  fs::rename(place.aside, place.final, failed);
  if (failed) throw FreezeError(place.final.string() + " cannot be written: " + failed.message());
  std::vector<fs::path> all = images_in(place.final.parent_path());
  auto age = [](const fs::path& path) {
    std::error_code gone;
    return fs::last_write_time(path, gone);
  };
  std::ranges::sort(all, std::greater(), age);
  for (std::size_t index = kKept; index < all.size(); ++index) fs::remove(all[index], failed);
}

}  // namespace sandbox::local
