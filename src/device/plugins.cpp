// SPDX-License-Identifier: BSD-3-Clause
#include "device/plugins.h"

#include <link.h>

#include <atomic>
#include <mutex>
#include <string>

#include "base/plugin.h"
#include "device/foreign.h"
#include "device/plugin.h"
#include "observe/log.h"

namespace slimpi::device {

namespace {

struct Row {
  const char* soname;  // of the library that the process must have loaded
  const char* file;    // file of the plugin
  bool done;           // looked for, with or without success
  bool added;          // has a row in the device table
};

Row g_rows[] = {
    {"libcuda.so.1", "slimpi-cuda.so", false, false},
};

std::atomic<bool> g_uses_gpus{true};
std::atomic<unsigned long long> g_loads_seen{0};
std::mutex g_looking;

// Returns how many libraries the process has ever loaded.
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

bool add_device(const std::string& name, PluginFunction* function) {
  const auto warn = [&](const std::string& reason) {
    log_warn(name + " is not used: " + reason);
    return false;
  };
  if (function == nullptr) return warn(std::string("it has no symbol ") + kPluginSymbol);
  const Device* device = function(kPluginVersion, &kLibrary);
  if (device != nullptr && add(*device) != Status::ok) return warn(failure_text());
  return device != nullptr;
}

bool load(const Row& row) {
  const Plugin plugin = Plugin::own(row.file);
  if (plugin.loaded()) return add_device(row.file, plugin.function<PluginFunction>(kPluginSymbol));
  if (!plugin.file().empty()) log_warn(row.file + (" is not used: " + plugin.problem()));
  return false;
}

// Adds a device of the program's own, if the program exports the function of plugin.h.
void look_in_program() {
  static bool done = false;
  auto* const function = done ? nullptr : Plugin::program().function<PluginFunction>(kPluginSymbol);
  if (function == nullptr) return;
  done = true;
  (void)add_device("the program's own device", function);
}

}  // namespace

void never_use_gpus() {
  g_uses_gpus = false;
}

void load_plugins() {
  const unsigned long long loads = count_loads();
  if (loads == g_loads_seen.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(g_looking);
  // Plugin::present() never closes its handle of the CUDA driver, so the driver cannot be unloaded
  // while the plugin uses it.
  for (Row& row : g_rows) {
    if (row.done || !g_uses_gpus || !Plugin::present(row.soname).loaded()) continue;
    row.done = true;
    row.added = load(row);
  }
  look_in_program();
  find_foreign(g_rows[0].added);
  g_loads_seen.store(loads, std::memory_order_release);
}

}  // namespace slimpi::device
