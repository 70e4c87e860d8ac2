// SPDX-License-Identifier: BSD-3-Clause
// The functions that slimpi declares by itself are in NVIDIA's own NCCL, and those that need no GPU
// work. Skips where that library is not installed.
#include <dlfcn.h>

#include "device/cuda/nccl.h"
#include "tests/helper/base/unit_test.h"

using namespace slimpi::device::cuda;

namespace {

void* g_library;
Nccl g_nccl;

UNIT_TEST(every_function_is_there) {
#define FIND(name, ...)                                                           \
  g_nccl.name = reinterpret_cast<decltype(g_nccl.name)>(dlsym(g_library, #name)); \
  if (g_nccl.name == nullptr) fail_msg("libnccl.so.2 has no " #name);
  SLIMPI_NCCL_FUNCTIONS(FIND)
#undef FIND
}

UNIT_TEST(the_version_has_configurations) {
  int version = 0;
  assert_int_equal(g_nccl.ncclGetVersion(&version), kNcclSuccess);
  assert_true(version >= int(NcclTypes::Config().version));
}

// The bytes behind an id of the size that slimpi knows stay as they are.
UNIT_TEST(ids_are_made_without_a_gpu) {
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

UNIT_TEST(errors_have_a_text) {
  assert_true(std::strlen(g_nccl.ncclGetErrorString(kNcclInProgress)) > 0);
  assert_true(std::strcmp(g_nccl.ncclGetErrorString(kNcclSuccess),
                          g_nccl.ncclGetErrorString(kNcclInProgress)) != 0);
}

int prepare(void**) {
  g_library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (g_library == nullptr) {
    std::printf("SKIP %s\n", dlerror());
    std::exit(77);
  }
  return 0;
}
GROUP_FIXTURES(prepare, nullptr);

}  // namespace
