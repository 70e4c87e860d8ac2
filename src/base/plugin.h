// SPDX-License-Identifier: BSD-3-Clause
// Shared objects that are loaded on demand: slimpi's own plugins, and a user's hook. They stay
// loaded until the process ends, because their threads and exit handlers may outlive the code that
// loaded them.
//
// slimpi finds its own files relative to the library or program that this code was linked into, so
// an installation can be moved as a whole, and a build tree can be used in place.
#pragma once
#include <dlfcn.h>

#include <string>

namespace slimpi {

// Returns the full path of a plugin, such as "slimpi-hwloc.so", or "" if there is none.
std::string find_plugin(const std::string& name);

// Returns the full path of libslimpi.so, or "" if there is none.
std::string find_library();

class Plugin {
 public:
  // Whether libraries that are loaded later can use the plugin's symbols (global) or not (local).
  enum class Symbols { local, global };

  // Loads a plugin of slimpi's own, such as "slimpi-hwloc.so", from slimpi's library directory
  // only.
  static Plugin own(const std::string& name, Symbols symbols = Symbols::local);
  // Loads the shared object at this path.
  static Plugin at(const std::string& path, Symbols symbols = Symbols::local);
  // Opens a library by its soname if the process has already loaded it.
  static Plugin present(const char* soname);
  // Opens the program and its libraries, to find symbols that they export globally.
  static Plugin program();

  bool loaded() const { return handle_ != nullptr; }
  // Returns the path, or the soname passed to present(). Returns "" for program(), and if own()
  // found no file.
  const std::string& file() const { return file_; }
  // Returns why own() or at() failed to load the plugin.
  const std::string& problem() const { return problem_; }

  void* symbol(const char* name) const;
  template <typename Function>
  Function* function(const char* name) const {
    return reinterpret_cast<Function*>(symbol(name));
  }

 private:
  void* handle_ = nullptr;
  std::string file_, problem_;
};

// Looks up `name` in a library that dlopen() has returned, and stores it in `function`. Returns
// false, with `function` null, if the library does not have it.
template <typename Function>
bool find_function(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace slimpi
