#include "sandbox/pandastack/curl.hpp"

#include <dlfcn.h>

#include <string>

#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

namespace {

constexpr unsigned kOldest = 0x075500;  // 7.85.0: CURLOPT_PROTOCOLS_STR
constexpr const char* kRemedy =
    "The pandastack backend needs libcurl.so.4 of version 7.85 or later: install it "
    "(Debian: apt-get install libcurl4, Ubuntu 24.04: libcurl4t64)";

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) throw StartError(std::string(kRemedy) + ". This one has no " + name);
}

Curl load() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) throw StartError(std::string(kRemedy) + ". " + dlerror());
  decltype(&::curl_global_init) global_init;
  decltype(&::curl_version_info) version_info;
  find(library, "curl_global_init", global_init);
  find(library, "curl_version_info", version_info);
  const curl_version_info_data* version = version_info(CURLVERSION_NOW);
  if (version->version_num < kOldest)
    throw StartError(std::string(kRemedy) + ". This one is " + version->version);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) throw StartError("libcurl does not start");

  Curl out;
  find(library, "curl_easy_init", out.easy_init);
  find(library, "curl_easy_cleanup", out.easy_cleanup);
  find(library, "curl_easy_setopt", out.easy_setopt);
  find(library, "curl_easy_getinfo", out.easy_getinfo);
  find(library, "curl_easy_pause", out.easy_pause);
  find(library, "curl_easy_strerror", out.easy_strerror);
  find(library, "curl_slist_append", out.slist_append);
  find(library, "curl_slist_free_all", out.slist_free_all);
  find(library, "curl_multi_init", out.multi_init);
  find(library, "curl_multi_cleanup", out.multi_cleanup);
  find(library, "curl_multi_setopt", out.multi_setopt);
  find(library, "curl_multi_add_handle", out.multi_add_handle);
  find(library, "curl_multi_remove_handle", out.multi_remove_handle);
  find(library, "curl_multi_perform", out.multi_perform);
  find(library, "curl_multi_info_read", out.multi_info_read);
  find(library, "curl_multi_poll", out.multi_poll);
  find(library, "curl_multi_wakeup", out.multi_wakeup);
  return out;
}

}  // namespace

const Curl& curl() {
  static const Curl loaded = load();
  return loaded;
}

}  // namespace sandbox::pandastack
