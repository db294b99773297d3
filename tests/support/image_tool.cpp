// sandbox/image for tests in Python: one call a run, its result as a line of JSON.
//
//   image-tool loader PATH                  writes the loader there
//   image-tool freeze PID IMAGE [OPTION...] base=PATH end nofork busy lost limit=MS max=BYTES
//                                         copied=PATH
//   image-tool verify IMAGE                 image-tool inspect IMAGE
//   image-tool train PID IMAGE              image-tool why IMAGE DIRECTORY...
#include <sys/stat.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>

#include "sandbox/image/freezer.hpp"
#include "sandbox/image/image.hpp"

namespace {

namespace json = boost::json;
namespace image = sandbox::image;
using Words = std::vector<std::string>;

json::object write_loader(const Words& words) {
  std::ofstream(words.at(0), std::ios::binary) << image::loader_program();
  chmod(words.at(0).c_str(), 0755);
  return {};
}

image::FreezeRequest request_from(const Words& words) {
  image::FreezeRequest request;
  for (const std::string& word : words) {
    std::size_t equals = word.find('=');
    std::string name = word.substr(0, equals);
    std::string value = equals == word.npos ? "" : word.substr(equals + 1);
    if (name == "base") request.base = value;
    if (name == "end") request.keep_running = false;
    if (name == "nofork") request.by_fork = false;
    if (name == "busy") request.when_waiting = false;
    if (name == "lost") request.allow_lost = true;
    if (name == "limit") request.limit = std::chrono::milliseconds(std::stoll(value));
    if (name == "copied") request.copied = value;
    if (name == "max") request.max_bytes = std::stoull(value);
  }
  return request;
}

json::object freeze(const Words& words) {
  image::Frozen frozen = image::freeze(std::stoi(words.at(0)), words.at(1),
                                       request_from({words.begin() + 2, words.end()}));
  json::object result;
  result["bytes"] = frozen.bytes;
  result["pause_us"] = frozen.pause.count();
  result["by_fork"] = frozen.by_fork;
  result["lost"] = json::array(frozen.lost.begin(), frozen.lost.end());
  return result;
}

json::object shown(const image::ImageInfo& info) {
  json::object result;
  result["bytes"] = info.bytes;
  result["memory"] = info.memory;
  result["threads"] = info.threads;
  result["files"] = info.files.size();
  result["has_base"] = info.base.has_value();
  result["monotonic_ns"] = info.monotonic.count();
  result["lost"] = json::array(info.lost.begin(), info.lost.end());
  return result;
}

json::object why(const Words& words) {
  std::vector<std::filesystem::path> visible(words.begin() + 1, words.end());
  json::object result;
  result["reason"] = image::why_not_here(image::inspect(words.at(0)), visible).value_or("");
  return result;
}

json::object train(const Words& words) {
  image::train(std::stoi(words.at(0)), words.at(1));
  return {};
}

const std::map<std::string, std::function<json::object(const Words&)>> kCommands = {
    {"loader", write_loader},
    {"freeze", freeze},
    {"verify", [](const Words& words) { return shown(image::verify(words.at(0))); }},
    {"inspect", [](const Words& words) { return shown(image::inspect(words.at(0))); }},
    {"train", train},
    {"why", why},
};

}  // namespace

int main(int count, char** words) try {
  json::object result = kCommands.at(words[1])({words + 2, words + count});
  std::cout << json::serialize(result) << '\n';
} catch (const std::exception& error) {
  json::object result;
  result["error"] = error.what();
  std::cout << json::serialize(result) << '\n';
  return 1;
}
