#include <chrono>
#include <cstdio>

#include "app/commands.hpp"
#include "app/keep.hpp"
#include "sandbox/local/image_probe.hpp"
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

std::string milliseconds(std::chrono::steady_clock::duration time) {
  return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count()) +
         " ms";
}

// Sessions work without any of these, only slower and not beyond the server's end.
Layer optional_layer(std::string name) {
  Layer layer;
  layer.name = std::move(name);
  layer.state = State::weaker;
  layer.required = false;
  return layer;
}

// Freezes the kernel and thaws it beside itself.
async::awaitable<Layer> check_images(Keep& keep, sandbox::Sandbox& sandbox,
                                     sandbox::SandboxSpec spec, std::filesystem::path scratch) {
  Layer layer = optional_layer("images");
  auto image = scratch / "image";
  spec.workspace = scratch / "twin";
  std::filesystem::create_directory(spec.workspace);
  try {
    auto frozen = co_await sandbox.freeze(image, sandbox::FreezeOptions());
    auto began = std::chrono::steady_clock::now();
    auto twin = co_await keep.backend.thaw(image, spec, sandbox::Thaw::fork);
    auto took = std::chrono::steady_clock::now() - began;
    layer.state = State::achieved;
    layer.detail = "frozen in " + milliseconds(frozen.pause) + ", " +
                   tools::size_text(frozen.bytes) + "; thawed in " + milliseconds(took);
    co_await twin->close();
  } catch (const std::runtime_error& refused) {
    layer.detail = refused.what();
    layer.remedy = sandbox::local::image_remedy("/proc/sys");
  }
  co_return layer;
}

Layer template_image(const sandbox::Sandbox& sandbox) {
  Layer layer = optional_layer("template image");
  bool thawed = sandbox.how_started() == sandbox::Start::template_image;
  layer.state = thawed ? State::achieved : State::weaker;
  layer.detail =
      thawed ? "sessions start from it" : "sessions start cold: " + sandbox.cold_because();
  if (!thawed)
    layer.remedy = "it is made after the first session's start, or by `pykeep template build`";
  return layer;
}

// What models take for granted. Missing, each use of it costs them a round.
async::awaitable<Layer> check_packages(sandbox::Sandbox& sandbox, std::chrono::milliseconds limit) {
  constexpr const char* kMissing =
      "import importlib.util as u\n"
      "raise LookupError(', '.join(n for n in ('numpy', 'pandas', 'matplotlib') if not "
      "u.find_spec(n)))";
  Layer layer = optional_layer("packages");
  auto executor = co_await boost::asio::this_coro::executor;
  sandbox::Execution execution(executor, "doctor", kMissing);
  execution.timeout = limit;
  co_await sandbox.run(execution);
  const sandbox::PythonError* said = nullptr;
  if (!execution.outputs.empty())
    said = std::get_if<sandbox::PythonError>(&execution.outputs.back().what);
  bool known = said && said->name == "LookupError";
  if (known && said->value.empty()) {
    layer.state = State::achieved;
    layer.detail = "numpy, pandas, matplotlib";
    co_return layer;
  }
  layer.detail = known ? "not there: " + said->value : "cannot be told: " + execution.cause;
  layer.remedy = "pykeep template build";
  co_return layer;
}

// The last layers: a kernel really comes up and computes, and can be frozen.
async::awaitable<std::vector<Layer>> check_kernel(Keep& keep, const Options& options) {
  std::vector<Layer> layers(1);
  Layer& layer = layers.front();
  std::vector<Layer> further;
  layer.name = "kernel";
  bool elsewhere = keep.backend.capabilities().files_in_sandbox;
  sandbox::SandboxSpec spec;
  std::string scratch = options.state_directory / "doctor-XXXXXX";
  std::error_code failed;
  std::filesystem::create_directories(options.state_directory, failed);
  if (!mkdtemp(scratch.data())) {
    layer.detail = "the state directory " + options.state_directory.string() + " cannot be written";
    layer.remedy = "make it writable for this user, or choose another place with --state-dir";
    co_return layers;
  }
  spec.name = "doctor";
  spec.workspace = std::filesystem::path(scratch) / "workspace";
  std::filesystem::create_directory(spec.workspace);
  spec.limits = options.sessions.limits;
  try {
    spec.python = keep.backing.find_python(keep.sessions.policy().default_python);
    auto sandbox = co_await keep.backend.start(spec);
    layer.state = State::achieved;
    layer.detail = sandbox->description() + ", template " + spec.python.name;
    if (!elsewhere) {
      Layer packages = co_await check_packages(*sandbox, options.start_limit);
      further.push_back(std::move(packages));
    }
    // Elsewhere they cost money and stay for days; what is true of them is known.
    if (!options.no_images && !elsewhere) {
      further.push_back(template_image(*sandbox));
      Layer images = co_await check_images(keep, *sandbox, spec, scratch);
      further.push_back(std::move(images));
      further.push_back(sandbox::local::huge_pages("/sys/kernel/mm/transparent_hugepage/enabled"));
    }
    co_await sandbox->close();
  } catch (const sandbox::StartError& refused) {
    layer.detail = refused.what();
    if (!elsewhere) layer.remedy = "pykeep template build";
  }
  std::filesystem::remove_all(scratch, failed);
  layers.insert(layers.end(), further.begin(), further.end());
  co_return layers;
}

async::awaitable<void> examine(Keep& keep, const Options& options, std::vector<Layer>& layers) {
  layers = co_await keep.backend.check();
  bool safe = true;
  for (const Layer& layer : layers) safe = safe && !is_unsafe(layer);
  if (!safe) co_return;  // without its layers a kernel would not be started anyway
  auto of_kernel = co_await check_kernel(keep, options);
  layers.insert(layers.end(), of_kernel.begin(), of_kernel.end());
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
      tools::size_text(limits.memory).c_str(), tools::with_thousands(limits.processes).c_str(),
      tools::with_thousands(limits.open_files).c_str(), tools::size_text(limits.tmp).c_str());
  std::printf("/workspace %s, one file %s.\n", tools::size_text(limits.workspace).c_str(),
              tools::size_text(limits.file).c_str());
}

void print_text(const std::vector<Layer>& layers, const Options& options, bool safe) {
  for (const Layer& layer : layers) {
    std::printf("%-9s %-22s %s\n", name_of(layer.state), layer.name.c_str(),
                tools::plain_text(layer.detail).c_str());
    if (!layer.remedy.empty())
      std::printf("          to mend it: %s\n", tools::plain_text(layer.remedy).c_str());
  }
  if (options.backend == "local") print_limits(options.sessions.limits);
  std::printf(safe ? "\nSafe: sessions can be started.\n"
                   : "\nNot safe: no session is started until the absent layers are there.\n");
}

}  // namespace

int doctor(const Options& options) {
  std::vector<Layer> layers;
  make_state_directory(options);
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
