// SPDX-License-Identifier: BSD-3-Clause
// The start and the end of MPI. slimpi intercepts MPI_Init and MPI_Init_thread, because nonblocking
// and persistent sums need MPI_THREAD_MULTIPLE and, under Open MPI, a communicator that the program
// does not see. MPI_Init_thread returns the level that MPI provides, which, as with any MPI, may be
// more than the program asked for. MPI_Session_init and MPI_Session_finalize are intercepted to
// count the open sessions. In MPI_Finalize slimpi waits for its sums, and leaves new sums to MPI.
#include <elf.h>
#include <link.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "base/fiber.h"
#include "base/process.h"
#include "base/process_manager.h"
#include "call/communicator_attribute.h"
#include "call/entry.h"
#include "intercept/names.h"
#include "mpi/api.h"
#include "mpi/internal_comm.h"
#include "observe/log.h"
#include "options/config.h"

namespace slimpi::intercept {

namespace {

// Returns whether a function of this name begins a nonblocking or persistent sum or, if `gathers`,
// a nonblocking or persistent all-gather. The name may be one of C, mpif.h, mpi or mpi_f08:
// MPI_Iallreduce, mpi_allreduce_init_c, mpi_iallreduce_f08ts_.
bool begins_sums(std::string_view name, bool gathers) {
  if (!name.starts_with("MPI_") && !name.starts_with("mpi_")) return false;
  name.remove_prefix(4);
  if (gathers && (name.starts_with("Iallgather") || name.starts_with("iallgather") ||
                  (name.substr(1).starts_with("llgather") && name.find("_init") != name.npos)))
    return true;
  for (const std::string_view begins :
       {"Iallreduce", "iallreduce", "Allreduce_init", "allreduce_init", "Ireduce_scatter",
        "ireduce_scatter", "Reduce_scatter_init", "reduce_scatter_init",
        "Reduce_scatter_block_init", "reduce_scatter_block_init"})
    if (name.starts_with(begins)) return true;
  return false;
}

// Returns whether a file is a library of MPI or slimpi. These are not searched for references to
// sums, because MPI's Fortran libraries refer to all of MPI.
bool is_mpis(std::string_view file) {
  return file.starts_with("libmpi") || file.starts_with("libpmpi") || file.starts_with("libslimpi");
}

struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;      // the second word is the number of symbols
  const std::uint32_t* gnu_hash = nullptr;  // the second word is the first defined symbol
};

// Converts an address of the dynamic section to a pointer. glibc has relocated these addresses,
// except in the kernel's vDSO.
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

// Returns whether a loaded object has, in its dynamic symbol table, an undefined symbol that begins
// sums or, if the bool at `gathers` is true, all-gathers.
int refers_to_sums(dl_phdr_info* object, std::size_t, void* gathers) {
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
        begins_sums(tables.names + tables.symbols[i].st_name, *static_cast<bool*>(gathers)))
      return 1;
  return 0;
}

// Returns whether a loaded object refers to nonblocking or persistent sums or, with `gathers`, to
// all-gathers of this kind.
bool program_begins(bool gathers) {
  const auto find = [](bool all) { return dl_iterate_phdr(&refers_to_sums, &all) != 0; };
  if (gathers) {
    static const bool begins = find(true);
    return begins;
  }
  static const bool begins = find(false);
  return begins;
}

// The thread level that slimpi requests from MPI. MPI need not be initialized.
//   programs           the level that the program asks for
//   multiple_for_init  MPI_THREAD_MULTIPLE, but only in MPI_Init, because an object of the process
//                      calls nonblocking or persistent sums
//   multiple           MPI_THREAD_MULTIPLE, because of SLIMPI_PROGRESS=thread
enum class ThreadLevel { programs, multiple_for_init, multiple };
ThreadLevel wanted_thread_level() {
  const Config config = load_config(slimpi_environment()).config;
  if (config.progress == Progress::thread) return ThreadLevel::multiple;
  if (config.is_set(Option::progress) || !program_begins(config.calls.has(Collective::allgather)))
    return ThreadLevel::programs;
  return ThreadLevel::multiple_for_init;
}

// Under Open MPI, makes a hidden communicator, from which slimpi makes its other communicators. The
// program's communicators cannot serve for that, because Open MPI's MPI_Comm_create_group sends
// messages on the parent that the program's receives with MPI_ANY_SOURCE and MPI_ANY_TAG would
// take. All processes of MPI_COMM_WORLD must take part. So this does nothing if the launcher may
// have started several programs, since some of them may run without slimpi, or if some rank lacks
// MPI_THREAD_MULTIPLE.
void prepare_sums() {
  mpi::Api api{};
  std::string version;
  // All ranks must decide the same, so the decision must not depend on SLIMPI_CALLS, which may
  // differ among the ranks.
  if (!mpi::abi.create_group_is_seen || !program_begins(true) ||
      environment_variable("OMPI_NUM_APP_CTX") != "1" || mpi::find(api, version) != mpi::Found::yes)
    return;
  int level = 0;
  mpi::Request request = mpi::abi.request_null;
  int all = api.Query_thread(&level) == mpi::kSuccess && level == mpi::abi.thread_multiple ? 1 : 0;
  if (api.Iallreduce(mpi::abi.in_place, &all, 1, mpi::abi.type_int, mpi::abi.op_min,
                     mpi::abi.comm_world, &request) == mpi::kSuccess &&
      api.Wait(&request, mpi::abi.status_ignore) == mpi::kSuccess && all != 0)
    mpi::make_hidden_world(api);
}

// Tells the user, with SLIMPI_LOG=info, that slimpi asks for another thread level.
void tell_thread_level() {
  if (!is_first_process()) return;
  set_log(load_config(slimpi_environment()).config.log, -1);
  log_info(
      "the program calls MPI_Init and begins sums that are not blocking, so slimpi asks for "
      "MPI_THREAD_MULTIPLE; SLIMPI_PROGRESS=calls leaves the level and these sums to MPI");
}

// Returns the wanted level. Calls find_abi() before that, which chooses the caller's MPI in a
// process with several MPIs and must run before any MPI function is looked up.
ThreadLevel wanted_level() {
  auto level = ThreadLevel::programs;
  (void)catch_all([&] {
    mpi::find_abi();
    level = wanted_thread_level();
  });
  return level;
}

int level_of_thread(int required) {
  return wanted_level() == ThreadLevel::multiple ? mpi::abi.thread_multiple : required;
}

// Prepares sums after MPI_Init or MPI_Init_thread has returned `code`. Returns `code`.
int initialized(int code) {
  if (code != mpi::kSuccess) return code;
  (void)catch_all(note_process_manager);
  (void)catch_all(prepare_sums);
  return code;
}

// Initializes MPI by without_level(), or by with_level(level) if slimpi wants another level.
int init(const auto& without_level, const auto& with_level) {
  const ThreadLevel wanted = wanted_level();
  if (wanted == ThreadLevel::programs) return initialized(without_level());
  if (wanted == ThreadLevel::multiple_for_init) (void)catch_all(tell_thread_level);
  return initialized(with_level(mpi::abi.thread_multiple));
}

int init_session(const auto& next, Word info, Word handler, void* session) {
  const int code = next(info, handler, session);
  if (code == 0) session_opened();
  return code;
}

int finalize_session(const auto& next, void* session) {
  const int code = next(session);
  if (code == 0) (void)catch_all(session_closed);
  return code;
}

int finalize(const auto& next) {
  if (sums_in_flight()) (void)catch_all(call::wait_for_all_sums);
  if (g_blocking != 0) [[unlikely]]  // MPICH crashes if a thread is still in MPI
    end_for(mpi::abi.comm_world,
            fail(Status::absent,
                 "a first sum that was not blocking ended by SLIMPI_TIMEOUT, and a "
                 "thread still waits in MPI for the ranks that had given up"));
  const Finalizing finalizing;
  const int code = next();
  if (code == mpi::kSuccess) (void)catch_all(world_closed);
  return code;
}

using InitThread = int(int*, void*, int, int*);

}  // namespace

SLIMPI_EXPORT int MPI_Init(int* argc, void* argv) {
  return init([&] { return SLIMPI_NEXT("MPI_Init", int(int*, void*))(argc, argv); },
              [&](int level) {
                int provided = 0;
                return SLIMPI_NEXT("MPI_Init_thread", InitThread)(argc, argv, level, &provided);
              });
}

SLIMPI_EXPORT int MPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  const int level = level_of_thread(required);
  return initialized(SLIMPI_NEXT("MPI_Init_thread", InitThread)(argc, argv, level, provided));
}

// Called by Open MPI's Fortran; see names.h.
SLIMPI_EXPORT int PMPI_Init_thread(int* argc, void* argv, int required, int* provided) {
  auto* const next = SLIMPI_NEXT("PMPI_Init_thread", InitThread);
  if (!SLIMPI_FROM_FORTRAN) return next(argc, argv, required, provided);
  return initialized(next(argc, argv, level_of_thread(required), provided));
}

SLIMPI_EXPORT int PMPI_Init(int* argc, void* argv) {
  auto* const next = SLIMPI_NEXT("PMPI_Init", int(int*, void*));
  if (!SLIMPI_FROM_FORTRAN) return next(argc, argv);
  return init([&] { return next(argc, argv); },
              [&](int level) {
                int provided = 0;
                return SLIMPI_NEXT("PMPI_Init_thread", InitThread)(argc, argv, level, &provided);
              });
}

SLIMPI_F08(init, (int* error), init(next, [&](int level) {
             int provided = 0;
             SLIMPI_NEXT("mpi_init_thread_f08_", void(const int*, int*, int*))
             (&level, &provided, code);
             return *code;
           }))

SLIMPI_EXPORT void mpi_init_thread_f08_(const int* required, int* provided, int* error) {
  const int level = level_of_thread(*required);
  SLIMPI_NEXT("mpi_init_thread_f08_", void(const int*, int*, int*))(&level, provided, error);
}

SLIMPI_BOTH(Session_init, init_session, (Word info, Word handler, void* session), info, handler,
            session)
SLIMPI_BOTH(Session_finalize, finalize_session, (void* session), session)
SLIMPI_BOTH(Finalize, finalize, ())

SLIMPI_F08(session_init, (const int* info, const int* handler, int* session, int* error),
           init_session(next, Word(*info), Word(*handler), session), info, handler, session)
SLIMPI_F08(session_finalize, (int* session, int* error), finalize_session(next, session), session)
SLIMPI_F08(finalize, (int* error), finalize(next))

}  // namespace slimpi::intercept
