#include "sandbox/pandastack/settings.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <fstream>
#include <map>

#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {
namespace {

namespace fs = std::filesystem;

struct Home {
  fs::path path;
  Home() {
    char name[] = "/tmp/pykeep-settings-XXXXXX";
    path = mkdtemp(name);
  }
  ~Home() { fs::remove_all(path); }

  void write(const std::string& directory, const std::string& text) {
    fs::create_directories(path / directory / "pandastack");
    std::ofstream(path / directory / "pandastack/config.json") << text;
  }
};

Settings read(std::map<std::string, std::string> variables, std::string_view base = {}) {
  auto find = [&variables](const char* name) -> std::optional<std::string> {
    auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
  return read_settings(base, find);
}

std::string refusal(std::map<std::string, std::string> variables, std::string_view base = {}) {
  try {
    read(std::move(variables), base);
  } catch (const StartError& error) {
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("the base of the API") {
  struct Row {
    const char* given;
    const char* base;  // "" = refused
    bool in_plain_text = false;
  };
  const Row rows[] = {
      {"https://api.pandastack.ai", "https://api.pandastack.ai/v1"},
      {"https://api.pandastack.ai/v1", "https://api.pandastack.ai/v1"},
      {"https://api.pandastack.ai/v1///", "https://api.pandastack.ai/v1"},
      {"https://keep.example/panda/", "https://keep.example/panda/v1"},
      {"https://keep.example/v12", "https://keep.example/v12/v1"},
      {"http://localhost:8080/", "http://localhost:8080/v1"},
      {"http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"},
      {"http://127.9.9.9", "http://127.9.9.9/v1"},
      {"http://[::1]:8080", "http://[::1]:8080/v1"},
      {"http://10.0.0.5:8080", "http://10.0.0.5:8080/v1", true},
      {"http://127.evil.example", "http://127.evil.example/v1", true},
      {"http://localhost.evil.example", "http://localhost.evil.example/v1", true},
      {"api.pandastack.ai", ""},
      {"ftp://api.pandastack.ai", ""},
      {"https://", ""},
      {"https:///v1", ""},
      {"https://me:secret@api.pandastack.ai", ""},
      {"https://api.pandastack.ai/?a=b", ""},
      {"https://api.pandastack.ai/#v1", ""},
      {"https://api.pandastack.ai/a b", ""},
      {"https://api.pandastack.ai\\@evil.example", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.given);
    if (!*row.base) {
      CHECK_THROWS_AS(api_base(row.given), StartError);
      CHECK(refusal({{"PANDASTACK_API", row.given}}).find("secret") == std::string::npos);
      continue;
    }
    CHECK(api_base(row.given) == row.base);
    Settings settings = read({{"PANDASTACK_API", row.given}, {"PANDASTACK_TOKEN", "k"}});
    CHECK(settings.base == row.base);
    CHECK(settings.in_plain_text() == row.in_plain_text);
  }
  CHECK(read({{"PANDASTACK_TOKEN", "k"}}).base == "https://api.pandastack.ai/v1");
  CHECK(read({{"PANDASTACK_API", "http://localhost:1"}}, "http://localhost:2").base ==
        "http://localhost:2/v1");
}

TEST_CASE("where the key is looked for, in which order") {
  Home home;
  struct Row {
    const char* name;
    std::map<std::string, std::string> variables;
    const char* xdg;   // the file in XDG_CONFIG_HOME; null = none
    const char* dot;   // the file in ~/.config
    const char* key;   // "" = none
    std::string from;  // the end of key_from
  };
  const std::string file = "/pandastack/config.json";
  const Row rows[] = {
      {"the variable",
       {{"PANDASTACK_API_KEY", "a"}, {"PANDASTACK_TOKEN", "b"}},
       R"({"token":"c"})",
       nullptr,
       "a",
       "PANDASTACK_API_KEY"},
      {"the old variable",
       {{"PANDASTACK_TOKEN", "b"}},
       R"({"token":"c"})",
       nullptr,
       "b",
       "PANDASTACK_TOKEN"},
      {"an empty one does not count",
       {{"PANDASTACK_API_KEY", ""}, {"PANDASTACK_TOKEN", "b"}},
       nullptr,
       nullptr,
       "b",
       "PANDASTACK_TOKEN"},
      {"the file", {}, R"({"token":"c"})", R"({"token":"d"})", "c", "xdg" + file},
      {"the other file", {}, nullptr, R"({"apiKey":"d"})", "d", ".config" + file},
      {"a file without a key", {}, R"({"org":"x"})", R"({"api_key":"d"})", "d", ".config" + file},
      {"the first that is not empty",
       {},
       R"({"token":"","apiKey":7,"api_key":"e"})",
       nullptr,
       "e",
       "xdg" + file},
      {"none", {}, nullptr, nullptr, "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    fs::remove_all(home.path / "xdg");
    fs::remove_all(home.path / ".config");
    if (row.xdg) home.write("xdg", row.xdg);
    if (row.dot) home.write(".config", row.dot);
    auto variables = row.variables;
    variables["HOME"] = home.path;
    variables["XDG_CONFIG_HOME"] = home.path / "xdg";
    variables["PANDASTACK_API"] = "http://localhost:8080";
    Settings settings = read(variables);
    CHECK(settings.key == row.key);
    CHECK(settings.key_from.ends_with(row.from));
    CHECK(settings.key_from.empty() == row.from.empty());
  }
}

TEST_CASE("settings that cannot be used say what to do") {
  Home home;
  std::map<std::string, std::string> variables = {{"HOME", home.path}};
  CHECK(refusal(variables).find("set PANDASTACK_API_KEY") != std::string::npos);

  for (const char* text : {"", "{", "[]", "null", "\"pds_secret\"", "pds_secret"}) {
    CAPTURE(text);
    home.write(".config", text);
    std::string why = refusal(variables);
    CHECK(why.find("config.json is not a JSON object") != std::string::npos);
    CHECK(why.find("pds_secret") == std::string::npos);
  }
  for (const char* key : {"pds_secret\n", "pds_secret\r\nX: y", "pds secret", "pds_s\u00e9cret"}) {
    variables["PANDASTACK_API_KEY"] = key;
    std::string why = refusal(variables);
    CHECK(why.find("PANDASTACK_API_KEY has blanks") != std::string::npos);
    CHECK(why.find("cret") == std::string::npos);
  }
}

TEST_CASE("the other variables") {
  struct Row {
    const char* given;
    int milliseconds;
  };
  for (const Row& row : {Row{"", 20'000}, Row{"5000", 5000}, Row{"0", 0}, Row{"-1", 20'000},
                         Row{"5s", 20'000}, Row{"99999999999", 20'000}}) {
    CAPTURE(row.given);
    Settings settings = read({{"PANDASTACK_TOKEN", "k"},
                              {"PANDASTACK_EXEC_READY_TIMEOUT_MS", row.given},
                              {"SSL_CERT_FILE", "/etc/ca.pem"}});
    CHECK(settings.warm_up.count() == row.milliseconds);
    CHECK(settings.ca_file == "/etc/ca.pem");
  }
}

}  // namespace sandbox::pandastack
