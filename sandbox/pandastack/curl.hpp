#pragma once

// libcurl, found when it is first needed and not when the program starts: whoever runs sandboxes on
// this machine needs no libcurl on it, and Debian's static one wants libraries that have none. Its
// C interface has been the same since 2006 (SONAME 4).

#define CURL_DISABLE_TYPECHECK  // its macros would name the functions themselves
#include <curl/curl.h>

namespace sandbox::pandastack {

struct Curl {
  decltype(&::curl_easy_init) easy_init;
  decltype(&::curl_easy_cleanup) easy_cleanup;
  decltype(&::curl_easy_setopt) easy_setopt;
  decltype(&::curl_easy_getinfo) easy_getinfo;
  decltype(&::curl_easy_pause) easy_pause;
  decltype(&::curl_easy_strerror) easy_strerror;
  decltype(&::curl_slist_append) slist_append;
  decltype(&::curl_slist_free_all) slist_free_all;
  decltype(&::curl_multi_init) multi_init;
  decltype(&::curl_multi_cleanup) multi_cleanup;
  decltype(&::curl_multi_setopt) multi_setopt;
  decltype(&::curl_multi_add_handle) multi_add_handle;
  decltype(&::curl_multi_remove_handle) multi_remove_handle;
  decltype(&::curl_multi_perform) multi_perform;
  decltype(&::curl_multi_info_read) multi_info_read;
  decltype(&::curl_multi_poll) multi_poll;
  decltype(&::curl_multi_wakeup) multi_wakeup;
};

// Throws StartError, with the package to install. Stays loaded.
const Curl& curl();

}  // namespace sandbox::pandastack
