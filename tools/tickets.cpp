#include "tools/tickets.hpp"

#include <algorithm>
#include <cerrno>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"
#include "tools/text.hpp"

namespace tools {

using Clock = std::chrono::steady_clock;
using Why = TicketError::Why;

namespace {

constexpr const char* kNothing = " Nothing was stored.";

TicketError closed() {
  return TicketError(Why::gone, std::string("The session of this ticket was closed meanwhile.") +
                                    kNothing + " Call upload_file again, in another session.");
}

// What kept a file from being written, or read.
TicketError explained(const sandbox::FileError& failure) {
  switch (failure.error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return TicketError(Why::no_space, failure.what());
    default:
      return TicketError(Why::conflict, failure.what());
  }
}

}  // namespace

Tickets::Tickets(Sessions& sessions, TicketLimits limits) : sessions_(sessions), limits_(limits) {}

Tickets::Slot::Slot(Tickets& tickets, const std::string& principal)
    : tickets_(tickets), principal_(principal) {
  std::size_t& count = tickets_.at_once_[principal_];
  if (count >= tickets_.limits_.at_once_per_principal)
    throw TicketError(Why::unavailable,
                      "Too many of your files are transferred at once; try again when one of them "
                      "has ended.");
  ++count;
}

Tickets::Slot::~Slot() {
  auto count = tickets_.at_once_.find(principal_);
  if (--count->second == 0) tickets_.at_once_.erase(count);
}

std::string Tickets::for_upload(const Session& session, const std::string& path) {
  Ticket ticket;
  ticket.kind = Ticket::Kind::upload;
  ticket.principal = session.record().principal;
  ticket.session = session.handle();
  ticket.path = path;
  ticket.expires = Clock::now() + limits_.upload_life;
  return issue(std::move(ticket));
}

std::string Tickets::for_download(const Session& session, const std::string& path) {
  Ticket ticket;
  ticket.kind = Ticket::Kind::download;
  ticket.principal = session.record().principal;
  ticket.session = session.handle();
  ticket.path = path;
  ticket.expires = Clock::now() + limits_.download_life;
  return issue(std::move(ticket));
}

std::string Tickets::issue(Ticket ticket) {
  make_room(ticket.principal);
  ticket.id = random_id();
  std::string url = base_url_ + ticket.id;
  auto shared = std::make_shared<Ticket>(std::move(ticket));
  by_id_[shared->id] = shared;
  by_age_.push_back(std::move(shared));
  return url;
}

// One principal cannot push out the tickets of others.
void Tickets::make_room(const std::string& principal) {
  auto own = [&](const auto& ticket) { return ticket->principal == principal; };
  auto drop = [this](auto ticket) {
    by_id_.erase((*ticket)->id);
    by_age_.erase(ticket);
  };
  auto count = static_cast<std::size_t>(std::ranges::count_if(by_age_, own));
  if (count >= limits_.kept_per_principal) drop(std::ranges::find_if(by_age_, own));
  if (by_age_.size() >= limits_.kept) drop(by_age_.begin());
}

std::shared_ptr<Tickets::Ticket> Tickets::redeem(const std::string& id, Ticket::Kind kind) const {
  auto found = by_id_.find(id);
  bool brings = kind == Ticket::Kind::upload;
  std::string again =
      brings ? " Call upload_file for a new one." : " Call download_file for a new one.";
  if (found == by_id_.end())
    throw TicketError(Why::unknown,
                      "There is no such ticket (a restart of the server ends them all)." + again);
  const auto& ticket = found->second;
  if (ticket->kind != kind)
    throw TicketError(Why::wrong_direction, ticket->kind == Ticket::Kind::upload
                                                ? "This ticket is for an upload: PUT the file."
                                                : "This ticket is for a download: GET the file.");
  if (ticket->used)
    throw TicketError(Why::gone,
                      "This ticket has been used: its file was stored. One ticket is good for one "
                      "upload." +
                          again);
  if (Clock::now() >= ticket->expires)
    throw TicketError(Why::gone, "This ticket has expired." + again);
  return ticket;
}

awaitable<std::shared_ptr<Session>> Tickets::session_of(const Ticket& ticket) {
  std::shared_ptr<Session> session;
  try {
    session = co_await sessions_.reach(ticket.principal, ticket.session);
  } catch (const mcp::ToolError& failure) {
    throw TicketError(Why::unavailable, failure.what());
  }
  if (!session) throw closed();
  session->touch();
  co_return session;
}

// ---- in

awaitable<std::unique_ptr<Tickets::Upload>> Tickets::upload(
    std::string id, std::optional<std::uint64_t> announced) {
  auto ticket = redeem(id, Ticket::Kind::upload);
  if (ticket->in_use)
    throw TicketError(Why::in_use, "Another upload on this ticket has not ended yet.");
  auto session = co_await session_of(*ticket);
  if (ticket->in_use || ticket->used)
    throw TicketError(Why::in_use, "Another upload on this ticket came first.");
  auto upload = std::make_unique<Upload>(*this, ticket, session);
  std::uint64_t workspace = session->limits().workspace;
  try {
    std::shared_ptr<sandbox::Files> files = co_await session->files();
    std::uint64_t used = co_await files->used(workspace);
    upload->room_ = workspace - std::min(used, workspace);
    if (announced) upload->must_fit(*announced);
    upload->writer_ = co_await files->create(ticket->path);
  } catch (const sandbox::FileError& failure) {
    throw explained(failure);
  }
  co_return upload;
}

Tickets::Upload::Upload(Tickets& tickets, std::shared_ptr<Ticket> ticket,
                        std::shared_ptr<Session> session)
    : tickets_(tickets),
      slot_(tickets, ticket->principal),
      ticket_(std::move(ticket)),
      session_(std::move(session)) {
  ticket_->in_use = true;
}

Tickets::Upload::~Upload() { ticket_->in_use = false; }

void Tickets::Upload::must_fit(std::uint64_t size) const {
  std::uint64_t cap = tickets_.limits_.upload_bytes;
  if (size > cap)
    throw TicketError(Why::too_large, "The file is larger than an upload may be (" +
                                          size_text(cap) + ")." + kNothing);
  if (size > room_)
    throw TicketError(Why::no_space,
                      "The file does not fit into the workspace, where " + size_text(room_) +
                          " are left." + kNothing +
                          " Delete files there and try again: the ticket is still good.");
}

void Tickets::Upload::session_must_be_open() const {
  if (tickets_.sessions_.find(ticket_->principal, ticket_->session) != session_) throw closed();
}

awaitable<void> Tickets::Upload::write(std::string_view part) {
  must_fit(written_ + part.size());
  session_must_be_open();
  try {
    co_await writer_->write(part);
  } catch (const sandbox::FileError& failure) {
    throw explained(failure);
  }
  written_ += part.size();
}

awaitable<std::string> Tickets::Upload::finish() {
  session_must_be_open();
  sandbox::FileInfo stored;
  try {
    stored = co_await writer_->finish();
  } catch (const sandbox::FileError& failure) {
    if (failure.error == ENOENT) throw closed();  // its directory was deleted this moment
    throw explained(failure);
  }
  ticket_->used = true;
  session_->touch();
  session_->file_written(stored.path);
  co_return "Uploaded " + size_text(stored.size) + " to /workspace/" + one_line(stored.path) +
      " in session " + session_->handle() + ".";
}

// ---- out

awaitable<std::unique_ptr<Tickets::Download>> Tickets::download(std::string id) {
  auto ticket = redeem(id, Ticket::Kind::download);
  auto session = co_await session_of(*ticket);
  auto download = std::make_unique<Download>(*this, ticket->principal);
  try {
    std::shared_ptr<sandbox::Files> files = co_await session->files();
    download->file_ = co_await files->open(ticket->path);
  } catch (const sandbox::FileError& failure) {
    if (failure.error == ENOENT) throw TicketError(Why::gone, failure.what());
    throw explained(failure);
  }
  co_return download;
}

}  // namespace tools
