// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/search.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unwind.h>

#include <atomic>
#include <cstring>

namespace slimpi::mpi {

namespace {

// A name that every MPI defines and slimpi does not. Its address, called the mark, identifies the
// MPI.
constexpr char kMark[] = "PMPI_Get_library_version";

std::atomic<void*> g_mark{nullptr};  // the mark of the chosen MPI

// A loaded library, with a handle that is never closed. `mark` is the mark of the MPI that the
// library is part of or linked to.
struct Library {
  void* handle;
  void* mark = nullptr;

  explicit Library(const char* path) : handle(dlopen(path, RTLD_NOLOAD | RTLD_LAZY)) {
    if (handle != nullptr) mark = dlsym(handle, kMark);
  }
};

Library library_of(const void* address) {
  Dl_info info{};
  // If the address lies in no file, takes the handle of the program, through which dlsym() finds
  // all global symbols.
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return Library("");
  return Library(info.dli_fname);
}

const Image& own_image() {
  static const Image own = image_of(reinterpret_cast<const void*>(lookup));
  return own;
}

bool is_own(const void* address) {
  return reinterpret_cast<Word>(address) - own_image().first < own_image().end - own_image().first;
}

// Returns the mark of the library that called slimpi.
void* mark_of_caller() {
  const void* caller = nullptr;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* found) {
        const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(frame));
        if (is_own(address)) return _URC_NO_REASON;
        *static_cast<const void**>(found) = address;
        return _URC_END_OF_STACK;
      },
      &caller);
  return caller != nullptr ? library_of(caller).mark : nullptr;
}

// Returns whether a function belongs to another MPI than the chosen one, or to a library linked to
// another MPI.
bool is_of_another(const void* address) {
  const void* const mark = library_of(address).mark;
  return g_mark != nullptr && mark != nullptr && mark != g_mark;
}

}  // namespace

LoadedMpis::LoadedMpis() {
  dl_iterate_phdr(add, this);
}

int LoadedMpis::add(dl_phdr_info* info, std::size_t, void* data) {
  auto& all = *static_cast<LoadedMpis*>(data);
  const std::string_view path = info->dlpi_name;
  const bool is_mpi = path.substr(path.rfind('/') + 1).starts_with("libmpi");  // npos + 1 = 0
  char* const paths = all.pages_.text;
  if (!is_mpi || paths == nullptr || path.size() >= Pages::kBytes - all.length_) return 0;
  std::memcpy(paths + all.length_, info->dlpi_name, path.size() + 1);
  all.length_ += path.size() + 1;
  return 0;
}

Pages::Pages()
    : text([] {
        void* const pages =
            mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
      }()) {}
Pages::~Pages() {
  if (text != nullptr) munmap(text, kBytes);
}

Choice choose_mpi() {
  void* mark = dlsym(RTLD_NEXT, kMark);
  bool several = false;
  if (mark == nullptr)
    LoadedMpis().find([&](const char* path) {
      void* const one = Library(path).mark;
      several = mark != nullptr && one != nullptr && one != mark;
      if (mark == nullptr) mark = one;
      return several;
    });
  if (several) mark = mark_of_caller();
  g_mark = mark;
  if (mark != nullptr) return Choice::made;
  return several ? Choice::unclear : Choice::none;
}

std::string loaded_mpis() {
  std::string names;
  void* last = nullptr;
  LoadedMpis().find([&](const char* path) {
    void* const mark = Library(path).mark;
    if (mark == nullptr || mark == last) return false;
    last = mark;
    static_assert(kLibraryVersion <= Pages::kBytes);
    const Pages pages;
    int length = 0;
    if (pages.text == nullptr) return false;
    reinterpret_cast<int (*)(char*, int*)>(mark)(pages.text, &length);
    const std::string line = first_line(pages.text);
    if (names.find(line) == std::string::npos) names += (names.empty() ? "" : " and ") + line;
    return false;
  });
  return names;
}

// Skips slimpi's own functions, which dlsym() finds by the handle of a stand-in, because a stand-in
// is linked to slimpi before the real MPI.
void* library_symbol(const char* name) {
  void* found = nullptr;
  LoadedMpis().find([&](const char* path) {
    const Library library(path);
    if (library.handle == nullptr || (g_mark != nullptr && library.mark != g_mark)) return false;
    found = dlsym(library.handle, name);
    if (found != nullptr && is_own(found)) found = nullptr;
    return found != nullptr;
  });
  return found;
}

void* lookup(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  return found != nullptr && !is_of_another(found) ? found : library_symbol(name);
}

const void* symbol(const char* name) {
  const void* const found = dlsym(RTLD_DEFAULT, name);
  return found != nullptr && !is_of_another(found) ? found : library_symbol(name);
}

namespace {

struct Search {
  Word address;
  Image found;
};

int look(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const Word first = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || search.address - first >= part.p_memsz) continue;
    const std::string_view path = info->dlpi_name;
    search.found = {first, first + part.p_memsz, path.substr(path.rfind('/') + 1)};  // npos + 1 = 0
    return 1;
  }
  return 0;
}

}  // namespace

Image image_of(const void* address) {
  Search search{reinterpret_cast<Word>(address), {}};
  dl_iterate_phdr(look, &search);
  return search.found;
}

std::string first_line(const char* text) {
  std::string line;
  for (; *text != '\0' && *text != '\n'; ++text) {
    const char c = *text == '\t' ? ' ' : *text;
    if (c != ' ' || !line.ends_with(' ')) line += c;
  }
  return line;
}

}  // namespace slimpi::mpi
