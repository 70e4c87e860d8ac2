// SPDX-License-Identifier: BSD-3-Clause
// Where MPI's names are. A process may have several MPIs: one that it is linked to, and others by
// dlopen. What is found is of one of them, the one that the program's calls are for.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "mpi/abi.h"

struct dl_phdr_info;  // of link.h

namespace slimpi::mpi {

// Where an address lies: the part of a loaded library or program that holds it.
struct Image {
  Word first = 0, end = 0;  // of the part, such as its data; both 0 outside of all files
  std::string_view name;    // of the file, without its directory; "" for the program
};

Image image_of(const void* address);

// Zeros for a while, neither on the stack nor from malloc, which may both be short. Null without
// memory.
struct Pages {
  static constexpr std::size_t kBytes = 1 << 14;
  Pages();
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* const text;
};

// The loaded libraries whose file name begins with libmpi.
class LoadedMpis {
 public:
  LoadedMpis();

  // Calls visit(path) for each until one returns true.
  template <typename Visit>
  void find(const Visit& visit) const {
    for (std::size_t at = 0; at < length_; at += std::string_view(pages_.text + at).size() + 1)
      if (visit(static_cast<const char*>(pages_.text + at))) return;
  }

 private:
  static int add(dl_phdr_info* info, std::size_t, void* all);

  Pages pages_;  // the paths one after the other, each with its final zero byte
  std::size_t length_ = 0;
};

enum class Choice { none, made, unclear };

// Chooses the MPI: that of the symbols after this library, which the program is linked to; else the
// only one that is loaded; else that of the library which has called slimpi. Not for two threads at
// once.
Choice choose_mpi();

// The version lines of all loaded MPIs, for a message.
std::string loaded_mpis();

// In the chosen MPI, or what another tool after this library puts in front of it. Null: nowhere.
void* lookup(const char* name);

// In the chosen MPI's own libraries.
void* library_symbol(const char* name);

// A datum of MPI's where the program sees it: a program that is not position independent has a copy
// of its own.
const void* symbol(const char* name);

// The first line of MPI's version text.
std::string first_line(const char* text);

}  // namespace slimpi::mpi
