#include "mcp/questions.hpp"

#include <algorithm>

#include "mcp/random_id.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

std::size_t size_of(const Question& question) {
  std::size_t bytes = json::serialize(question.params).size() + question.state.size();
  for (const auto& [name, request] : question.requests)
    bytes += name.size() + json::serialize(request.params).size();
  return bytes;
}

}  // namespace

std::string Questions::open(Question question, Clock::time_point now) {
  expire(now);
  std::size_t bytes = size_of(question);
  while (!open_.empty() && (open_.size() >= kMaxOpen || bytes_ + bytes > kMaxBytes)) erase_oldest();
  std::string token = random_id();
  Entry& entry = open_[token];
  entry.question = std::move(question);
  entry.asked = now;
  entry.bytes = bytes;
  bytes_ += bytes;
  return token;
}

const Question* Questions::find(const std::string& token, const std::string& principal,
                                const std::string& method, const json::object& params,
                                Clock::time_point now) {
  expire(now);
  auto found = open_.find(token);
  if (found == open_.end()) return nullptr;
  const Question& question = found->second.question;
  bool same =
      question.principal == principal && question.method == method && question.params == params;
  return same ? &question : nullptr;
}

Question Questions::take(const std::string& token) {
  auto found = open_.find(token);
  Question question = std::move(found->second.question);
  erase(found);
  return question;
}

void Questions::expire(Clock::time_point now) {
  for (auto next = open_.begin(); next != open_.end();) {
    auto entry = next++;
    if (now - entry->second.asked >= kLifetime) erase(entry);
  }
}

void Questions::erase(std::map<std::string, Entry>::iterator entry) {
  bytes_ -= entry->second.bytes;
  open_.erase(entry);
}

void Questions::erase_oldest() {
  auto older = [](const auto& a, const auto& b) { return a.second.asked < b.second.asked; };
  erase(std::min_element(open_.begin(), open_.end(), older));
}

}  // namespace mcp
