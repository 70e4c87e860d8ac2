#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The kernels' bytes on a processor of another kind: tests/kernels/paths, compiled for aarch64 and
# run by qemu-user, meets checksums.h and computes all that the build's own does. Skips (77) without
# the cross compiler and qemu (Debian: g++-aarch64-linux-gnu qemu-user).
set -eu
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
compiler=aarch64-linux-gnu-g++
for command in $compiler qemu-aarch64; do
  command -v $command >/dev/null || {
    echo "SKIP $command was not found"
    exit 77
  }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# aarch64 has no CMocka here, so the functions that the test uses are written below.
mkdir -p "$work/tests/helper"
: >"$work/config.h"
cat >"$work/tests/helper/cmocka_cxx.h" <<'H'
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#define assert_true(what) ((what) ? (void)0 : (std::printf("%s\n", #what), std::exit(1)))
#define assert_int_equal(a, b) assert_true((a) == (b))
#define assert_ptr_equal(a, b) assert_true((a) == (b))
#define assert_string_equal(a, b) assert_true(std::strcmp(a, b) == 0)
#define assert_memory_equal(a, b, bytes) assert_true(std::memcmp(a, b, bytes) == 0)
#define print_error std::printf
#define print_message std::printf
using CMUnitTestFunction = void (*)(void**);
using CMFixtureFunction = int (*)(void**);
struct CMUnitTest {
  const char* name;
  CMUnitTestFunction test;
  CMFixtureFunction setup, teardown;
  void* state;
};
inline int _cmocka_run_group_tests(const char*, const CMUnitTest* tests, std::size_t count,
                                   CMFixtureFunction setup, CMFixtureFunction) {
  setup(nullptr);
  for (std::size_t i = 0; i < count; ++i) tests[i].test(nullptr);
  return 0;
}
H
# The flags are those of the generic loops in Makefile.am.
$compiler -std=c++20 -static -O2 -ftree-vectorize -fno-trapping-math -ffp-contract=off \
  -DSLIMPI_CPU=generic -I"$work" -I"$top_srcdir" -I"$top_srcdir/src" -o "$work/paths" \
  "$top_srcdir/kernels/cpu/loops.cpp" "$top_srcdir/kernels/cpu/cpu.cpp" \
  "$top_srcdir/tests/kernels/paths.cpp"
timeout 500 qemu-aarch64 "$work/paths" >"$work/aarch64.txt" || {
  cat "$work/aarch64.txt"
  echo "FAIL the test on aarch64"
  exit 1
}
"$top_builddir/tests/kernels/paths" >"$work/own.txt" 2>&1
here=$(grep -o 'all bytes: .*' "$work/own.txt") there=$(grep -o 'all bytes: .*' "$work/aarch64.txt")
if [ -n "$here" ] && [ "$here" = "$there" ]; then
  echo "PASS aarch64 computes the same bytes ($here)"
else
  echo "FAIL this processor: $here; aarch64: $there"
  exit 1
fi
