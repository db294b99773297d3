#include "sandbox/local/workspace.hpp"
#include "sandbox/tree_size.hpp"

namespace sandbox::local {

awaitable<std::uint64_t> disk_usage(boost::asio::thread_pool& pool, int directory,
                                    std::uint64_t enough) {
  auto work = [directory, enough] { return tree_size(directory, enough); };
  co_return co_await async::on_pool(pool, std::move(work));
}

}  // namespace sandbox::local
