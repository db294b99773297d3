#include "tools/session_history.hpp"

#include <spdlog/spdlog.h>

#include "sandbox/history_file.hpp"
#include "sandbox/session_store.hpp"

namespace tools {

namespace {

constexpr std::size_t kMaxCell = 4 << 20;
constexpr std::size_t kMaxFile = 16 << 20;

void write(const std::filesystem::path& file, const sandbox::Execution& execution, int number) {
  auto cell = notebook_cell(execution, number, kMaxCell);
  auto size = sandbox::append_history(file, boost::json::serialize(cell));
  if (size > kMaxFile) shorten_history(file, kMaxFile / 2);
}

}  // namespace

SessionHistory::SessionHistory(boost::asio::any_io_executor executor,
                               boost::asio::thread_pool& pool, std::filesystem::path file)
    : pool_(pool), file_(std::move(file)), turn_(executor) {}

awaitable<void> SessionHistory::add(std::shared_ptr<const sandbox::Execution> execution,
                                    int number) {
  auto work = [this, &execution, number] { write(file_, *execution, number); };
  try {
    auto turn = co_await turn_.take();
    co_await async::on_pool(pool_, work);
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("an execution is missing in its session's history: {}", failure.what());
  } catch (const boost::system::system_error&) {  // the session is being closed
  }
}

awaitable<std::string> SessionHistory::exported(ExportFormat format, std::size_t bytes) {
  auto turn = co_await turn_.take();
  auto work = [this, format, bytes] { return tools::exported(file_, format, bytes); };
  co_return co_await async::on_pool(pool_, work);
}

awaitable<std::uint64_t> SessionHistory::copy_to(std::filesystem::path file) {
  auto turn = co_await turn_.take();
  auto work = [this, &file] { return sandbox::copy_history(file_, file); };
  co_return co_await async::on_pool(pool_, work);
}

awaitable<void> SessionHistory::copy_from(std::filesystem::path file) {
  auto turn = co_await turn_.take();
  auto work = [this, &file] { sandbox::copy_history(file, file_); };
  try {
    co_await async::on_pool(pool_, work);
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("a session's history is not its snapshot's: {}", failure.what());
  }
}

}  // namespace tools
