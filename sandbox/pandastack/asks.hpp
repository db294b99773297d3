#pragma once

// The parts that calls are made of.

#include <boost/json.hpp>
#include <string>

#include "sandbox/pandastack/caller.hpp"

namespace sandbox::pandastack {

// That a call makes no sense: std::invalid_argument, and nothing is sent.
[[noreturn]] void refuse(const std::string& what);

// Ids are what a server said, or a file that others can write: they stay one part of the path.
std::string sandbox_path(const std::string& id, const std::string& rest = {});
std::string snapshot_path(const std::string& id);
// "path=%2Fworkspace" of an absolute path.
std::string path_query(const std::string& path);

Ask to_get(std::string purpose, std::string path);
Ask to_delete(std::string purpose, std::string path);
// Always with a body, since the cloud's edge wants a length (411).
Ask to_post(std::string purpose, std::string path, const boost::json::object& body = {});

}  // namespace sandbox::pandastack
