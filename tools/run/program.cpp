// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/program.h"

#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string_view>

namespace slimpi::tools {

namespace {

// Returns 0 if the file can be executed, and otherwise an errno.
int executable(const std::string& path) {
  struct stat file;
  if (stat(path.c_str(), &file) != 0) return errno;
  if (S_ISDIR(file.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

bool is_absent(int error) {
  return error == ENOENT || error == ENOTDIR;
}

template <typename T>
bool read_at(std::ifstream& file, std::uint64_t offset, T& value) {
  file.seekg(std::streamoff(offset));
  return bool(file.read(reinterpret_cast<char*>(&value), sizeof value));
}

bool is_elf(const unsigned char* start) {
  return std::memcmp(start, ELFMAG, SELFMAG) == 0;
}

// Returns the path of a program's ELF interpreter, that is of its dynamic linker; "" if the program
// has none. The program is of slimpi-run's own ELF class and machine.
std::string interpreter_of(std::ifstream& file, const Elf64_Ehdr& header) {
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + std::uint64_t(i) * header.e_phentsize, segment)) break;
    if (segment.p_type != PT_INTERP) continue;
    file.seekg(std::streamoff(segment.p_offset));
    std::string path;
    std::getline(file, path, '\0');
    return path;
  }
  return "";
}

// Returns "", or how the C library of this dynamic linker differs from the one that the preloaded
// library needs. A program that has this linker would not start. glibc's linker names its private
// version, and from 2.34 on also that version. Libraries that are linked to an older glibc do
// not name 2.34. Their names stand at the beginning, before the code.
std::string differs_in_libc(const std::string& linker, std::ifstream& preload) {
  std::ifstream file(linker, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) return "";
  std::string names(std::size_t(64) << 10, '\0');
  preload.seekg(0);
  preload.read(names.data(), std::streamsize(names.size()));
  if (bytes.find("GLIBC_PRIVATE") == bytes.npos) return "has another C library than glibc";
  const char* const newer = "GLIBC_2.34";
  return names.find(newer) != names.npos && bytes.find(newer) == bytes.npos
             ? "has a glibc before 2.34"
             : "";
}

}  // namespace

Program find_program(const std::string& name, const std::string& path) {
  Program result;
  int worst = ENOENT;
  const auto accept = [&](const std::string& candidate) {
    const int error = executable(candidate);
    if (error == 0) result.path = candidate;
    if (!is_absent(error)) worst = error;
    return error == 0;
  };
  if (name.find('/') != name.npos) {
    if (accept(name)) return result;
  } else {
    for (std::string_view rest = path; !name.empty();) {
      const std::size_t colon = rest.find(':');
      const std::string directory(rest.substr(0, colon));
      if (accept((directory.empty() ? "." : directory) + "/" + name)) return result;
      if (colon == rest.npos) break;
      rest.remove_prefix(colon + 1);
    }
  }
  result.status = is_absent(worst) ? 127 : 126;
  result.why = name.find('/') == name.npos && is_absent(worst) ? "not found in PATH"
               : is_absent(worst)                              ? "not found"
                                                               : std::strerror(worst);
  return result;
}

std::string unreachable(const std::string& path, const std::string& library, bool* starts) {
  *starts = true;
  std::ifstream program(path, std::ios::binary), preload(library, std::ios::binary);
  Elf64_Ehdr header, ours;
  if (!read_at(program, 0, header) || !is_elf(header.e_ident) || !read_at(preload, 0, ours))
    return "";
  if (header.e_ident[EI_CLASS] != ours.e_ident[EI_CLASS] ||
      header.e_ident[EI_DATA] != ours.e_ident[EI_DATA] || header.e_machine != ours.e_machine)
    return "is built for another architecture than libslimpi.so";
  if (ours.e_ident[EI_CLASS] == ELFCLASS64) {
    const std::string linker = interpreter_of(program, header);
    if (linker.empty()) return "is statically linked";
    const std::string difference = differs_in_libc(linker, preload);
    *starts = difference.empty();
    if (!*starts) return difference;
  }
  struct stat file;
  if (stat(path.c_str(), &file) == 0 && (((file.st_mode & S_ISUID) && file.st_uid != getuid()) ||
                                         ((file.st_mode & S_ISGID) && file.st_gid != getgid())))
    return "runs with the rights of another user";
  return "";
}

}  // namespace slimpi::tools
