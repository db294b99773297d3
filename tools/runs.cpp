#include "tools/runs.hpp"

namespace tools {

namespace {

constexpr std::size_t kMaxWaitingBytes = 64 << 20;  // of their code and stdin
constexpr std::size_t kMaxRuns = 200;
constexpr std::size_t kMaxBytes = 32 << 20;

}  // namespace

void Run::measure() {
  bytes = execution->code.size();
  if (execution->stdin_text) bytes += execution->stdin_text->size();
  for (const auto& output : execution->outputs) bytes += sandbox::held_bytes(output);
  for (const auto& output : execution->background) bytes += sandbox::held_bytes(output);
}

bool Runs::has_room(std::size_t bytes) const {
  for (const auto& run : runs_)
    if (!run->execution->finished()) bytes += run->bytes;
  return bytes <= kMaxWaitingBytes;
}

void Runs::add(std::shared_ptr<Run> run) {
  runs_.push_back(std::move(run));
  forget_old();
}

std::shared_ptr<Run> Runs::find(const std::string& execution_id) const {
  for (const auto& run : runs_)
    if (run->execution->id == execution_id) return run;
  return nullptr;
}

std::shared_ptr<Run> Runs::find(int number) const {
  for (auto run = runs_.rbegin(); run != runs_.rend(); ++run)
    if ((*run)->execution->number == number) return *run;
  return nullptr;
}

void Runs::stop(Execution::Stop how) {
  for (const auto& run : runs_) run->execution->request_stop(how);
}

void Runs::forget_old() {
  std::size_t bytes = 0;
  for (const auto& run : runs_) bytes += run->bytes;
  while (runs_.size() > kMaxRuns || bytes > kMaxBytes) {
    if (runs_.size() == 1 || !runs_.front()->execution->finished()) return;
    bytes -= runs_.front()->bytes;
    runs_.pop_front();
  }
}

}  // namespace tools
