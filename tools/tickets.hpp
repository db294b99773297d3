#pragma once

// Files that do not pass through the model: over HTTP a tool answers with a URL that stands for one
// transfer of one file, and the user, or an agent's shell, brings or fetches the bytes there. This
// is what such a URL means; how bytes get in and out of it is the transport's business.

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tools/sessions.hpp"

namespace tools {

// A transfer that cannot be done. The text says what happened and what to do next.
struct TicketError : std::runtime_error {
  enum class Why {
    unknown,
    wrong_direction,
    gone,       // expired, used, or its session is closed
    in_use,     // another transfer on it has not ended
    conflict,   // what is at its path in the workspace does not allow it
    too_large,  // for an upload
    no_space,
    unavailable  // the session cannot be opened now
  };
  TicketError(Why reason, const std::string& what) : std::runtime_error(what), why(reason) {}
  Why why;
};

struct TicketLimits {
  std::uint64_t upload_bytes = 256ull << 20;
  std::chrono::seconds upload_life{10 * 60};    // to begin with the transfer
  std::chrono::seconds download_life{15 * 60};  // the same, for any number of them
  std::size_t kept = 10'000;                    // remembered, so as to say what became of them
  std::size_t kept_per_principal = 500;         // the oldest go first
  std::size_t at_once_per_principal = 16;       // transfers: slow ones keep nobody else out
};

// Tickets are random_id()s. They are looked up by their hash, so that the time it takes says
// nothing of a part of one. All members belong to the loop's thread.
class Tickets {
 public:
  explicit Tickets(Sessions& sessions, TicketLimits limits = {});
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;

  // Tickets can be redeemed below this URL ("https://host/files/"). Without it (stdio) tools offer
  // none.
  void offer(std::string base_url) { base_url_ = std::move(base_url); }
  bool offered() const { return !base_url_.empty(); }
  const TicketLimits& limits() const { return limits_; }

  // The URL to PUT a file to, which will be at `path` of the session's workspace. An upload that
  // fails leaves the ticket good; one that succeeds uses it up.
  std::string for_upload(const Session& session, const std::string& path);
  // The URL to GET one from.
  std::string for_download(const Session& session, const std::string& path);

 private:
  struct Ticket {
    enum class Kind { upload, download };
    Kind kind;
    std::string id, principal, session, path;
    std::chrono::steady_clock::time_point expires;
    bool in_use = false;
    bool used = false;
  };

  // Counts as one of the transfers of its principal.
  class Slot {
   public:
    Slot(Tickets& tickets, const std::string& principal);  // throws TicketError
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot();

   private:
    Tickets& tickets_;
    std::string principal_;
  };

 public:
  // Bytes on their way in. Nothing of them is left without finish().
  class Upload {
   public:
    Upload(Tickets& tickets, std::shared_ptr<Ticket> ticket, std::shared_ptr<Session> session);
    Upload(const Upload&) = delete;
    Upload& operator=(const Upload&) = delete;
    ~Upload();
    awaitable<void> write(std::string_view part);  // throws TicketError
    awaitable<std::string> finish();               // says what was stored; throws TicketError

   private:
    friend class Tickets;
    void must_fit(std::uint64_t size) const;
    void session_must_be_open() const;

    Tickets& tickets_;
    Slot slot_;
    std::shared_ptr<Ticket> ticket_;
    std::shared_ptr<Session> session_;
    std::unique_ptr<sandbox::FileWriter> writer_;
    std::uint64_t room_ = 0;
    std::uint64_t written_ = 0;
  };

  // Bytes on their way out.
  class Download {
   public:
    Download(Tickets& tickets, const std::string& principal) : slot_(tickets, principal) {}
    sandbox::FileReader& file() const { return *file_; }

   private:
    friend class Tickets;
    Slot slot_;
    std::unique_ptr<sandbox::FileReader> file_;
  };

  // Opens what a ticket stands for. Throw TicketError. `announced` is the size, where the client
  // has said it.
  awaitable<std::unique_ptr<Upload>> upload(std::string id, std::optional<std::uint64_t> announced);
  awaitable<std::unique_ptr<Download>> download(std::string id);

 private:
  std::string issue(Ticket ticket);
  std::shared_ptr<Ticket> redeem(const std::string& id, Ticket::Kind kind) const;
  awaitable<std::shared_ptr<Session>> session_of(const Ticket& ticket);
  void make_room(const std::string& principal);

  Sessions& sessions_;
  TicketLimits limits_;
  std::string base_url_;
  std::list<std::shared_ptr<Ticket>> by_age_;
  std::unordered_map<std::string, std::shared_ptr<Ticket>> by_id_;
  std::map<std::string, std::size_t> at_once_;  // transfers under way, by principal
};

}  // namespace tools
