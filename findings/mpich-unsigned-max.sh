#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Debian 12's MPICH 4.0.2: MPI_MAX and MPI_MIN compare unsigned integers as signed ones. The maximum
# of 1 and a value whose highest bit is set is 1.
#
# Expected: the result of unsigned comparison, as with MPICH 4.0.3 of the Python index.
#
# Seen on 2026-11-28, x86-64, Debian 12, with libmpich12 4.0.2-3+b1, and mpich==4.0.3 of the Python
# index; MPI_Reduce_local of 1 and of the value with only the highest bit set:
#
#   mpich 4.0.3, unsigned char: max 128 min 1
#   mpich 4.0.3, unsigned short: max 32768 min 1
#   mpich 4.0.3, unsigned: max 2147483648 min 1
#   mpich 4.0.3, unsigned long: max 9223372036854775808 min 1
#   Debian's 4.0.2, unsigned char: max 1 min 128
#   Debian's 4.0.2, unsigned short: max 1 min 32768
#   Debian's 4.0.2, unsigned: max 1 min 2147483648
#   Debian's 4.0.2, unsigned long: max 1 min 9223372036854775808
#
# MPI_Allreduce and MPI_Reduce of two ranks gave the same. A program loses the largest hash, checksum,
# bit mask or uint8 value.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/environment"
"$work/environment/bin/pip" -q install mpich==4.0.3
mkdir "$work/packages" "$work/debian"
(cd "$work/packages" && apt-get -q download libmpich12=4.0.2-3+b1 libucx0=1.13.1-1 \
  libhwloc15=2.9.0-1 libnuma1=2.0.16-1 >/dev/null 2>&1)
for package in "$work"/packages/*.deb; do dpkg -x "$package" "$work/debian"; done
libraries=$work/debian/usr/lib/x86_64-linux-gnu
# Both libraries have MPICH's ABI; only their names differ.
ln -s libmpich.so.12 "$libraries/libmpi.so.12"
cat >"$work/unsigned.c" <<'P'
#include <mpi.h>
#include <stdio.h>

static const char* mpi_is;

#define SHOW(name, datatype, type)                                                             \
  do {                                                                                         \
    const type one = 1, high = (type)(one << (8 * sizeof(type) - 1));                          \
    type most = high, least = high;                                                            \
    MPI_Reduce_local(&one, &most, 1, datatype, MPI_MAX);                                       \
    MPI_Reduce_local(&one, &least, 1, datatype, MPI_MIN);                                      \
    printf("%s, %s: max %lu min %lu\n", mpi_is, name, (unsigned long)most, (unsigned long)least); \
  } while (0)

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  mpi_is = argv[1];
  SHOW("unsigned char", MPI_UNSIGNED_CHAR, unsigned char);
  SHOW("unsigned short", MPI_UNSIGNED_SHORT, unsigned short);
  SHOW("unsigned", MPI_UNSIGNED, unsigned);
  SHOW("unsigned long", MPI_UNSIGNED_LONG, unsigned long);
  MPI_Finalize();
  return 0;
}
P
cat >"$work/seen.txt" <<'T'
mpich 4.0.3, unsigned char: max 128 min 1
mpich 4.0.3, unsigned short: max 32768 min 1
mpich 4.0.3, unsigned: max 2147483648 min 1
mpich 4.0.3, unsigned long: max 9223372036854775808 min 1
Debian's 4.0.2, unsigned char: max 1 min 128
Debian's 4.0.2, unsigned short: max 1 min 32768
Debian's 4.0.2, unsigned: max 1 min 2147483648
Debian's 4.0.2, unsigned long: max 1 min 9223372036854775808
T
"$work/environment/bin/mpicc" -o "$work/unsigned" "$work/unsigned.c"
{
  LD_LIBRARY_PATH=$work/environment/lib timeout 60 "$work/unsigned" "mpich 4.0.3"
  LD_LIBRARY_PATH=$libraries timeout 60 "$work/unsigned" "Debian's 4.0.2"
} >"$work/now.txt"
cat "$work/now.txt"
cmp "$work/seen.txt" "$work/now.txt"
