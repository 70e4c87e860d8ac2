// SPDX-License-Identifier: BSD-3-Clause
// Finds MPI's functions and data in the process. There may be several MPIs, one that the program is
// linked to and others from dlopen(), so everything that is found belongs to the one MPI that the
// program's calls are meant for.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "mpi/abi.h"

struct dl_phdr_info;  // of link.h

namespace slimpi::mpi {

// The part of a loaded library or program that contains an address.
struct Image {
  Word first = 0, end = 0;  // the addresses of the part; both 0 if no file has the address
  std::string_view name;    // of the file, without its directory; "" for the program
};

Image image_of(const void* address);

// Temporary zeroed memory from the kernel, for when the stack may be small and malloc() may have no
// memory. `text` is null if there is none.
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

  // Calls visit(path) for each library until visit() returns true.
  template <typename Visit>
  void find(const Visit& visit) const {
    for (std::size_t at = 0; at < length_; at += std::string_view(pages_.text + at).size() + 1)
      if (visit(static_cast<const char*>(pages_.text + at))) return;
  }

 private:
  static int add(dl_phdr_info* info, std::size_t, void* all);

  Pages pages_;  // the concatenated paths, each with its final zero byte
  std::size_t length_ = 0;
};

enum class Choice { none, made, unclear };  // unclear: several MPIs, the caller is linked to none

// Chooses the MPI. If the program is linked to an MPI, which then comes after slimpi in the search
// order of symbols, chooses that one. Otherwise chooses the only MPI that is loaded or, if there
// are several, that of the library that has called slimpi. Only one thread at a time may call this.
Choice choose_mpi();

// Returns the version lines of all loaded MPIs, for a message.
std::string loaded_mpis();

// Returns a symbol of the chosen MPI, or of another tool between this library and MPI, or null.
void* lookup(const char* name);

// Returns a symbol of the chosen MPI's own libraries, or null.
void* library_symbol(const char* name);

// Returns where the program sees a datum of MPI: a program that is not position independent has its
// own copy.
const void* symbol(const char* name);

// Returns the first line of MPI's version text.
std::string first_line(const char* text);

}  // namespace slimpi::mpi
