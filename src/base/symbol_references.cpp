// SPDX-License-Identifier: BSD-3-Clause
#include "base/symbol_references.h"

#include <elf.h>
#include <link.h>

#include <cstdint>

namespace slimpi {

namespace {

struct Search {
  const std::function<bool(std::string_view)>& matches;
  const std::function<bool(std::string_view)>& skips;
};

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;      // the second word: how many symbols
  const std::uint32_t* gnu_hash = nullptr;  // the second word: the first symbol that is defined
};

// glibc has relocated the addresses in the dynamic section, but not those of the kernel's vDSO.
template <typename Type>
const Type* at(const dl_phdr_info& object, ElfW(Addr) address) {
  return reinterpret_cast<const Type*>(address < object.dlpi_addr ? object.dlpi_addr + address
                                                                  : address);
}

Tables tables_of(const dl_phdr_info& object) {
  Tables tables;
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* entry =
        reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; entry->d_tag != DT_NULL; ++entry) {
      const ElfW(Addr) address = entry->d_un.d_ptr;
      if (entry->d_tag == DT_SYMTAB) tables.symbols = at<ElfW(Sym)>(object, address);
      if (entry->d_tag == DT_STRTAB) tables.names = at<char>(object, address);
      if (entry->d_tag == DT_HASH) tables.hash = at<std::uint32_t>(object, address);
      if (entry->d_tag == DT_GNU_HASH) tables.gnu_hash = at<std::uint32_t>(object, address);
    }
  }
  return tables;
}

int look_into(dl_phdr_info* object, std::size_t, void* argument) {
  const Search& search = *static_cast<Search*>(argument);
  std::string_view name = object->dlpi_name;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (search.skips(name)) return 0;
  const Tables tables = tables_of(*object);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  const std::uint32_t count = tables.hash != nullptr       ? tables.hash[1]
                              : tables.gnu_hash != nullptr ? tables.gnu_hash[1]
                                                           : 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (tables.symbols[i].st_shndx == SHN_UNDEF &&
        search.matches(tables.names + tables.symbols[i].st_name))
      return 1;
  return 0;
}

}  // namespace

bool is_referred_to(const std::function<bool(std::string_view)>& matches,
                    const std::function<bool(std::string_view)>& skips) {
  Search search{matches, skips};
  return dl_iterate_phdr(&look_into, &search) != 0;
}

}  // namespace slimpi
