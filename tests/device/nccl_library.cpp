// SPDX-License-Identifier: BSD-3-Clause
// The functions that slimpi declares by itself are in NVIDIA's own NCCL, and those that need no GPU
// work. Skips where that library is not installed.
#include <dlfcn.h>

#include <cstdio>
#include <cstring>

#include "device/cuda/nccl.h"
#include "tests/helper/cmocka_cxx.h"

using namespace slimpi::device::cuda;

namespace {

void* g_library;
Nccl g_nccl;

void every_function_is_there(void**) {
#define FIND(name, ...)                                                           \
  g_nccl.name = reinterpret_cast<decltype(g_nccl.name)>(dlsym(g_library, #name)); \
  if (g_nccl.name == nullptr) fail_msg("libnccl.so.2 has no " #name);
  SLIMPI_NCCL_FUNCTIONS(FIND)
#undef FIND
}

void the_version_has_configurations(void**) {
  int version = 0;
  assert_int_equal(g_nccl.ncclGetVersion(&version), kNcclSuccess);
  assert_true(version >= int(NcclTypes::Config().version));
}

// The bytes behind an id of the size that slimpi knows stay as they are.
void ids_are_made_without_a_gpu(void**) {
  struct {
    NcclTypes::Id id;
    char behind[128];
  } first, second;
  std::memset(&first, 0x5a, sizeof first);
  std::memset(&second, 0x5a, sizeof second);
  assert_int_equal(g_nccl.ncclGetUniqueId(&first.id), kNcclSuccess);
  assert_int_equal(g_nccl.ncclGetUniqueId(&second.id), kNcclSuccess);
  assert_true(std::memcmp(&first.id, &second.id, sizeof first.id) != 0);
  for (const char byte : first.behind) assert_int_equal(byte, 0x5a);
}

void errors_have_a_text(void**) {
  assert_true(std::strlen(g_nccl.ncclGetErrorString(kNcclInProgress)) > 0);
  assert_true(std::strcmp(g_nccl.ncclGetErrorString(kNcclSuccess),
                          g_nccl.ncclGetErrorString(kNcclInProgress)) != 0);
}

}  // namespace

int main() {
  g_library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (g_library == nullptr) {
    std::printf("SKIP %s\n", dlerror());
    return 77;
  }
  const CMUnitTest tests[] = {
      cmocka_unit_test(every_function_is_there),
      cmocka_unit_test(the_version_has_configurations),
      cmocka_unit_test(ids_are_made_without_a_gpu),
      cmocka_unit_test(errors_have_a_text),
  };
  return cmocka_run_group_tests(tests, nullptr, nullptr);
}
