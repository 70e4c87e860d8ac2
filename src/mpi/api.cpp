// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/api.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

namespace slimpi::mpi {

namespace {

std::string_view file_name(const char* path) {
  const std::string_view text(path == nullptr ? "" : path);
  return text.substr(text.rfind('/') + 1);  // npos + 1 = 0
}

// Handles of the loaded libraries whose file name begins with libmpi. They are never closed.
std::vector<void*> loaded_mpis() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        if (file_name(info->dlpi_name).starts_with("libmpi"))
          static_cast<std::vector<std::string>*>(data)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  std::vector<void*> handles;
  for (const std::string& path : paths)
    if (void* handle = dlopen(path.c_str(), RTLD_NOLOAD | RTLD_LAZY); handle != nullptr)
      handles.push_back(handle);
  return handles;
}

void* lookup(const char* name) {
  if (void* found = dlsym(RTLD_NEXT, name); found != nullptr) return found;
  for (void* handle : loaded_mpis())
    if (void* found = dlsym(handle, name); found != nullptr) return found;
  return nullptr;
}

std::string_view library_of(const void* function) {
  Dl_info info{};
  return dladdr(function, &info) != 0 ? file_name(info.dli_fname) : "";
}

// The standard ABI of MPI 5.0. MPICH and Intel MPI have it in a second library beside their own
// ABI's.
bool has_standard_abi(std::string_view library) {
  using Ask = int(int*, int*);
  auto* const ask = reinterpret_cast<Ask*>(lookup("PMPI_Abi_get_version"));
  int major = -1, minor = -1;  // unchanged by a library of another ABI
  if (ask != nullptr) return ask(&major, &minor) == MPI_SUCCESS && major != -1;
  return library.starts_with("libmpi_abi");
}

// The first line, with each sequence of spaces and tabs replaced by one space.
std::string first_line(const char* text) {
  std::string line;
  for (; *text != '\0' && *text != '\n'; ++text) {
    const char c = *text == '\t' ? ' ' : *text;
    if (c != ' ' || !line.ends_with(' ')) line += c;
  }
  return line;
}

// MPICH and its descendants share one ABI and have MPICH, MVAPICH or Intel in their version line.
bool has_our_abi(const std::string& description) {
  for (const char* family : {"MPICH", "MVAPICH", "Intel(R) MPI"})
    if (description.find(family) != std::string::npos) return true;
  return false;
}

}  // namespace

Found find(Api& api, std::string& description) {
  void* const version = lookup("PMPI_Get_library_version");
  if (version == nullptr) return Found::no_mpi;
  char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
  int length = 0;
  reinterpret_cast<decltype(&::PMPI_Get_library_version)>(version)(text, &length);
  description = first_line(text);
  const std::string_view library = library_of(version);
  if (has_standard_abi(library)) {
    description = std::string(library) + " of " + description;
    return Found::other_abi;
  }
  if (!has_our_abi(description)) return Found::other_abi;
  bool complete = true;
#define SLIMPI_MPI(name)                                                        \
  api.name = reinterpret_cast<decltype(&::PMPI_##name)>(lookup("PMPI_" #name)); \
  complete = complete && api.name != nullptr;
#include "mpi/functions.def"
#undef SLIMPI_MPI
  return complete ? Found::yes : Found::other_abi;
}

void* next_definition(const char* name) {
  return lookup(name);
}

bool takes_gpu_memory() {
  constexpr int kCuda = 0;  // MPIX_GPU_SUPPORT_CUDA of MPICH
  int supported = 0;
  using Ask = int(int, int*);
  if (auto* const ask = reinterpret_cast<Ask*>(lookup("MPIX_GPU_query_support")); ask != nullptr)
    return ask(kCuda, &supported) == MPI_SUCCESS && supported != 0;
  // The older function, which Open MPI has too.
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

bool spans_other_world(const Api& api, MPI_Comm comm) {
  int size = 0;
  MPI_Group own = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  if (api.Comm_size(comm, &size) != MPI_SUCCESS || api.Comm_group(comm, &own) != MPI_SUCCESS)
    return false;
  std::vector<int> ranks(std::size_t(size), 0), there(ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  if (api.Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS) {
    api.Group_translate_ranks(own, size, ranks.data(), world, there.data());
    api.Group_free(&world);
  }
  api.Group_free(&own);
  return std::find(there.begin(), there.end(), MPI_UNDEFINED) != there.end();
}

std::string error_text(const Api& api, int code) {
  char text[MPI_MAX_ERROR_STRING + 1] = "";
  int length = 0;
  if (api.Error_string(code, text, &length) != MPI_SUCCESS)
    return "MPI error " + std::to_string(code);
  return text;
}

}  // namespace slimpi::mpi
