#include <cstdio>

#include "app/commands.hpp"
#include "app/keep.hpp"
#include "tools/text.hpp"

namespace app {

namespace json = boost::json;
using sandbox::Layer;
using State = sandbox::Layer::State;

namespace {

const char* name_of(State state) {
  switch (state) {
    case State::achieved:
      return "achieved";
    case State::weaker:
      return "weaker";
    case State::absent:
      return "absent";
  }
  return "";
}

bool is_unsafe(const Layer& layer) { return layer.required && layer.state == State::absent; }

// The last layer: a kernel really comes up and computes.
async::awaitable<Layer> check_kernel(Keep& keep, const Options& options) {
  Layer layer;
  layer.name = "kernel";
  sandbox::SandboxSpec spec;
  std::string scratch = options.state_directory / "doctor-XXXXXX";
  std::error_code failed;
  std::filesystem::create_directories(options.state_directory, failed);
  if (!mkdtemp(scratch.data())) {
    layer.detail = "the state directory " + options.state_directory.string() + " cannot be written";
    layer.remedy = "make it writable for this user, or choose another place with --state-dir";
    co_return layer;
  }
  spec.name = "doctor";
  spec.workspace = scratch;
  spec.limits = options.sessions.limits;
  try {
    spec.python = keep.templates.find(options.sessions.default_python);
    auto sandbox = co_await keep.backend->start(spec);
    layer.state = State::achieved;
    layer.detail = sandbox->description() + ", template " + spec.python.name;
    co_await sandbox->close();
  } catch (const sandbox::StartError& refused) {
    layer.detail = refused.what();
    layer.remedy = "pykeep template build";
  }
  std::filesystem::remove_all(scratch, failed);
  co_return layer;
}

async::awaitable<void> examine(Keep& keep, const Options& options, std::vector<Layer>& layers) {
  layers = co_await keep.backend->check();
  bool safe = true;
  for (const Layer& layer : layers) safe = safe && !is_unsafe(layer);
  if (!safe) co_return;  // without its layers a kernel would not be started anyway
  Layer kernel = co_await check_kernel(keep, options);
  layers.push_back(std::move(kernel));
}

void print_json(const std::vector<Layer>& layers, bool safe) {
  json::array list;
  for (const Layer& layer : layers) {
    json::object entry;
    entry["name"] = layer.name;
    entry["state"] = name_of(layer.state);
    entry["required"] = layer.required;
    entry["detail"] = tools::valid_utf8(layer.detail);
    if (!layer.remedy.empty()) entry["remedy"] = tools::valid_utf8(layer.remedy);
    list.push_back(std::move(entry));
  }
  json::object report;
  report["safe"] = safe;
  report["layers"] = std::move(list);
  std::printf("%s\n", json::serialize(report).c_str());
}

void print_limits(const sandbox::Limits& limits) {
  std::printf(
      "\nLimits of a session: memory %s, processes %s, open files %s, /tmp %s,\n",
      tools::readable_size(limits.memory).c_str(), tools::with_thousands(limits.processes).c_str(),
      tools::with_thousands(limits.open_files).c_str(), tools::readable_size(limits.tmp).c_str());
  std::printf("/workspace %s, one file %s.\n", tools::readable_size(limits.workspace).c_str(),
              tools::readable_size(limits.file).c_str());
}

void print_text(const std::vector<Layer>& layers, const Options& options, bool safe) {
  for (const Layer& layer : layers) {
    std::printf("%-9s %-22s %s\n", name_of(layer.state), layer.name.c_str(),
                tools::plain_text(layer.detail).c_str());
    if (!layer.remedy.empty())
      std::printf("          to mend it: %s\n", tools::plain_text(layer.remedy).c_str());
  }
  print_limits(options.sessions.limits);
  std::printf(safe ? "\nSafe: sessions can be started.\n"
                   : "\nNot safe: no session is started until the absent layers are there.\n");
}

}  // namespace

int doctor(const Options& options) {
  std::vector<Layer> layers;
  run_to_end(options, [&](Keep& keep) { return examine(keep, options, layers); });
  bool safe = !layers.empty();
  for (const Layer& layer : layers) safe = safe && !is_unsafe(layer);
  if (options.json)
    print_json(layers, safe);
  else
    print_text(layers, options, safe);
  return safe ? 0 : 1;
}

}  // namespace app
