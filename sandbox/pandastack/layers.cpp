#include "sandbox/pandastack/layers.hpp"

namespace sandbox::pandastack {

Capabilities capabilities(bool is_repl) {
  Capabilities can;
  if (!is_repl) can.snapshot = Capabilities::Snapshot::exact;
  can.outlives_server = !is_repl;
  can.files_in_sandbox = true;
  can.session_note =
      "It runs in a microVM at PandaStack, where it always has internet access, and the memory and "
      "disk that its template has.";
  if (is_repl)
    can.session_note +=
        " It has PandaStack's own kernel: output comes when a cell has ended, a cell cannot be "
        "interrupted without the loss of its variables, input() and child processes that print do "
        "not work, and variables are not kept by snapshots or the server's end.";
  can.snapshot_note =
      "It is kept at PandaStack, which may delete it 7 days after its session has ended.";
  return can;
}

namespace {

Layer layer(std::string name, Layer::State state, std::string detail) {
  Layer made;
  made.name = std::move(name);
  made.state = state;
  made.detail = std::move(detail);
  return made;
}

}  // namespace

awaitable<std::vector<Layer>> check_layers(House& house) {
  std::vector<Layer> layers;
  Layer reached = layer("PandaStack API", Layer::State::absent, "");
  Layer key = layer("key", Layer::State::absent, "");
  bool was_reached = false;
  try {
    auto client = co_await house.connect();
    const Settings& settings = client->settings();
    reached.detail = settings.base;
    key.detail = settings.key_from.empty() ? "none" : "from " + settings.key_from;
    Identity identity = co_await client->me();
    was_reached = true;
    reached.state = key.state = Layer::State::achieved;
    if (!identity.user.empty()) key.detail += ", of " + identity.user;
  } catch (const Error& failure) {
    was_reached = failure.status != 0;
    (was_reached ? key : reached).detail += ": " + readable(failure);
  } catch (const StartError& failure) {
    reached.detail = failure.what();
  }
  if (was_reached) reached.state = Layer::State::achieved;
  if (!was_reached) reached.remedy = "set PANDASTACK_API to where the API is, and let us reach it";
  bool is_good = key.state == Layer::State::achieved;
  if (!is_good) key.remedy = "set PANDASTACK_API_KEY to a valid key";
  layers.push_back(std::move(reached));
  layers.push_back(std::move(key));
  layers.push_back(layer("isolation", Layer::State::achieved,
                         "a microVM (Firecracker) for each session, run by PandaStack"));
  Layer network = layer("network", Layer::State::weaker,
                        "sandboxes reach the internet; PandaStack has no policy for one sandbox");
  network.required = false;
  layers.push_back(std::move(network));
  co_return layers;
}

}  // namespace sandbox::pandastack
