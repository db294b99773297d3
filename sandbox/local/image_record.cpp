#include "sandbox/local/image_record.hpp"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/describe/class.hpp>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include "sandbox/local/descriptors.hpp"
#include "schemas/codec.hpp"

namespace sandbox::local {

namespace fs = std::filesystem;
namespace json = boost::json;

BOOST_DESCRIBE_STRUCT(ImageRecord, (), (version, package, python, monotonic_ahead, boottime_ahead))

namespace {

constexpr int kVersion = 1;

[[noreturn]] void cannot_write(const fs::path& path) {
  throw FreezeError(path.string() +
                    " cannot be written: " + std::generic_category().message(errno));
}

}  // namespace

void write_record(const fs::path& image, const ImageRecord& record, bool sync) {
  std::string text = json::serialize(schemas::encode(record)) + "\n";
  Fd file(open((image / kImageRecord).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file || write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      (sync && fsync(file.get()) == -1))
    cannot_write(image / kImageRecord);
}

ImageRecord read_record(const fs::path& image) {
  std::ifstream file(image / kImageRecord, std::ios::binary);
  if (!file) throw ThawError("There is no image of a kernel in " + image.string() + ".");
  std::string text(std::istreambuf_iterator<char>(file), {});
  boost::system::error_code malformed;
  json::value value = json::parse(text, malformed);
  try {
    if (malformed) throw schemas::DecodeError(malformed.message());
    auto record = schemas::decode<ImageRecord>(value);
    if (record.version == kVersion) return record;
  } catch (const schemas::DecodeError& wrong) {
    throw ThawError("The image is damaged: " + std::string(kImageRecord) + ": " + wrong.what() +
                    ".");
  }
  throw ThawError("The image was made by another version of pykeep, which this one cannot thaw.");
}

void link_or_copy(const Fd& file, const fs::path& to) {
  // Not by the name it had: that may be gone or be another file's by now.
  std::string from = "/proc/self/fd/" + std::to_string(file.get());
  if (linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), AT_SYMLINK_FOLLOW) == 0) return;
  Fd copy(open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  struct stat status {};
  if (!copy || fstat(file.get(), &status) == -1) cannot_write(to);
  off_t offset = 0;
  while (offset < status.st_size)
    if (sendfile(copy.get(), file.get(), &offset, 1 << 30) <= 0) cannot_write(to);
  if (fsync(copy.get()) == -1) cannot_write(to);
}

Fd open_own(const fs::path& path) {
  Fd file(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file)
    throw ThawError(path.string() + " cannot be read: " + std::generic_category().message(errno) +
                    ".");
  struct stat status {};
  if (fstat(file.get(), &status) == -1 || !S_ISREG(status.st_mode) ||
      (status.st_uid != geteuid() && status.st_uid != 0) || (status.st_mode & S_IWOTH) != 0)
    throw ThawError(path.string() +
                    " is not a file of this user's alone: an image that others can write is never "
                    "thawed.");
  return duplicate(file);
}

Fd duplicate(const Fd& file) { return Fd(fcntl(file.get(), F_DUPFD_CLOEXEC, kAboveProgram)); }

}  // namespace sandbox::local
