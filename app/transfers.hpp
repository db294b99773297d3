#pragma once

#include "tools/tickets.hpp"
#include "transport/http/transfers.hpp"

namespace app {

// What the tools' tickets stand for, as the HTTP transport serves it.
class Transfers final : public transport::http::Transfers {
 public:
  // The tickets outlive it.
  explicit Transfers(tools::Tickets& tickets) : tickets_(tickets) {}

  // Serves them on the router; from now on tools offer them, below the server's public URL
  // ("https://host", with or without a path and a slash at its end). Outlives the router.
  void mount(transport::http::Router& router, std::string public_url);

  async::awaitable<std::unique_ptr<transport::http::Upload>> upload(
      std::string ticket, std::optional<std::uint64_t> size) override;
  async::awaitable<std::unique_ptr<transport::http::Download>> download(
      std::string ticket) override;

 private:
  tools::Tickets& tickets_;
};

}  // namespace app
