// SPDX-License-Identifier: BSD-3-Clause
// What MPI_Init and MPI_Init_thread do for sums that are not blocking: those need
// MPI_THREAD_MULTIPLE, and under Open MPI a communicator that the program does not see.
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/process.h"
#include "call/entry.h"
#include "call/runtime.h"
#include "mpi/internal_comm.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Names of C, mpif.h, mpi and mpi_f08: MPI_Iallreduce, mpi_allreduce_init_c, mpi_iallreduce_f08ts_.
bool begins_sums(std::string_view name) {
  if (!name.starts_with("MPI_") && !name.starts_with("mpi_")) return false;
  name.remove_prefix(4);
  for (const std::string_view begins :
       {"Iallreduce", "iallreduce", "Allreduce_init", "allreduce_init", "Ireduce_scatter",
        "ireduce_scatter", "Reduce_scatter_init", "reduce_scatter_init",
        "Reduce_scatter_block_init", "reduce_scatter_block_init"})
    if (name.starts_with(begins)) return true;
  return false;
}

// MPI's Fortran libraries refer to all of MPI.
bool is_mpis(std::string_view file) {
  return file.starts_with("libmpi") || file.starts_with("libpmpi") || file.starts_with("libslimpi");
}

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

// Whether a loaded object has an undefined symbol that begins sums, by its dynamic symbol table.
int refers_to_sums(dl_phdr_info* object, std::size_t, void*) {
  std::string_view name = object->dlpi_name;
  name.remove_prefix(name.rfind('/') + 1);  // npos + 1 is 0
  if (is_mpis(name)) return 0;
  const Tables tables = tables_of(*object);
  if (tables.symbols == nullptr || tables.names == nullptr) return 0;
  const std::uint32_t count = tables.hash != nullptr       ? tables.hash[1]
                              : tables.gnu_hash != nullptr ? tables.gnu_hash[1]
                                                           : 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (tables.symbols[i].st_shndx == SHN_UNDEF &&
        begins_sums(tables.names + tables.symbols[i].st_name))
      return 1;
  return 0;
}

bool program_begins_sums() {
  static const bool begins = dl_iterate_phdr(&refers_to_sums, nullptr) != 0;
  return begins;
}

}  // namespace

ThreadLevel wanted_thread_level() {
  const Config config = load_config(slimpi_environment()).config;
  if (config.progress == Progress::thread) return ThreadLevel::multiple;
  if (config.is_set(Option::progress) || !program_begins_sums()) return ThreadLevel::programs;
  return ThreadLevel::multiple_for_init;
}

// Open MPI's MPI_Comm_create_group sends messages that a receive of the program from any source
// with any tag would take. So slimpi's are made from a communicator of its own. All processes of
// MPI_COMM_WORLD must take part in making that: where the launcher started several programs, or
// does not say how many, some may run without slimpi.
void after_init() {
  mpi::Api api{};
  std::string version;
  if (!mpi::abi.create_group_is_seen || !program_begins_sums() ||
      environment_variable("OMPI_NUM_APP_CTX") != "1" || mpi::find(api, version) != mpi::Found::yes)
    return;
  int level = 0;
  if (api.Query_thread(&level) == mpi::kSuccess && level == mpi::abi.thread_multiple)
    mpi::make_hidden_world(api);
}

void tell_thread_level() {
  if (!is_first_process()) return;
  set_log(load_config(slimpi_environment()).config.log, -1);
  log_info(
      "the program calls MPI_Init and begins sums that are not blocking, so slimpi asks for "
      "MPI_THREAD_MULTIPLE; SLIMPI_PROGRESS=calls leaves the level and these sums to MPI");
}

}  // namespace slimpi::call
