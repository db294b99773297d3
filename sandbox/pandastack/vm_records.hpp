#pragma once

// What this backend keeps on this machine: which microVM is a session's, and what an image is.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace sandbox::pandastack {

// A microVM with our kernel in it, and what it takes to speak to that.
struct Vm {
  std::string id;       // at PandaStack
  std::string package;  // directory of our packages in the guest
  int port = 0;         // of the relay
  std::string secret;   // the relay's; 64 hexadecimal digits
  // As the template has them: a restore has to name them.
  int cpu = 0, memory_mb = 0;
};

// <session's directory>/sandbox.json. What no session's record names is nobody's (House reaps it).
struct SessionVm {
  int version = 1;
  std::optional<Vm> vm;
  // In the metadata of one that is being made: written before it can exist.
  std::optional<std::string> tag;
};

// <image>/pandastack.json: a snapshot, or a sandbox that was hibernated, when `snapshot` is empty.
struct Image {
  int version = 1;
  std::string snapshot;
  std::string template_name;
  Vm vm;  // the source
};

// An empty one if there is none; nullopt if there is one that cannot be read now, or not as ours.
std::optional<SessionVm> read_session_vm(const std::filesystem::path& directory);
// Throws StoreError. An empty directory: nothing is kept.
void write_session_vm(const std::filesystem::path& directory, const SessionVm& record);

// Makes the directory, with all of it or not at all. Throws FreezeError.
void write_image(const std::filesystem::path& image, const Image& record);
std::optional<Image> read_image(const std::filesystem::path& image);

// Every microVM that a snapshot below `root` (snapshot_store.hpp) was made of: to delete it would
// delete the snapshot.
std::set<std::string> sources_of_snapshots(const std::filesystem::path& root);

// The name by which this state directory knows its own at PandaStack; made when there is none.
// Throws StoreError.
std::string owner_of(const std::filesystem::path& root);

// Random, in hexadecimal.
std::string random_hex(std::size_t bytes);

}  // namespace sandbox::pandastack
