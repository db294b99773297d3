#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sandbox::pandastack {

inline constexpr const char* kCloud = "https://api.pandastack.ai";

// Where the API is and who we are there.
struct Settings {
  std::string base;  // "https://api.pandastack.ai/v1": with the version, without a slash at its end
  std::string key;   // a secret. Empty only for a server on this machine
  std::string key_from;  // for people: the variable's name or the file; empty without a key
  std::string ca_file;   // SSL_CERT_FILE; empty: the system's
  std::chrono::milliseconds warm_up{20'000};  // PANDASTACK_EXEC_READY_TIMEOUT_MS

  // Neither TLS nor this machine: the key goes over the network in plain text. Only when the
  // operator says so; to be warned of in the log.
  bool in_plain_text() const;
};

using Variables = std::function<std::optional<std::string>(const char* name)>;

// The environment of this process.
std::optional<std::string> environment_variable(const char* name);

// The key: PANDASTACK_API_KEY, then PANDASTACK_TOKEN, then `token`, `apiKey` or `api_key` of
// pandastack/config.json in XDG_CONFIG_HOME or ~/.config; empty ones are as if they were absent.
// The base: `base` if it is not empty, then PANDASTACK_API, then the cloud. Blocks for a small
// file. Throws StartError: no key for a server elsewhere, a base that is no URL, a file that is not
// JSON.
Settings read_settings(std::string_view base = {},
                       const Variables& variables = environment_variable);

// "http://localhost:8080/" -> "http://localhost:8080/v1": without slashes at its end, and with the
// version unless it ends in it. Throws StartError for what is not http or https, has a user, a
// query or a fragment.
std::string api_base(std::string_view url);

}  // namespace sandbox::pandastack
