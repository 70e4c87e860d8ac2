// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/image.h"

#include <link.h>

namespace slimpi::mpi {

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

}  // namespace slimpi::mpi
