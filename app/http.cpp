#include <stdexcept>

#include "app/commands.hpp"

namespace app {

int http(const Options&) { throw std::runtime_error("not served yet"); }

}  // namespace app
