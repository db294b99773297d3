#pragma once

#include "sandbox/image/metadata.hpp"
#include "sandbox/image/tracee.hpp"

namespace sandbox::image {

// Everything about the process and its threads but memory and descriptors, into the metadata.
// Throws FreezeError for a state that a thaw could not bring back.
void capture_threads(Tracee& tracee, Metadata& metadata);

// The live and unreaped children of the process, and what else lives in its sandbox, for the
// reader: "12 (sleep)". None of it is part of an image.
std::vector<std::string> others_in_sandbox(const Tracee& tracee);

}  // namespace sandbox::image
