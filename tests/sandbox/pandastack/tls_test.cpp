#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>

#include "sandbox/pandastack/http.hpp"
#include "tests/sandbox/pandastack/scripted_server.hpp"

namespace sandbox::pandastack {
namespace {

namespace fs = std::filesystem;

// `openssl s_server` with a certificate of its own making for one name.
class TlsServer {
 public:
  explicit TlsServer(const std::string& name) {
    char place[] = "/tmp/pykeep-tls-XXXXXX";
    directory_ = mkdtemp(place);
    std::string make =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2"
        " -subj /CN=test -addext 'subjectAltName=" +
        name + "' -keyout " + file("key") + " -out " + certificate() + " 2>/dev/null";
    if (std::system(make.c_str()) != 0) throw std::runtime_error("no openssl");
    start();
  }
  ~TlsServer() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    fs::remove_all(directory_);
  }

  std::string url() const { return "https://127.0.0.1:" + port_ + "/"; }
  std::string certificate() const { return file("certificate"); }

 private:
  std::string file(const char* name) const { return directory_ / name; }
  void start() {
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::string key = file("key"), own = certificate();
    child_ = fork();
    if (child_ == 0) {
      dup2(out[1], 1);
      dup2(open("/dev/null", O_WRONLY), 2);
      execlp("openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-www", "-key",
             key.c_str(), "-cert", own.c_str(), nullptr);
      _exit(127);
    }
    close(out[1]);
    std::string said;  // "ACCEPT 127.0.0.1:43211"
    for (char c; said.find('\n', said.find("ACCEPT")) == said.npos && read(out[0], &c, 1) == 1;)
      said += c;
    close(out[0]);
    std::size_t line = said.find("ACCEPT"), colon = said.find(':', line);
    if (colon == said.npos) throw std::runtime_error("no openssl s_server: " + said);
    port_ = said.substr(colon + 1, said.find('\n', line) - colon - 1);
  }

  fs::path directory_;
  pid_t child_ = 0;
  std::string port_;
};

std::optional<Error> failure_of(const TlsServer& server, HttpOptions options, int& status) {
  Loop loop;
  Http http(loop.io.get_executor(), std::move(options));
  Request request;
  request.url = server.url();
  request.headers = {{"Authorization", "Bearer secret"}};
  request.limit = std::chrono::seconds(5);
  try {
    Response response = loop.run(http.send(std::move(request)));
    status = response.status;
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("a certificate is verified before anything is sent") {
  struct Row {
    const char* name;
    const char* subject;
    bool trusted;
    bool good;
  };
  const Row rows[] = {
      {"self-signed", "IP:127.0.0.1", false, false},
      {"of an authority that the operator trusts", "IP:127.0.0.1", true, true},
      {"of another host", "DNS:api.pandastack.ai", true, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    TlsServer server(row.subject);
    HttpOptions options;
    if (row.trusted) options.ca_file = server.certificate();
    int status = 0;
    auto error = failure_of(server, options, status);
    CHECK(error.has_value() == !row.good);
    if (error) {
      CAPTURE(error->what());
      CHECK(error->failure == Failure::no_connection);
      CHECK(error->outcome == Outcome::refused);
    } else {
      CHECK(status == 200);
    }
  }
}

}  // namespace sandbox::pandastack
