#include "schemas/catalogue.hpp"

#include <map>
#include <stdexcept>
#include <string>

#include "embedded/schema_documents.hpp"

namespace schemas {

namespace json = boost::json;

const json::object& document(std::string_view name) {
  static const auto documents = [] {
    std::map<std::string, json::object, std::less<>> parsed;
    for (const embedded::File& file : embedded::schema_documents()) {
      std::string key(file.name.substr(0, file.name.rfind('.')));
      parsed.emplace(key, json::parse(file.text).as_object());
    }
    return parsed;
  }();
  auto found = documents.find(name);
  if (found == documents.end()) throw std::logic_error("no schema document " + std::string(name));
  return found->second;
}

}  // namespace schemas
