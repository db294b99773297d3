#include "transport/http/rate_limit.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cmath>

namespace transport::http {

RateLimit::RateLimit(double per_second, double burst, std::size_t max_keys)
    : per_second_(per_second), burst_(burst), max_keys_(max_keys) {}

std::optional<std::chrono::seconds> RateLimit::take(std::string_view key, Clock::time_point now) {
  Bucket& mine = bucket(key, now);
  std::chrono::duration<double> passed = now - mine.filled;
  mine.left = std::min(burst_, mine.left + std::max(0.0, passed.count()) * per_second_);
  mine.filled = now;
  if (mine.left >= 1) {
    mine.left -= 1;
    return std::nullopt;
  }
  ++refused_;
  return std::chrono::seconds(static_cast<std::int64_t>(std::ceil((1 - mine.left) / per_second_)));
}

RateLimit::Bucket& RateLimit::bucket(std::string_view key, Clock::time_point now) {
  if (auto known = by_key_.find(key); known != by_key_.end()) {
    buckets_.splice(buckets_.begin(), buckets_, known->second);
    return buckets_.front();
  }
  if (buckets_.size() >= max_keys_) {
    by_key_.erase(buckets_.back().key);
    buckets_.pop_back();
  }
  buckets_.push_front({std::string(key), burst_, now});
  by_key_.emplace(buckets_.front().key, buckets_.begin());
  return buckets_.front();
}

Response too_many_requests(std::chrono::seconds retry_after) {
  std::string seconds = std::to_string(retry_after.count());
  Response response = plain(429, "Too many requests; try again in " + seconds + " s.");
  response.headers.emplace_back("Retry-After", seconds);
  return response;
}

std::string address_key(const std::string& address) {
  boost::system::error_code malformed;
  auto parsed = boost::asio::ip::make_address(address, malformed);
  if (malformed || !parsed.is_v6()) return address;
  if (parsed.to_v6().is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, parsed.to_v6()).to_string();
  auto bytes = parsed.to_v6().to_bytes();
  return std::string(bytes.begin(), bytes.begin() + 8);
}

}  // namespace transport::http
