// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/api.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <numeric>
#include <utility>
#include <vector>

#include "mpi/search.h"

namespace slimpi::mpi {

namespace {

// Finds the range of addresses of Open MPI's predefined datatypes. Other datatypes are on the heap.
void find_predefined(Abi& made) {
  int i = 0;
  for (const void* address :
       {static_cast<const void*>(library_symbol("ompi_mpi_float")), symbol("ompi_mpi_float")}) {
    const Image image = image_of(address);
    made.predefined[i++] = {image.first, image.end};
  }
}

// Returns whether the chosen MPI has the standard ABI. MPICH 5 and Intel MPI also come as a library
// with their own ABI, where MPI_Abi_get_version is missing or returns no version above 0.
bool has_standard_abi() {
  using Ask = int(int*, int*);
  auto* const ask = reinterpret_cast<Ask*>(lookup("PMPI_Abi_get_version"));
  int major = -1, minor = -1;
  return ask != nullptr && ask(&major, &minor) == kSuccess && major > 0;
}

// Returns whether this is the version line of MPICH or a descendant, which share one ABI.
bool has_mpich_abi(std::string_view version) {
  for (const char* family : {"MPICH", "MVAPICH", "Intel(R) MPI"})
    if (version.find(family) != std::string_view::npos) return true;
  return false;
}

// The 16-bit float types of the MPIs whose handles are numbers. major.minor is the first release
// that was seen to sum the types of the row. Older releases have some of these types in their
// headers, too, but a sum of them ends the process. The same number means different types in
// different MPIs.
struct ShortFloats {
  std::string_view maker;  // before the number of the release in the version line
  int major, minor;
  const Abi& with;
  Datatype float16, real2, bfloat16;
};
constexpr ShortFloats kShortFloats[] = {
    {"MPICH Version:", 4, 2, kMpich, Datatype(0x4c000246), {}, {}},
    {"MPICH Version:", 5, 0, kMpich, {}, Datatype(0x4c000226), Datatype(0x4c00024c)},
    {"MPICH Version:", 5, 0, kStandard, {}, Datatype(0x2ca), {}},
    {"Intel(R) MPI Library", 2021, 14, kMpich, Datatype(0x4c000246), {}, Datatype(0x4c000247)},
    {"Intel(R) MPI Library", 2021, 17, kStandard, Datatype(0x2f8), {}, Datatype(0x2f9)},
};

void find_short_floats(const char* version) {
  for (const ShortFloats& row : kShortFloats) {
    const char* const found = std::strstr(version, row.maker.data());
    int major = 0, minor = 0;
    if (found == nullptr || row.with.name != abi.name ||
        std::sscanf(found + row.maker.size(), " %d.%d", &major, &minor) != 2 ||
        std::pair(major, minor) < std::pair(row.major, row.minor))
      continue;
    if (row.float16 != Datatype()) abi.type_float16 = row.float16;
    if (row.real2 != Datatype()) abi.type_real2 = row.real2;
    if (row.bfloat16 != Datatype()) abi.type_bfloat16 = row.bfloat16;
  }
}

// The MPI's version text, or "" if there is no MPI.
struct Version {
  const Pages pages;
  const char* const text = pages.text == nullptr ? "" : pages.text;

  Version() {
    using Get = int(char*, int*);
    auto* const get = reinterpret_cast<Get*>(lookup("PMPI_Get_library_version"));
    int length = 0;
    if (get != nullptr && pages.text != nullptr) get(pages.text, &length);
  }
};

std::atomic<bool> g_unknown{false};  // the process has an MPI that slimpi does not know
std::atomic<bool> g_unclear{false};  // the process has several MPIs; see Found::unclear

}  // namespace

std::atomic<bool> g_known{false};

void detect() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (g_known) return;
  const Choice choice = choose_mpi();
  if (choice == Choice::none) return;
  const Version version;
  if (choice == Choice::unclear) {
    abi.handle_bits = ~Word(0);
    g_unclear = true;
  } else if (has_standard_abi()) {
    abi = kStandard;
  } else if (symbol("ompi_mpi_comm_world") != nullptr) {
    abi = open_mpi(symbol);
    find_predefined(abi);
  } else if (!has_mpich_abi(version.text)) {
    abi.handle_bits = ~Word(0);  // every argument passes unchanged
    g_unknown = true;
  }
  find_short_floats(version.text);
  g_known.store(true, std::memory_order_release);
}

bool has_loaded_from(std::string_view directory) {
  bool has = false;
  LoadedMpis().find([&](const char* path) {
    has = std::string_view(path).starts_with(directory);
    return has;
  });
  return has;
}

Found find(Api& api, std::string& description) {
  detect();
  if (!g_known) return Found::no_mpi;
  if (g_unclear) {
    description =
        "several MPIs, " + loaded_mpis() + ", and does not say which one its calls are for";
    return Found::unclear;
  }
  description = first_line(Version().text);
  if (g_unknown) return Found::unknown;
  bool complete = true;
#define SLIMPI_MPI(name, ...)                                                      \
  api.name = reinterpret_cast<decltype(api.name)::Pointer>(lookup("PMPI_" #name)); \
  complete = complete && api.name != nullptr;
#include "mpi/functions.def"
  return complete ? Found::yes : Found::unknown;
}

void* next_definition(const char* name) {
  return lookup(name);
}

bool takes_gpu_memory() {
  constexpr int kCuda = 0;  // MPIX_GPU_SUPPORT_CUDA of MPICH
  int supported = 0;
  using Ask = int(int, int*);
  if (auto* const ask = reinterpret_cast<Ask*>(lookup("MPIX_GPU_query_support")); ask != nullptr)
    return ask(kCuda, &supported) == mpi::kSuccess && supported != 0;
  // Ask the older function, which Open MPI has, too.
  using Query = int();
  auto* const query = reinterpret_cast<Query*>(lookup("MPIX_Query_cuda_support"));
  return query != nullptr && query() == 1;
}

bool has_world(const Api& api) {
  int initialized = 0, finalized = 0;
  api.Initialized(&initialized);
  api.Finalized(&finalized);
  return initialized != 0 && finalized == 0;
}

bool spans_other_world(const Api& api, mpi::Comm comm) {
  int size = 0;
  mpi::Group own = mpi::abi.group_null, world = mpi::abi.group_null;
  if (api.Comm_size(comm, &size) != mpi::kSuccess || api.Comm_group(comm, &own) != mpi::kSuccess)
    return false;
  std::vector<int> ranks(std::size_t(size), 0), there(ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  if (api.Comm_group(mpi::abi.comm_world, &world) == mpi::kSuccess) {
    api.Group_translate_ranks(own, size, ranks.data(), world, there.data());
    api.Group_free(&world);
  }
  api.Group_free(&own);
  return std::find(there.begin(), there.end(), mpi::kUndefined) != there.end();
}

bool is_thread_comm(Comm comm) {
  static auto* const test =
      reinterpret_cast<int (*)(Comm, int*)>(lookup("PMPIX_Comm_test_threadcomm"));
  int is = 0;
  return test != nullptr && test(comm, &is) == kSuccess && is != 0;
}

int first_rank_in(const Api& api, Comm comm, Comm other, int* rank) {
  Group group = abi.group_null, all = abi.group_null;
  const int first = 0;
  int code = api.Comm_group(comm, &group);
  if (code == kSuccess) code = api.Comm_group(other, &all);
  if (code == kSuccess) code = api.Group_translate_ranks(group, 1, &first, all, rank);
  if (group != abi.group_null) api.Group_free(&group);
  if (all != abi.group_null) api.Group_free(&all);
  return code;
}

int copy_no_attribute(Comm, int, void*, void*, void*, int* copies) {
  *copies = 0;
  return kSuccess;
}

std::string error_text(const Api& api, int code) {
  char text[kErrorText] = "";
  int length = 0;
  if (api.Error_string(code, text, &length) != mpi::kSuccess)
    return "MPI error " + std::to_string(code);
  return text;
}

Status fail_by(const Api& api, const char* what, int code) {
  int known = 0;
  api.Error_class(code, &known);
  const auto is = [known](int wanted) { return wanted != 0 && known == wanted; };
  const Status status = is(abi.err_proc_failed) || is(abi.err_proc_failed_pending)
                            ? Status::rank_failed
                        : is(abi.err_revoked) ? Status::revoked
                                              : Status::mpi;
  return fail(status, what + (": " + error_text(api, code)));
}

Status check_revoked(Comm comm) {
  static auto* const is_revoked =
      reinterpret_cast<int (*)(Comm, int*)>(lookup("PMPIX_Comm_is_revoked"));
  int revoked = 0;
  if (is_revoked == nullptr || is_revoked(comm, &revoked) != kSuccess || revoked == 0)
    return Status::ok;
  return fail(Status::revoked, "the program has revoked the communicator");
}

// Only Open MPI's function is called. MPICH's would ask the process manager for failed processes,
// over the connection from which lost_rank() reads.
Status check_failed(const Api& api, Comm comm) {
  static auto* const get_failed =
      abi.name != std::string_view("Open MPI")
          ? nullptr
          : reinterpret_cast<int (*)(Comm, Group*)>(lookup("PMPIX_Comm_get_failed"));
  int failed = 0;
  Group group = abi.group_null, all = abi.group_null;
  if (get_failed == nullptr || get_failed(comm, &group) != kSuccess) return Status::ok;
  const int first = 0;
  int rank = -1;
  if (api.Group_size(group, &failed) == kSuccess && failed != 0 &&
      api.Comm_group(comm, &all) == kSuccess) {
    api.Group_translate_ranks(group, 1, &first, all, &rank);
    api.Group_free(&all);
  }
  api.Group_free(&group);
  if (failed == 0) return Status::ok;
  return fail(Status::rank_failed, "the process of rank " + std::to_string(rank) + " has failed");
}

}  // namespace slimpi::mpi
