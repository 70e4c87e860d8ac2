// SPDX-License-Identifier: BSD-3-Clause
// Tests which memory is known to be the process's own.
#include "device/process_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <thread>

#include "tests/helper/base/unit_test.h"

using slimpi::device::in_process_memory;

extern "C" void* __sbrk(intptr_t);  // glibc's own

namespace {

int g_asked = 0;

char g_zeroed[3000];
char g_initialized[3000] = "x";

UNIT_TEST(static_data_is_the_processs) {
  assert_true(in_process_memory(g_zeroed));
  assert_true(in_process_memory(g_zeroed + sizeof g_zeroed - 1));
  assert_true(in_process_memory(g_initialized));
}

// The variable lies in the caller's frame, as variables of a program do: the stack grows towards
// lower addresses.
UNIT_TEST(the_main_threads_stack_is_the_processs) {
  char variable[100] = "";
  assert_true(in_process_memory(variable));
  assert_true(in_process_memory(variable + sizeof variable - 1));
}

UNIT_TEST(another_threads_stack_may_be_anybodys) {
  bool known = true;
  std::thread([&known] {
    const char variable = 0;
    known = in_process_memory(&variable);
  }).join();
  assert_false(known);
}

UNIT_TEST(the_heap_ends_at_the_program_break) {
  auto* const begin = static_cast<char*>(sbrk(8192));
  assert_true(in_process_memory(begin));
  assert_true(in_process_memory(begin + 8191));
  const char* const end = static_cast<char*>(sbrk(0));
  assert_false(in_process_memory(end));
  assert_false(in_process_memory(end + 4096));
}

UNIT_TEST(blocks_of_malloc_are_known_by_where_they_lie) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  void* const small = calloc(1, 100);
  assert_true(in_process_memory(small));
  free(small);
#endif
  const std::size_t mapped = 64 << 20;
  void* const large = malloc(mapped);
  assert_false(in_process_memory(large));
  free(large);
}

UNIT_TEST(mapped_memory_may_be_anybodys) {
  const std::size_t bytes = 1 << 20;
  auto* const memory = static_cast<char*>(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  assert_true(memory != MAP_FAILED);
  assert_false(in_process_memory(memory));
  assert_false(in_process_memory(memory + bytes - 1));
  munmap(memory, bytes);
}

UNIT_TEST(addresses_of_no_memory_are_nobodys) {
  for (const std::uintptr_t address : {std::uintptr_t(0), std::uintptr_t(1), UINTPTR_MAX})
    assert_false(in_process_memory(reinterpret_cast<const void*>(address)));
}

UNIT_TEST(no_question_goes_to_the_kernel) {
  char variable = 0;
  void* const small = calloc(1, 100);
  in_process_memory(&variable);
  g_asked = 0;
  in_process_memory(small);
  in_process_memory(g_zeroed);
  in_process_memory(&variable);
  assert_int_equal(g_asked, 0);
  free(small);
}

}  // namespace

// Replaces glibc's sbrk for the code under test. UCX makes it a system call, too.
extern "C" void* sbrk(intptr_t increment) {
  ++g_asked;
  return __sbrk(increment);
}
