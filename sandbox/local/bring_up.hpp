#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sandbox/image/image.hpp"
#include "sandbox/local/local_sandbox.hpp"

namespace sandbox::local {

// What every kernel of a backend is brought up with.
struct Setting {
  boost::asio::any_io_executor executor;
  boost::asio::thread_pool& pool;
  BackendOptions options;
  FreezeThread freezing = {};
  FreezeThread baking =
      {};  // of images for sessions to come: those that are there do not wait for them
  std::atomic<bool> ending = false;  // no image is to be baked any more
};

// The sandbox is there and its kernel did not answer; it was ended again. What the kernel said.
struct NotReady : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All return a sandbox whose kernel has answered. They throw StartError when there is no sandbox,
// NotReady when there is no kernel, and end what they began when they are cancelled. `package`: as
// install_kernel_package() returned it.

struct Cold {
  std::filesystem::path package;
  bool by_loader = true;  // else it cannot be frozen
  bool warm = false;      // for a template image
};
awaitable<std::unique_ptr<LocalSandbox>> start_cold(Setting& setting, SandboxSpec spec, Cold how,
                                                    Origin origin);

struct Thawing {
  std::filesystem::path package;
  Fd image, base;                                      // base: only when the image refers to one
  std::string reason;                                  // of the kernel link
  std::chrono::nanoseconds monotonic{0}, boottime{0};  // as Images
};
awaitable<std::unique_ptr<LocalSandbox>> thaw_image(Setting& setting, SandboxSpec spec, Thawing how,
                                                    Origin origin);

// The loader's own words in NotReady::what(); nullopt when it was not the loader that failed.
std::optional<std::string> loaders_words(const std::string& what);

// NotReady for the reader, with what to do about it.
std::string with_remedy(const std::string& reason, const SandboxSpec& spec);

}  // namespace sandbox::local
