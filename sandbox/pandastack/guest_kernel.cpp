#include "sandbox/pandastack/guest_kernel.hpp"

#include "sandbox/pandastack/persist.hpp"

namespace sandbox::pandastack {

using namespace std::chrono_literals;

namespace {

constexpr auto kStateLimit = 10s;
constexpr auto kLook = 200ms;       // at a kernel that is to come to rest, or to its end
constexpr int kInterrupts = 10;     // looks, between interrupts
constexpr int kFirstInterrupt = 2;  // a kernel that is taken over has to introduce itself
constexpr int kKillChildren = 20;
constexpr int kGiveUp = 60;

awaitable<void> wake_up(Guest& guest, std::chrono::seconds ttl) {
  co_await guest.client().wake(guest.vm().id);
  co_await guest.client().set_lifecycle(guest.vm().id, ttl.count());
}

awaitable<std::string> signal_once(Guest& guest, std::string what) {
  auto answer = co_await guest.ask("POST", "/signal?what=" + what, "", kStateLimit);
  co_return co_await read_all(*answer, 4096);
}

awaitable<void> signal(Guest& guest, std::string what) {
  std::function<awaitable<std::string>()> send = [&] { return signal_once(guest, what); };
  co_await persist(send);
}

}  // namespace

awaitable<bool> bring_up(Guest& guest, std::chrono::seconds ttl) {
  std::function<awaitable<std::optional<SandboxInfo>>()> look = [&] { return guest.look(); };
  std::function<awaitable<void>()> wake = [&] { return wake_up(guest, ttl); };
  auto info = co_await persist(look);
  if (!info) co_return false;
  if (info->status == "hibernated") co_await persist(wake);
  if (info->status == "paused") co_await guest.client().resume(guest.vm().id);
  co_return true;
}

awaitable<RelayState> fresh_kernel(Guest& guest) {
  RelayState state = co_await guest.start();
  for (int look = 0; state.sent != 0 && look < kGiveUp; ++look) {
    if (look % kInterrupts == 0) co_await signal(guest, "kill");
    co_await async::sleep_for(kLook);
    state = co_await guest.start();
  }
  if (state.sent == 0) co_return state;
  throw Error(Failure::malformed, Outcome::unknown, "the old kernel does not end");
}

awaitable<std::optional<RelayState>> kernel_at_rest(Guest& guest) {
  std::optional<RelayState> state;
  bool answers = false;
  try {
    state = co_await ask_state(guest, kStateLimit);
    answers = true;
  } catch (const Error&) {
  } catch (const Refusal&) {
  }
  if (!answers) state = co_await guest.start();
  for (int look = 0; look < kGiveUp; ++look) {
    if (state->ended || state->sent == 0) co_return std::nullopt;
    if (state->sent && state->connected && !state->busy) co_return state;
    if (look % kInterrupts == kFirstInterrupt) co_await signal(guest, "interrupt");
    if (look == kKillChildren) co_await signal(guest, "kill_children");
    co_await async::sleep_for(kLook);
    std::function<awaitable<RelayState>()> ask = [&] { return ask_state(guest, kStateLimit); };
    state = co_await persist(ask);
  }
  co_await signal(guest, "kill");
  co_return std::nullopt;
}

}  // namespace sandbox::pandastack
