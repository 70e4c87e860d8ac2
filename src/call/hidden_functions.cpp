// SPDX-License-Identifier: BSD-3-Clause
#include "call/hidden_functions.h"

#include <dlfcn.h>

#include "base/fiber.h"
#include "call/queue.h"
#include "call/runtime.h"
#include "mpi/internal_comm.h"
#include "mpi/search.h"
#include "observe/log.h"

namespace slimpi::call {

namespace {

// Returns the definition of a function by a tool in front of slimpi, or null if no tool defines it.
template <typename Function>
Function* tools_definition(const char* name) {
  void* const seen = dlsym(RTLD_DEFAULT, name);
  if (seen == nullptr) return nullptr;
  const mpi::Image image = mpi::image_of(seen);
  const bool is_tools =
      image.first != mpi::image_of(reinterpret_cast<void*>(&find_hidden_functions)).first &&
      !image.name.starts_with("libmpi");
  return is_tools ? reinterpret_cast<Function*>(seen) : nullptr;
}

// Returns whether a tool hides the process's calls of a function from slimpi. To find out, calls
// the function once with arguments that do nothing.
template <typename... Arguments>
bool is_hidden(const char* name, Arguments... arguments) {
  auto* const tools = tools_definition<int(Arguments...)>(name);
  if (tools == nullptr) return false;
  bool reached = false;
  t_probe = &reached;
  tools(arguments...);
  t_probe = nullptr;
  return !reached;
}

// Returns whether a tool keeps slimpi from seeing the calls of a function that starts requests.
template <typename... Arguments>
bool hides_starts(const mpi::Api& api, const char* name, Arguments... arguments) {
  constexpr int kTag = 31740;  // the program does not send itself this message
  mpi::Request handle = mpi::abi.request_null;
  if (tools_definition<int(Arguments..., mpi::Request*)>(name) == nullptr ||
      api.Recv_init(nullptr, 0, mpi::abi.type_char, 0, kTag, mpi::abi.comm_self, &handle) !=
          mpi::kSuccess)
    return false;
  const bool hidden = is_hidden(name, arguments..., &handle);
  if (hidden) api.Cancel(&handle);  // the tool has started the request
  api.Wait(&handle, mpi::abi.status_ignore);
  api.Request_free(&handle);
  return hidden;
}

}  // namespace

bool has_tool_in_front(const char* name) {
  return tools_definition<int()>(name) != nullptr;
}

// Probes the functions that start or complete requests. If a tool in front of slimpi calls one of
// them by its PMPI_ name, slimpi does not see the program's calls of it, and a sum that slimpi has
// taken might never start or complete.
void find_hidden_functions(const Runtime& runtime) {
  mpi::Request null = mpi::abi.request_null;
  int flag = 0, index = 0, found = 0;
  count_fibers(1, &enter_fibers);
  mpi::MessageStatus* const ignore = mpi::abi.status_ignore;
  mpi::g_completions_hidden = is_hidden("MPI_Wait", &null, ignore) ||
                              is_hidden("MPI_Waitall", 1, &null, ignore) ||
                              is_hidden("MPI_Waitany", 1, &null, &index, ignore) ||
                              is_hidden("MPI_Waitsome", 1, &null, &found, &index, ignore) ||
                              is_hidden("MPI_Test", &null, &flag, ignore) ||
                              is_hidden("MPI_Testall", 1, &null, &flag, ignore) ||
                              is_hidden("MPI_Testany", 1, &null, &index, &flag, ignore) ||
                              is_hidden("MPI_Testsome", 1, &null, &found, &index, ignore);
  mpi::g_starts_hidden =
      hides_starts(runtime.api, "MPI_Start") || hides_starts(runtime.api, "MPI_Startall", 1);
  count_fibers(-1, &enter_fibers);
  if (runtime.world_rank != 0) return;
  if (mpi::g_completions_hidden)
    log_warn(
        "a tool hides functions that complete requests from slimpi, so sums that are not "
        "blocking go to MPI; preload the tool after slimpi");
  else if (mpi::g_starts_hidden)
    log_warn(
        "a tool hides MPI_Start or MPI_Startall from slimpi, so persistent sums go to MPI; "
        "preload the tool after slimpi");
}

}  // namespace slimpi::call
