#pragma once

#include <string>
#include <vector>

#include "sandbox/image/mappings.hpp"
#include "sandbox/image/tracee.hpp"
#include "sandbox/image/writer.hpp"

namespace sandbox::image {

// The open descriptors of the stopped process into the metadata, what is unread in its pipes and
// sockets and what has no name (or a temporary one) into the image. Nothing is consumed: the
// process finds everything as it was. What cannot be carried is described in `lost`: its number
// stays taken after a thaw, and is good for nothing.
void capture_descriptors(const Tracee& tracee, const InnerRoot& root, Metadata& metadata,
                         Writer& writer, std::vector<std::string>& lost);

}  // namespace sandbox::image
