#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "transport/http/exchange.hpp"

namespace transport::http {

// Token buckets by key (a principal, an address): each holds `burst` and refills steadily. The
// table is bounded: a full one forgets whom it has not heard of for longest.
class RateLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // `per_second` is above 0; `burst` at least 1.
  RateLimit(double per_second, double burst, std::size_t max_keys = 10'000);

  // Takes one from the key's bucket: nullopt, or how long until there is one again.
  std::optional<std::chrono::seconds> take(std::string_view key,
                                           Clock::time_point now = Clock::now());

  std::size_t size() const { return buckets_.size(); }
  std::uint64_t refused() const { return refused_; }  // so far

 private:
  struct Bucket {
    std::string key;
    double left;
    Clock::time_point filled;
  };
  Bucket& bucket(std::string_view key, Clock::time_point now);

  double per_second_;
  double burst_;
  std::size_t max_keys_;
  std::uint64_t refused_ = 0;
  std::list<Bucket> buckets_;  // the one used last comes first
  std::unordered_map<std::string_view, std::list<Bucket>::iterator>
      by_key_;  // keys are the buckets'
};

// 429 with Retry-After (RFC 9110, section 10.2.3).
Response too_many_requests(std::chrono::seconds retry_after);

// What addresses are limited by: an IPv4 address, or the /64 of an IPv6 address, which one customer
// has all of.
std::string address_key(const std::string& address);

}  // namespace transport::http
