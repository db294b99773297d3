#include "sandbox/image/writer.hpp"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace sandbox::image {

namespace {

constexpr std::uint64_t kMaxExtent = 16 << 20;  // what one checksum covers

bool is_zero(const char* page) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(page);
  for (std::size_t word = 0; word < kPageSize / 8; word += 8) {
    std::uint64_t any = 0;
    for (std::size_t index = 0; index < 8; ++index) any |= words[word + index];
    if (any) return false;
  }
  return true;
}

}  // namespace

Writer::Writer(std::filesystem::path image, std::uint64_t max_bytes)
    : image_(std::move(image)), aside_(image_), max_bytes_(max_bytes) {
  aside_ += ".partial";
  std::error_code gone;
  if (std::filesystem::exists(std::filesystem::symlink_status(image_, gone)))
    refuse("the image exists already: " + image_.string());
  constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  file_ = Handle(open(aside_.c_str(), kFlags, 0600));
  if (!file_ && errno == EEXIST) {  // from a server that was killed
    unlink(aside_.c_str());
    file_ = Handle(open(aside_.c_str(), kFlags, 0600));
  }
  if (!file_) refuse_errno("cannot make the image " + aside_.string());
}

Writer::~Writer() {
  if (!committed_ && file_) unlink(aside_.c_str());
}

std::uint64_t Writer::reserve(std::uint64_t size) {
  std::uint64_t offset = end_;
  end_ = page_up(end_ + size);
  return offset;
}

void Writer::write(std::uint64_t offset, const char* bytes, std::uint64_t size) {
  for (std::uint64_t at = 0; at < size;) {
    auto zero = [&](std::uint64_t page) {
      return page + kPageSize <= size && is_zero(bytes + page);
    };
    if (zero(at)) {
      at += kPageSize;
      continue;
    }
    std::uint64_t end = std::min(at + kPageSize, size);
    while (end < size && !zero(end)) end = std::min(end + kPageSize, size);
    put(offset + at, bytes + at, end - at);
    at = end;
  }
}

std::uint64_t Writer::append(std::string_view bytes) {
  std::uint64_t offset = reserve(bytes.size());
  if (!bytes.empty()) put(offset, bytes.data(), bytes.size());
  return offset;
}

void Writer::put(std::uint64_t offset, const char* bytes, std::uint64_t size) {
  written_ += size;
  if (written_ > max_bytes_)
    refuse("the image would take more than " + std::to_string(max_bytes_ >> 20) + " MiB");
  for (std::uint64_t done = 0; done < size;) {
    ssize_t part =
        pwrite(file_.get(), bytes + done, size - done, static_cast<off_t>(offset + done));
    if (part == -1 && errno == EINTR) continue;
    if (part <= 0) refuse_errno("cannot write the image " + aside_.string());
    done += static_cast<std::uint64_t>(part);
  }
  Extent* last = extents_.empty() ? nullptr : &extents_.back();
  if (last && last->offset + last->length == offset && last->length + size <= kMaxExtent) {
    last->crc = crc32c(bytes, size, last->crc);
    last->length += size;
  } else {
    extents_.push_back({offset, size, crc32c(bytes, size), 0});
  }
}

// In parts, since fsync(2) cannot be given up half-way.
void Writer::sync(const std::function<void()>& check) {
  constexpr std::uint64_t kPart = 8 << 20;
  constexpr unsigned kWritten =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  for (std::uint64_t at = 0; at < end_; at += kPart) {
    check();
    int result = sync_file_range(file_.get(), static_cast<off_t>(at), kPart, kWritten);
    if (result == -1 && (errno == EIO || errno == ENOSPC))  // told once: fsync would not know
      refuse_errno("cannot write the image " + aside_.string());
  }
  check();
  if (fsync(file_.get()) == -1) refuse_errno("cannot write the image " + aside_.string());
}

std::uint64_t Writer::commit(Metadata& metadata, Header header, bool sync,
                             const std::function<void()>& check) {
  std::ranges::sort(extents_, {}, &Extent::offset);
  metadata.extents = extents_;
  std::string bytes = serialize(metadata, header);
  header.magic = kMagic;
  header.version = kFormatVersion;
  header.page_size = kPageSize;
  header.metadata_offset = end_;
  header.metadata_size = bytes.size();
  header.metadata_crc = crc32c(bytes.data(), bytes.size());
  header.file_size = end_ + bytes.size();
  header.header_crc = 0;
  header.header_crc = crc32c(&header, sizeof header);
  put(end_, bytes.data(), bytes.size());
  put(0, reinterpret_cast<const char*>(&header), sizeof header);

  if (sync) this->sync(check);
  struct stat status {};
  if (fstat(file_.get(), &status) == -1) refuse_errno("cannot write the image " + aside_.string());
  // To a name that was never used: replacing a file that is in use would break those who map it,
  // and costs a second on ext4 (auto_da_alloc).
  if (renameat2(AT_FDCWD, aside_.c_str(), AT_FDCWD, image_.c_str(), RENAME_NOREPLACE) == -1)
    refuse_errno("cannot name the image " + image_.string());
  committed_ = true;
  if (!sync) return written_;
  Handle directory(open(image_.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory) fsync(directory.get());
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

}  // namespace sandbox::image
