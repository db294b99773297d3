#include "sandbox/pandastack/vm_records.hpp"

#include <sys/random.h>

#include <boost/describe.hpp>
#include <cerrno>
#include <system_error>

#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"
#include "sandbox/state_files.hpp"
#include "schemas/codec.hpp"

namespace sandbox::pandastack {

namespace fs = std::filesystem;

BOOST_DESCRIBE_STRUCT(Vm, (), (id, package, port, secret, cpu, memory_mb))
BOOST_DESCRIBE_STRUCT(SessionVm, (), (version, vm, tag))
BOOST_DESCRIBE_STRUCT(Image, (), (version, snapshot, template_name, vm))

namespace {

constexpr int kVersion = 1;
constexpr const char* kSessionVm = "sandbox.json";
constexpr const char* kImage = "pandastack.json";

template <class T>
std::optional<T> read(const fs::path& path) {
  auto value = read_json(path);
  if (!value) return std::nullopt;
  try {
    auto record = schemas::decode<T>(*value);
    if (record.version == kVersion) return record;
  } catch (const schemas::DecodeError&) {  // damaged, or of another version
  }
  return std::nullopt;
}

struct Owner {
  int version = kVersion;
  std::string id;
};
BOOST_DESCRIBE_STRUCT(Owner, (), (version, id))

}  // namespace

std::optional<SessionVm> read_session_vm(const fs::path& directory) {
  if (directory.empty()) return SessionVm();
  if (auto record = read<SessionVm>(directory / kSessionVm)) return record;
  std::error_code failed;
  auto status = fs::symlink_status(directory / kSessionVm, failed);
  if (status.type() == fs::file_type::not_found) return SessionVm();
  return std::nullopt;
}

void write_session_vm(const fs::path& directory, const SessionVm& record) {
  if (!directory.empty()) write_json(directory / kSessionVm, schemas::encode(record));
}

void write_image(const fs::path& image, const Image& record) {
  fs::path aside = image;
  aside += ".new";
  std::error_code failed;
  fs::remove_all(aside, failed);
  try {
    make_private_directory(aside);
    write_json(aside / kImage, schemas::encode(record));
    fs::rename(aside, image);
  } catch (const std::exception& failure) {
    fs::remove_all(aside, failed);
    throw FreezeError(failure.what());
  }
}

std::optional<Image> read_image(const fs::path& image) { return read<Image>(image / kImage); }

std::set<std::string> sources_of_snapshots(const fs::path& root) {
  std::set<std::string> sources;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(root / "snapshots", absent))
    if (auto image = read_image(entry.path() / "image"); image && !image->snapshot.empty())
      sources.insert(image->vm.id);
  return sources;
}

std::string owner_of(const fs::path& root) {
  fs::path path = root / "owner.json";
  if (auto owner = read<Owner>(path)) return owner->id;
  make_private_directories(root);
  int lock = open_lock(root);
  bool first = try_lock(lock);
  auto owner = read<Owner>(path);
  if (!owner && first) {
    owner.emplace();
    owner->id = random_hex(8);
    write_json(path, schemas::encode(*owner));
  }
  close(lock);
  if (!owner) throw StoreError("The state directory " + root.string() + " is in use; try again.");
  return owner->id;
}

std::string random_hex(std::size_t bytes) {
  std::string raw(bytes, '\0');
  if (getrandom(raw.data(), raw.size(), 0) != static_cast<ssize_t>(raw.size()))
    throw std::system_error(errno, std::generic_category(), "getrandom");
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned char byte : raw) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace sandbox::pandastack
