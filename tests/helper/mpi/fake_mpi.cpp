// SPDX-License-Identifier: BSD-3-Clause
#include "tests/helper/mpi/fake_mpi.h"

#include <cstring>
#include <map>

using namespace slimpi::test;

namespace slimpi::test {
__attribute__((visibility("default"))) FakeMpi& fake_mpi() {
  static FakeMpi fake;
  return fake;
}
}  // namespace slimpi::test

namespace {
std::map<std::pair<MPI_Comm, int>, void*> g_attributes;
int g_keyvals = 0;

int size_of(MPI_Comm comm) {
  return comm == MPI_COMM_SELF ? 1 : 2;
}

int refuse() {
  if (fake_mpi().error_handler) fake_mpi().error_handler();
  return kErrorOfHandler;
}
}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int PMPI_Get_library_version(char* version, int* length) {
  std::strcpy(version, "MPICH Version: a fake of slimpi's tests");
  *length = int(std::strlen(version));
  return MPI_SUCCESS;
}

int PMPI_Initialized(int* flag) {
  *flag = fake_mpi().initialized ? 1 : 0;
  return MPI_SUCCESS;
}
int PMPI_Finalized(int* flag) {
  *flag = 0;
  return MPI_SUCCESS;
}

int PMPI_Comm_size(MPI_Comm comm, int* size) {
  *size = size_of(comm);
  return MPI_SUCCESS;
}
int PMPI_Comm_rank(MPI_Comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}
int PMPI_Comm_test_inter(MPI_Comm comm, int* flag) {
  if (comm == kInvalidComm) return refuse();
  *flag = comm == kIntercommunicator ? 1 : 0;
  return MPI_SUCCESS;
}

int PMPI_Comm_create_keyval(MPI_Comm_copy_attr_function*, MPI_Comm_delete_attr_function*,
                            int* keyval, void*) {
  *keyval = ++g_keyvals;
  return MPI_SUCCESS;
}
int PMPI_Comm_free_keyval(int* keyval) {
  *keyval = MPI_KEYVAL_INVALID;
  return MPI_SUCCESS;
}
int PMPI_Comm_set_attr(MPI_Comm comm, int keyval, void* value) {
  g_attributes[{comm, keyval}] = value;
  return MPI_SUCCESS;
}
int PMPI_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* found) {
  if (comm == kInvalidComm) return refuse();
  const auto entry = g_attributes.find({comm, keyval});
  *found = entry != g_attributes.end() ? 1 : 0;
  if (*found != 0) *static_cast<void**>(value) = entry->second;
  return MPI_SUCCESS;
}

int PMPI_Add_error_class(int*) {
  return refuse();
}

int PMPI_Info_get_nkeys(MPI_Info, int* keys) {
  *keys = int(fake_mpi().info.size());
  return MPI_SUCCESS;
}
int PMPI_Info_get_nthkey(MPI_Info, int n, char* key) {
  std::strcpy(key, fake_mpi().info[std::size_t(n)].first.c_str());
  return MPI_SUCCESS;
}
int PMPI_Info_get(MPI_Info, const char* key, int length, char* value, int* found) {
  *found = 0;
  for (const auto& [name, text] : fake_mpi().info)
    if (name == key && *found == 0) {
      std::strncpy(value, text.c_str(), std::size_t(length));
      *found = 1;
    }
  return MPI_SUCCESS;
}

// The other rank returns each message that it gets.
static void* g_received;
int PMPI_Irecv(void* data, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request) {
  g_received = data;
  *request = MPI_REQUEST_NULL;
  return fake_mpi().agrees ? MPI_SUCCESS : MPI_ERR_OTHER;
}
int PMPI_Isend(const void* data, int count, MPI_Datatype, int, int, MPI_Comm,
               MPI_Request* request) {
  std::memcpy(g_received, data, std::size_t(count) * sizeof(std::uint64_t));
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

int PMPI_Error_string(int, char* text, int* length) {
  std::strcpy(text, "the fake MPI cannot do this");
  *length = int(std::strlen(text));
  return MPI_SUCCESS;
}
}
#pragma GCC visibility pop
