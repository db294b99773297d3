#pragma once

#include <string>
#include <string_view>

namespace tools {

// What faulthandler wrote when a kernel crashed, without what only its maker wants to see: frames
// of the kernel and of IPython, the list of loaded extension modules, where packages lie on this
// machine. Text before it, and text without it, stays as it is.
std::string shorten_fatal_error(std::string_view text);

}  // namespace tools
