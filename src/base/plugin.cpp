// SPDX-License-Identifier: BSD-3-Clause
#include "base/plugin.h"

#include "base/install_path.h"

namespace slimpi {

Plugin Plugin::own(const std::string& name, Symbols symbols) {
  const std::string file = find_plugin(name);
  if (!file.empty()) return at(file, symbols);
  Plugin plugin;
  plugin.problem_ = name + " is not installed";
  return plugin;
}

Plugin Plugin::at(const std::string& path, Symbols symbols) {
  Plugin plugin;
  plugin.file_ = path;
  plugin.handle_ =
      dlopen(path.c_str(), RTLD_NOW | (symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL));
  if (plugin.handle_ == nullptr) {
    const char* const reason = dlerror();
    plugin.problem_ = reason != nullptr ? reason : "unknown error";
  }
  return plugin;
}

Plugin Plugin::present(const char* soname) {
  Plugin plugin;
  plugin.file_ = soname;
  plugin.handle_ = dlopen(soname, RTLD_LAZY | RTLD_NOLOAD);
  return plugin;
}

Plugin Plugin::program() {
  Plugin plugin;
  plugin.handle_ = dlopen(nullptr, RTLD_LAZY);
  return plugin;
}

void* Plugin::symbol(const char* name) const {
  return dlsym(handle_, name);
}

}  // namespace slimpi
