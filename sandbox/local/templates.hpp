#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// The Python environments of this machine that kernels can run in.
//
//   <root>/<name>          link to a virtual environment that `pykeep template build` made
//   "system"               the distribution's Python, with the packages that it has
//   a path                 a virtual environment, or an interpreter
//
// An empty name means "default" if that was built, else "system".
class Templates {
 public:
  explicit Templates(std::filesystem::path root);

  // Throws StartError that says what to do. Looks at files only: whether IPython is there shows
  // when a kernel starts.
  Template find(const std::string& name) const;
  // Those that were built, by name.
  std::vector<Template> built() const;

  const std::filesystem::path& root() const { return root_; }

 private:
  std::filesystem::path root_;
};

// The interpreter to build environments with: the one given, else /usr/bin/python3, else the first
// python3 of PATH; nullopt if there is none.
std::optional<std::filesystem::path> find_python(const std::string& given);

}  // namespace sandbox::local
