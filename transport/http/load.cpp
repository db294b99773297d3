#include "transport/http/load.hpp"

namespace transport::http {

bool Load::has_room(std::size_t bytes) const {
  bool fits = requests_ == 0 || (requests_ < max_requests_ && bytes_ + bytes <= max_bytes_);
  return fits && (!within_ || within_->has_room(bytes));
}

void Load::count(int requests, std::size_t bytes) {
  requests_ += requests;
  bytes_ += requests * bytes;
  if (within_) within_->count(requests, bytes);
}

std::optional<Load::Share> Load::take(const std::shared_ptr<Load>& load, std::size_t bytes) {
  if (!load->has_room(bytes)) return std::nullopt;
  load->count(+1, bytes);
  return Share(load, bytes);
}

std::shared_ptr<Load> Loads::of(const std::string& principal) {
  std::weak_ptr<Load>& held = by_principal_[principal];
  std::shared_ptr<Load> load = held.lock();
  if (!load) {
    load = std::make_shared<Load>(requests_, bytes_, total_);
    held = load;
    std::erase_if(by_principal_, [](const auto& entry) { return entry.second.expired(); });
  }
  return load;
}

}  // namespace transport::http
