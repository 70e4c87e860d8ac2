// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/stand_in.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "base/process.h"

namespace slimpi::tools {

namespace {

// The file names under which programs load an MPI: those of MPICH's ABI, of Open MPI, and of the
// standard ABI.
constexpr const char* kNames[] = {
    "libmpi.so",         "libmpi.so.12", "libmpich.so",   "libmpich.so.12",  "libmpi_cray.so",
    "libmpi_cray.so.12", "libmpi.so.40", "libmpi_abi.so", "libmpi_abi.so.0", "libmpi_abi.so.1"};

// The structures of an ELF file of this machine.
using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Dyn);
using Symbol = ElfW(Sym);

constexpr std::size_t kLargestPage = 1 << 16;

// The part of the file that precedes the dynamic section and the strings. Its table of symbols has
// only the null symbol, with which every such table begins.
struct Start {
  Header header;
  Segment segments[3];  // the whole file, the dynamic section, the stack
  Symbol symbol;
  Elf32_Word hash[4];  // 1 bucket and 1 chain, both empty
};

Segment segment(unsigned type, std::size_t offset, std::size_t size, std::size_t align) {
  Segment made{};
  made.p_type = type;
  made.p_flags = PF_R | PF_W;  // the dynamic linker writes addresses into the dynamic section
  made.p_offset = made.p_vaddr = made.p_paddr = offset;
  made.p_filesz = made.p_memsz = size;
  made.p_align = align;
  return made;
}

// Returns the bytes of a shared library that has no code and no name of its own, and that needs the
// libraries `needed` in this order. It is for the same machine as the shared library at the path
// `model`. Returns "" if `model` cannot be read.
std::string shared_library(const std::string& model, const std::vector<std::string>& needed) {
  Start start{};
  std::ifstream file(model, std::ios::binary);
  if (!file.read(reinterpret_cast<char*>(&start.header), sizeof start.header)) return "";

  std::vector<Entry> entries;
  const auto add = [&](auto tag, std::size_t value) {
    Entry entry{};
    entry.d_tag = tag;
    entry.d_un.d_val = value;
    entries.push_back(entry);
  };
  std::string strings(1, '\0');
  for (const std::string& name : needed) {
    add(DT_NEEDED, strings.size());
    strings += name + '\0';
  }
  const std::size_t size = (entries.size() + 6) * sizeof(Entry);
  add(DT_HASH, offsetof(Start, hash));
  add(DT_STRTAB, sizeof start + size);
  add(DT_SYMTAB, offsetof(Start, symbol));
  add(DT_STRSZ, strings.size());
  add(DT_SYMENT, sizeof(Symbol));
  add(DT_NULL, 0);

  start.header.e_type = ET_DYN;
  start.header.e_entry = start.header.e_shoff = 0;
  start.header.e_shnum = start.header.e_shstrndx = 0;
  start.header.e_phoff = offsetof(Start, segments);
  start.header.e_phnum = 3;
  start.segments[0] = segment(PT_LOAD, 0, sizeof start + size + strings.size(), kLargestPage);
  start.segments[1] = segment(PT_DYNAMIC, sizeof start, size, alignof(Entry));
  start.segments[2] = segment(PT_GNU_STACK, 0, 0, 16);
  start.hash[0] = start.hash[1] = 1;

  return std::string(reinterpret_cast<const char*>(&start), sizeof start) +
         std::string(reinterpret_cast<const char*>(entries.data()), size) + strings;
}

std::string real_path(const std::string& path) {
  std::error_code error;
  return std::filesystem::canonical(path, error);
}

// Returns the file that the dynamic linker finds by this name; "" if there is none. It loads the
// library to find out, because only the dynamic linker knows in which places it looks.
std::string found(const char* name) {
  void* const handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  link_map* map = nullptr;
  if (handle == nullptr || dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "";
  return map->l_name;
}

// Makes a directory that belongs to this user and that no other user can write to. Returns false on
// failure.
bool make_own(const std::string& path) {
  struct stat entry;
  return (mkdir(path.c_str(), 0700) == 0 || errno == EEXIST) && lstat(path.c_str(), &entry) == 0 &&
         S_ISDIR(entry.st_mode) && entry.st_uid == geteuid() && (entry.st_mode & 022) == 0;
}

// Writes a file that other ranks may be writing at the same time. Readers never see a part of it.
// Returns false on failure.
bool write_whole(const std::string& path, const std::string& bytes) {
  std::ifstream there(path, std::ios::binary);
  if (std::string(std::istreambuf_iterator<char>(there), {}) == bytes) return true;
  const std::string part = path + "." + std::to_string(getpid());
  std::ofstream file(part, std::ios::binary);
  const bool good = bool(file << bytes << std::flush);
  return good && std::rename(part.c_str(), path.c_str()) == 0;
}

}  // namespace

StandIn make_stand_in(const std::string& library) {
  std::map<std::string, std::string> files;
  std::string key;
  const std::string temporary = environment_variable("TMPDIR");
  const std::string user =
      (temporary.empty() ? "/tmp" : real_path(temporary)) + "/slimpi-" + std::to_string(geteuid());
  for (const char* name : kNames)
    if (const std::string path = found(name); !path.empty()) {
      if (path.starts_with(user + "/"))
        return {"", "--stand-in is already in use here: LD_LIBRARY_PATH has " + user};
      files[name] = shared_library(library, {real_path(library), path});
      key += name + files[name];
    }
  if (files.empty())
    return {"",
            "--stand-in: the dynamic linker finds no libmpi by its name; add the directory of "
            "your MPI's libraries to LD_LIBRARY_PATH"};
  const std::string directory = user + "/" + std::to_string(text_hash(key));
  bool good = make_own(user) && make_own(directory);
  for (const auto& [name, bytes] : files) good = good && write_whole(directory + "/" + name, bytes);
  if (!good)
    return {"", "--stand-in: cannot write " + directory + " (" + std::strerror(errno) +
                    "); set TMPDIR to a directory that you can write"};
  return {directory, ""};
}

}  // namespace slimpi::tools
