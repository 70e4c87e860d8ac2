// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/stub.h"

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstring>
#include <fstream>

namespace slimpi::tools {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Dyn);
using Symbol = ElfW(Sym);

constexpr std::size_t kLargestPage = 1 << 16;

// What comes before the dynamic section and the strings. The table of symbols has the one that
// every table begins with.
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

}  // namespace

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

}  // namespace slimpi::tools
