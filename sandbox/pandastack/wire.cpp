#include "sandbox/pandastack/wire.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace sandbox::pandastack {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxId = 200;

const json::object& object(const json::value& in) {
  if (!in.is_object()) throw std::runtime_error("the answer is no JSON object");
  return in.get_object();
}

std::string text(const json::object& in, std::string_view key) {
  const json::value* found = in.if_contains(key);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

std::string id(const json::object& in) {
  std::string found = text(in, "id");
  // It becomes a part of paths.
  auto is_plain = [](unsigned char c) {
    return std::isalnum(c) || c == '-' || c == '_' || c == '.';
  };
  bool is_one = !found.empty() && found[0] != '.' && found.size() <= kMaxId &&
                std::ranges::all_of(found, is_plain);
  if (!is_one) throw std::runtime_error("the answer has no id");
  return found;
}

// 0 for what is no number, or none that fits.
template <class Integer>
Integer number(const json::object& in, std::string_view key) {
  const json::value* found = in.if_contains(key);
  if (!found) return 0;
  boost::system::error_code bad;
  Integer out = found->to_number<Integer>(bad);
  return bad ? Integer(0) : out;
}

// The list itself, or below `key`; null is an empty one, as Go writes it.
json::array list(const json::value& in, std::string_view key) {
  if (in.is_array()) return in.get_array();
  if (in.is_null()) return {};
  const json::value* found = object(in).if_contains(key);
  if (!found || found->is_null()) return {};
  if (!found->is_array()) throw std::runtime_error("the answer has no list");
  return found->get_array();
}

Metadata metadata(const json::object& in) {
  Metadata out;
  const json::value* found = in.if_contains("metadata");
  if (!found || !found->is_object()) return out;
  for (const auto& [key, value] : found->get_object())
    if (value.is_string()) out.emplace(key, value.get_string());
  return out;
}

template <class T>
std::vector<T> each(const json::array& in, T (*read)(const json::value&)) {
  std::vector<T> out;
  for (const json::value& item : in) out.push_back(read(item));
  return out;
}

}  // namespace

SandboxInfo read_sandbox(const json::value& in) {
  const json::object& from = object(in);
  SandboxInfo out;
  out.id = id(from);
  out.status = text(from, "status");
  out.cpu = number<int>(from, "cpu");
  out.memory_mb = number<int>(from, "memory_mb");
  out.metadata = metadata(from);
  return out;
}

std::vector<SandboxInfo> read_sandboxes(const json::value& in) {
  return each(list(in, "items"), read_sandbox);
}

ExecResult read_exec(const json::value& in) {
  const json::object& from = object(in);
  if (!from.contains("exit_code")) throw std::runtime_error("the answer has no exit_code");
  return {number<int>(from, "exit_code"), text(from, "stdout"), text(from, "stderr")};
}

ReplResult read_repl(const json::value& in) {
  const json::object& from = object(in);
  if (!from.contains("exit")) throw std::runtime_error("the answer has no exit");
  ReplResult out;
  out.exit_code = number<int>(from, "exit");
  out.standard_output = text(from, "stdout");
  out.standard_error = text(from, "stderr");
  for (const json::value& each : list(in, "results"))
    if (each.is_object()) out.results.push_back(each.get_object());
  return out;
}

std::string read_id(const json::value& in) { return id(object(in)); }

Identity read_identity(const json::value& in) {
  const json::object& from = object(in);
  Identity out{text(from, "email")};
  if (out.user.empty()) out.user = text(from, "user_id");
  return out;
}

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (kUnreserved.find(c) != kUnreserved.npos)
      out += c;
    else
      out.append({'%', kHex[byte >> 4], kHex[byte & 15]});
  }
  return out;
}

}  // namespace sandbox::pandastack
