#pragma once

#include "app/options.hpp"

namespace app {

// One function a command, each in the file of its name. They return the program's exit code.
int stdio(const Options& options);
int http(const Options& options);
int run(const Options& options);
int doctor(const Options& options);
int template_build(const Options& options);
int template_list(const Options& options);
int client_config(const Options& options);
int snapshots_list(const Options& options);  // these six: snapshots.cpp
int snapshots_show(const Options& options);
int snapshots_delete(const Options& options);
int sessions_list(const Options& options);
int sessions_close(const Options& options);
int sessions_export(const Options& options);

}  // namespace app
