#include "sandbox/pandastack/asks.hpp"

#include <stdexcept>

#include "sandbox/pandastack/wire.hpp"

namespace sandbox::pandastack {

void refuse(const std::string& what) { throw std::invalid_argument(what); }

std::string sandbox_path(const std::string& id, const std::string& rest) {
  if (id.empty() || id.starts_with('.')) refuse("not the id of a sandbox: " + id);
  return "/sandboxes/" + percent_encoded(id) + rest;
}

std::string snapshot_path(const std::string& id) {
  if (id.empty() || id.starts_with('.')) refuse("not the id of a snapshot: " + id);
  return "/snapshots/" + percent_encoded(id);
}

std::string path_query(const std::string& path) {
  if (!path.starts_with('/')) refuse(path + ": expected an absolute path");
  return "path=" + percent_encoded(path);
}

Ask to_get(std::string purpose, std::string path) {
  Ask ask;
  ask.purpose = std::move(purpose);
  ask.method = "GET";
  ask.path = std::move(path);
  ask.not_found_again = true;
  return ask;
}

Ask to_delete(std::string purpose, std::string path) {
  Ask ask = to_get(std::move(purpose), std::move(path));
  ask.method = "DELETE";
  return ask;
}

Ask to_post(std::string purpose, std::string path, const boost::json::object& body) {
  Ask ask;
  ask.purpose = std::move(purpose);
  ask.method = "POST";
  ask.path = std::move(path);
  ask.headers.emplace_back("Content-Type", "application/json");
  ask.body = boost::json::serialize(body);
  return ask;
}

}  // namespace sandbox::pandastack
