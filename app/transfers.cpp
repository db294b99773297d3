#include "app/transfers.hpp"

namespace app {

namespace http = transport::http;
using async::awaitable;
using tools::TicketError;

namespace {

int status_of(TicketError::Why why) {
  switch (why) {
    case TicketError::Why::unknown:
      return 404;
    case TicketError::Why::wrong_direction:
      return 405;
    case TicketError::Why::in_use:
    case TicketError::Why::conflict:
      return 409;
    case TicketError::Why::gone:
      return 410;
    case TicketError::Why::too_large:
      return 413;
    case TicketError::Why::no_space:
      return 507;
    case TicketError::Why::unavailable:
      return 503;
  }
  return 500;
}

// The result of `work`, with the tools' failures as HTTP has them.
template <class T>
awaitable<T> translated(awaitable<T> work) {
  try {
    co_return co_await std::move(work);
  } catch (const TicketError& failure) {
    throw http::TransferError(status_of(failure.why), failure.what());
  } catch (const sandbox::FileError& failure) {
    throw http::TransferError(500, failure.what());
  }
}

class Upload final : public http::Upload {
 public:
  explicit Upload(std::unique_ptr<tools::Tickets::Upload> upload) : upload_(std::move(upload)) {}
  awaitable<void> write(std::string_view part) override {
    auto writing = upload_->write(part);
    co_await translated(std::move(writing));
  }
  awaitable<std::string> finish() override {
    auto finishing = upload_->finish();
    co_return co_await translated(std::move(finishing));
  }

 private:
  std::unique_ptr<tools::Tickets::Upload> upload_;
};

class Download final : public http::Download {
 public:
  explicit Download(std::unique_ptr<tools::Tickets::Download> opened)
      : opened_(std::move(opened)) {}
  std::string name() const override {
    const std::string& path = opened_->file().info().path;
    return path.substr(path.rfind('/') + 1);
  }
  std::uint64_t size() const override { return opened_->file().info().size; }
  std::string version() const override { return opened_->file().version(); }
  awaitable<std::string> read(std::uint64_t offset, std::size_t size) override {
    auto reading = opened_->file().read(offset, size);
    co_return co_await translated(std::move(reading));
  }

 private:
  std::unique_ptr<tools::Tickets::Download> opened_;
};

}  // namespace

void Transfers::mount(http::Router& router, std::string public_url) {
  while (public_url.ends_with('/')) public_url.pop_back();
  tickets_.offer(public_url + std::string(http::kFilesPath));
  http::mount(router, *this);
}

awaitable<std::unique_ptr<http::Upload>> Transfers::upload(std::string ticket,
                                                           std::optional<std::uint64_t> size) {
  auto opening = tickets_.upload(std::move(ticket), size);
  auto upload = co_await translated(std::move(opening));
  co_return std::make_unique<Upload>(std::move(upload));
}

awaitable<std::unique_ptr<http::Download>> Transfers::download(std::string ticket) {
  auto opening = tickets_.download(std::move(ticket));
  auto opened = co_await translated(std::move(opening));
  co_return std::make_unique<Download>(std::move(opened));
}

}  // namespace app
