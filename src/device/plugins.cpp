// SPDX-License-Identifier: BSD-3-Clause
#include "device/plugins.h"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/log.h"
#include "base/place.h"
#include "device/foreign.h"
#include "device/plugin.h"

namespace slimpi::device {

namespace {

struct Row {
  const char* sign;  // soname of the library that the process must have loaded
  const char* part;  // file of the plugin; null: that library is itself the plugin
  bool done;         // searched, with or without success
};

Row g_rows[] = {
    {"libcuda.so.1", "slimpi-cuda.so", false},
    {"libslimpi_protected.so", nullptr, false},
};

std::atomic<bool> g_use{true};
std::atomic<unsigned long long> g_loads_seen{0};
std::mutex g_looking;

// The number of libraries that the process has ever loaded.
unsigned long long count_loads() {
  unsigned long long loads = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* result) {
        *static_cast<unsigned long long*>(result) = info->dlpi_adds;
        return 1;
      },
      &loads);
  return loads;
}

constexpr Library kLibrary = {
    [](Status status, const char* text) { return fail(status, text); },
    [](LogLevel level, const char* text) { log(level, text); },
};

void warn(const Row& row, const std::string& reason) {
  log_warn((row.part != nullptr ? row.part : row.sign) + (" is not used: " + reason));
}

// `sign` is a handle of the library that makes the plugin useful.
void load(const Row& row, void* sign) {
  void* handle = sign;
  if (row.part != nullptr) {
    const std::string file = find_plugin(row.part);
    if (file.empty()) return;
    handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* reason = dlerror();
      return warn(row, reason != nullptr ? reason : "unknown reason");
    }
  }
  auto* const function = reinterpret_cast<PluginFunction*>(dlsym(handle, kPluginSymbol));
  if (function == nullptr) return warn(row, std::string("it has no symbol ") + kPluginSymbol);
  const Device* device = function(kPluginVersion, &kLibrary);
  if (device == nullptr) return;
  if (add(*device) != Status::ok) warn(row, failure_text());
}

}  // namespace

void set_device_use(DeviceUse use) {
  g_use = use != DeviceUse::none;
}

void load_plugins() {
  if (!g_use.load(std::memory_order_relaxed)) return;
  const unsigned long long loads = count_loads();
  if (loads == g_loads_seen.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(g_looking);
  for (Row& row : g_rows) {
    if (row.done) continue;
    void* const sign = dlopen(row.sign, RTLD_LAZY | RTLD_NOLOAD);
    if (sign == nullptr) continue;
    row.done = true;
    load(row, sign);
    // The handle is kept, so the library that the plugin's row uses cannot be unloaded.
  }
  find_foreign();
  g_loads_seen.store(loads, std::memory_order_release);
}

}  // namespace slimpi::device
