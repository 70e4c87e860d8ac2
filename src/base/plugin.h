// SPDX-License-Identifier: BSD-3-Clause
// Shared objects that are loaded on demand: slimpi's own plugins, and a user's hook. They stay
// loaded until the process ends, because their threads and exit handlers may outlive what needed
// them.
//
// slimpi's own files are found from the path of the library or program that this code was linked
// into. An installation can be moved as a whole; a build tree is used in place.
#pragma once
#include <dlfcn.h>

#include <string>

namespace slimpi {

// Full path of a plugin, such as "slimpi-hwloc.so"; "" if it does not exist.
std::string find_plugin(const std::string& name);

// Full path of libslimpi.so; "" if it does not exist.
std::string find_library();

class Plugin {
 public:
  // Whether libraries that are loaded later find its symbols.
  enum class Symbols { local, global };

  // One of slimpi's own, such as "slimpi-hwloc.so", from slimpi's library directory and nowhere
  // else.
  static Plugin own(const std::string& name, Symbols symbols = Symbols::local);
  // The shared object with this path.
  static Plugin at(const std::string& path, Symbols symbols = Symbols::local);
  // A library that the process has already loaded, by its soname.
  static Plugin present(const char* soname);
  // The program and its libraries, as far as their symbols are global.
  static Plugin program();

  bool loaded() const { return handle_ != nullptr; }
  // The path of the plugin; "" if there is no such file.
  const std::string& file() const { return file_; }
  // Why it is not loaded.
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

// The function `name` of a library that dlopen() has returned; false where it has none.
template <typename Function>
bool find_function(void* handle, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
  return function != nullptr;
}

}  // namespace slimpi
