#include "sandbox/pandastack/guest_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sandbox/bounded_text.hpp"
#include "sandbox/workspace_path.hpp"
#include "schemas/base64.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr std::size_t kPart = kMaxUpload;
constexpr std::size_t kReadPart = 4 << 20;  // of one command's answer, before base64
constexpr std::uint64_t kReadCap = 8 << 20;
constexpr std::uint64_t kListCap = 8 << 20;          // parsed on the event loop
constexpr const char* kOwn = "/workspace/.pykeep/";  // workspace.py
constexpr std::size_t kMaxVersion = 100;

[[noreturn]] void garbled(const std::string& path) {
  throw FileError(printable(path) + ": the sandbox's answer is not one");
}

const json::value& member(const json::object& answer, const char* name, const std::string& path) {
  const json::value* value = answer.if_contains(name);
  if (!value) garbled(path);
  return *value;
}

std::int64_t number(const json::object& answer, const char* name, const std::string& path) {
  const json::value& value = member(answer, name, path);
  if (!value.is_int64()) garbled(path);
  return value.get_int64();
}

std::string text(const json::object& answer, const char* name, const std::string& path) {
  const json::value& value = member(answer, name, path);
  if (!value.is_string()) garbled(path);
  return std::string(value.get_string());
}

std::string decoded(const json::object& answer, const char* name, const std::string& path) {
  auto bytes = schemas::base64_decode(text(answer, name, path));
  if (!bytes) garbled(path);
  return std::move(*bytes);
}

FileInfo info_of(const json::object& answer, const std::string& asked) {
  FileInfo info;
  info.path = printable(decoded(answer, "path", asked));
  std::string mode = text(answer, "mode", asked);
  info.is_directory = mode == "d";
  info.is_link = mode == "l";
  info.size = static_cast<std::uint64_t>(std::max<std::int64_t>(number(answer, "size", asked), 0));
  info.modified = number(answer, "modified", asked);
  return info;
}

// What workspace.py says; FileError for what it, or the way to it, refuses.
awaitable<json::object> perform(std::shared_ptr<Guest> guest, std::string operation,
                                std::string path, json::object given, std::uint64_t cap = 1 << 20) {
  given["op"] = operation;
  given["path"] = schemas::base64_encode(path);
  std::string said;
  try {
    said = co_await guest->script("workspace.py", std::move(given), cap);
  } catch (const Error& failure) {
    throw FileError(printable(path) + ": the sandbox cannot be asked: " + failure.what());
  }
  boost::system::error_code malformed;
  json::value answer = json::parse(said, malformed);
  if (malformed || !answer.is_object()) garbled(path);
  json::object object = std::move(answer.get_object());
  if (object.contains("error")) {
    auto error = static_cast<int>(number(object, "error", path));
    if (error == ENODEV)
      throw FileError(printable(path) + ": it is not a regular file (a pipe, socket or device)");
    fail(path, error > 0 && error < 4096 ? error : EIO);
  }
  co_return object;
}

awaitable<std::string> read_parts(std::shared_ptr<Guest> guest, std::string path,
                                  std::uint64_t offset, std::size_t size) {
  std::string bytes;
  while (bytes.size() < size) {
    std::size_t wanted = std::min(size - bytes.size(), kReadPart);
    json::object given;
    given["offset"] = offset + bytes.size();
    given["size"] = wanted;
    auto answer = co_await perform(guest, "read", path, std::move(given), kReadCap);
    std::string part = decoded(answer, "bytes", path);
    if (part.size() > wanted) garbled(path);
    bytes += part;
    if (part.size() < wanted) break;
  }
  co_return bytes;
}

class Writer final : public FileWriter {
 public:
  Writer(async::TaskGroup& tasks, std::shared_ptr<Guest> guest, std::string path)
      : tasks_(tasks), guest_(std::move(guest)), path_(std::move(path)) {}
  ~Writer() override {
    if (!parts_.empty()) tasks_.spawn(drop(guest_, std::move(parts_)));
  }

  awaitable<void> write(std::string_view bytes) override {
    while (!bytes.empty()) {
      std::size_t room = std::min(bytes.size(), kPart - waiting_.size());
      waiting_.append(bytes.substr(0, room));
      bytes.remove_prefix(room);
      if (waiting_.size() == kPart) co_await flush();
    }
  }
  awaitable<FileInfo> finish() override {
    if (!waiting_.empty() || parts_.empty()) co_await flush();
    json::object given;
    json::array names;
    for (const std::string& part : parts_) names.emplace_back(part);
    given["parts"] = std::move(names);
    given["part_size"] = kPart;
    given["size"] = size_;
    auto answer = co_await perform(guest_, "finish", path_, std::move(given));
    parts_.clear();
    co_return info_of(answer, path_);
  }

 private:
  awaitable<void> flush() {
    std::string part = "part-" + random_hex(8);
    parts_.push_back(part);  // also when it fails: some of it may be there
    std::string content = std::exchange(waiting_, std::string());
    size_ += content.size();
    try {
      co_await guest_->client().put_file(guest_->vm().id, kOwn + part, std::move(content));
    } catch (const Error& failure) {
      throw FileError(printable(path_) + ": it cannot be brought to the sandbox: " +
                      failure.what() + ". What was at this path before is still there");
    }
  }
  static awaitable<void> drop(std::shared_ptr<Guest> guest, std::vector<std::string> parts) {
    json::object given;
    json::array names;
    for (const std::string& part : parts) names.emplace_back(part);
    given["parts"] = std::move(names);
    try {
      co_await perform(guest, "drop", ".", std::move(given));
    } catch (const FileError&) {  // they are dropped when they are old
    }
  }

  async::TaskGroup& tasks_;
  std::shared_ptr<Guest> guest_;
  std::string path_, waiting_;
  std::vector<std::string> parts_;
  std::uint64_t size_ = 0;  // of all parts
};

class Reader final : public FileReader {
 public:
  Reader(std::shared_ptr<Guest> guest, std::string path, std::string name, FileInfo info,
         std::string version)
      : guest_(std::move(guest)),
        path_(std::move(path)),
        name_(std::move(name)),
        info_(std::move(info)),
        version_(std::move(version)) {}
  const FileInfo& info() const override { return info_; }
  const std::string& version() const override { return version_; }
  awaitable<std::string> read(std::uint64_t offset, std::size_t size) override {
    if (offset >= info_.size) co_return "";
    std::size_t wanted = std::min<std::uint64_t>(size, info_.size - offset);
    auto reading = read_parts(guest_, ".pykeep/" + name_, offset, wanted);
    co_return co_await std::move(reading);
  }

 private:
  std::shared_ptr<Guest> guest_;
  std::string path_, name_;
  FileInfo info_;
  std::string version_;
};

}  // namespace

GuestFiles::GuestFiles(async::TaskGroup& tasks, asio::thread_pool& pool,
                       std::shared_ptr<Guest> guest)
    : tasks_(tasks), pool_(pool), guest_(std::move(guest)) {}

awaitable<FileInfo> GuestFiles::stat(std::string path) {
  std::string relative = workspace_path(path);
  auto answer = co_await perform(guest_, "stat", relative, json::object());
  co_return info_of(answer, relative);
}

awaitable<Listing> GuestFiles::list(std::string path, int depth, std::size_t cap) {
  std::string relative = workspace_path(path);
  json::object given;
  given["depth"] = depth;
  given["cap"] = cap;
  auto answer = co_await perform(guest_, "list", relative, std::move(given), kListCap);
  const json::value& entries = member(answer, "entries", relative);
  const json::value& complete = member(answer, "complete", relative);
  if (!entries.is_array() || !complete.is_bool() || entries.get_array().size() > cap)
    garbled(relative);
  Listing listing;
  listing.complete = complete.get_bool();
  for (const json::value& entry : entries.get_array()) {
    if (!entry.is_object()) garbled(relative);
    listing.entries.push_back(info_of(entry.get_object(), relative));
  }
  std::ranges::sort(listing.entries, {}, &FileInfo::path);
  co_return listing;
}

awaitable<std::string> GuestFiles::read(std::string path, std::uint64_t offset, std::size_t size) {
  std::string relative = workspace_path(path);
  co_return co_await read_parts(guest_, std::move(relative), offset, size);
}

awaitable<FileInfo> GuestFiles::write(std::string path, std::string bytes) {
  Writer writer(tasks_, guest_, file_path(path));
  co_await writer.write(bytes);
  co_return co_await writer.finish();
}

awaitable<FileInfo> GuestFiles::copy_in(std::string path, int host_fd, std::uint64_t cap) {
  Writer writer(tasks_, guest_, file_path(path));
  std::uint64_t total = 0;
  std::string buffer(4 << 20, '\0');
  auto fill = [&buffer, host_fd, &total] {
    ssize_t got = 0;
    do got = pread(host_fd, buffer.data(), buffer.size(), static_cast<off_t>(total));
    while (got < 0 && errno == EINTR);
    return got < 0 ? -static_cast<ssize_t>(errno) : got;
  };
  for (;;) {
    ssize_t got = co_await async::on_pool(pool_, fill);
    if (got < 0) fail(path, static_cast<int>(-got));
    if (got == 0) break;
    total += static_cast<std::uint64_t>(got);
    if (total > cap)
      throw FileError(printable(path) + ": the file is larger than an upload may be (" +
                      size_text(cap) + "). Nothing was changed");
    co_await writer.write(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
  }
  co_return co_await writer.finish();
}

awaitable<std::unique_ptr<FileWriter>> GuestFiles::create(std::string path) {
  std::string relative = file_path(path);
  co_await perform(guest_, "check", relative, json::object());
  co_return std::make_unique<Writer>(tasks_, guest_, std::move(relative));
}

awaitable<std::unique_ptr<FileReader>> GuestFiles::open(std::string path) {
  std::string relative = workspace_path(path);
  std::string name = "open-" + random_hex(8);
  json::object given;
  given["as"] = name;
  auto answer = co_await perform(guest_, "open", relative, std::move(given));
  std::string version = text(answer, "version", relative);
  if (version.size() > kMaxVersion) garbled(relative);
  co_return std::make_unique<Reader>(guest_, relative, std::move(name), info_of(answer, relative),
                                     std::move(version));
}

awaitable<std::uint64_t> GuestFiles::used(std::uint64_t enough) {
  json::object given;
  given["enough"] = enough;
  auto answer = co_await perform(guest_, "used", ".", std::move(given));
  co_return static_cast<std::uint64_t>(std::max<std::int64_t>(number(answer, "used", "."), 0));
}

}  // namespace sandbox::pandastack
