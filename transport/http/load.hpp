#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace transport::http {

// How many requests, and bytes of them, are in hand within a bound; and within the bounds that
// enclose it: a session's load is part of its principal's, which is part of the whole.
class Load {
 public:
  Load(std::size_t requests, std::size_t bytes, std::shared_ptr<Load> within = nullptr)
      : max_requests_(requests), max_bytes_(bytes), within_(std::move(within)) {}

  // One request's part of it, given back when this goes away. It keeps the loads alive.
  class Share {
   public:
    Share(std::shared_ptr<Load> load, std::size_t bytes) : load_(std::move(load)), bytes_(bytes) {}
    Share(Share&& other) noexcept
        : load_(std::exchange(other.load_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(load_, other.load_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (load_) load_->count(-1, bytes_);
    }

   private:
    std::shared_ptr<Load> load_;
    std::size_t bytes_;
  };

  // Nullopt, and nothing taken, where it would be too much. A single request always fits.
  static std::optional<Share> take(const std::shared_ptr<Load>& load, std::size_t bytes);

  std::size_t requests() const { return requests_; }
  std::size_t bytes() const { return bytes_; }

 private:
  bool has_room(std::size_t bytes) const;
  void count(int requests, std::size_t bytes);

  std::size_t max_requests_;
  std::size_t max_bytes_;
  std::shared_ptr<Load> within_;
  std::size_t requests_ = 0;
  std::size_t bytes_ = 0;
};

// The loads of the principals. One is there as long as somebody holds it.
class Loads {
 public:
  Loads(std::shared_ptr<Load> total, std::size_t requests, std::size_t bytes)
      : total_(std::move(total)), requests_(requests), bytes_(bytes) {}

  std::shared_ptr<Load> of(const std::string& principal);

 private:
  std::shared_ptr<Load> total_;
  std::size_t requests_;
  std::size_t bytes_;
  std::map<std::string, std::weak_ptr<Load>> by_principal_;
};

}  // namespace transport::http
