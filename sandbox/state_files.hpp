#pragma once

// What the stores of sessions and of snapshots share: private directories, locks, records written
// whole or not at all. All block. Those that can fail throw StoreError with the path, the reason
// and the remedy.

#include <boost/json.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace sandbox {

[[noreturn]] void fail_on(const std::string& what, const std::filesystem::path& path, int error);

// 0700, and this user's; what is there already must be so too.
void make_private_directory(const std::filesystem::path& path);
// The same with the directories that lead to it.
void make_private_directories(const std::filesystem::path& path);

// The lock file of a directory, created if need be.
int open_lock(const std::filesystem::path& directory);
// Takes the lock; false when it is held for longer than a sweep looks at it.
bool try_lock(int fd, bool shared = false);

// Written aside, synced and renamed: the old content stands until the new one is whole.
void write_whole(const std::filesystem::path& path, const std::string& text);
void write_json(const std::filesystem::path& path, const boost::json::value& value);
// nullopt for anything that is not JSON of a record's size.
std::optional<boost::json::value> read_json(const std::filesystem::path& path);

// Whether a text can be the name of a session's or a snapshot's directory.
bool is_id(const std::string& text);

// Tells one image from another, whoever wrote it: what its files are called, how long they are and
// how they begin (each has a random id there). Damage further on is the backend's to find. Empty
// when there is none.
std::string fingerprint(const std::filesystem::path& image);

// tree_size() by path; 0 when it is not there.
std::uint64_t size_of(const std::filesystem::path& directory);

}  // namespace sandbox
