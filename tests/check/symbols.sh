#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: symbols.sh [LIBRARY [EXPORTS.MAP]]
# Checks what a preloaded library brings into a program: it exports only the MPI names listed in the
# version script and slimpi_*, needs no library that the program may have in another version, and
# leaves no MPI function to be found while it is loaded. Skips (77) if there is no library.
set -eu
library=${1:-${top_builddir:-.}/.libs/libslimpi.so}
map=${2:-${top_srcdir:-.}/src/intercept/exports.map}
if [ ! -e "$library" ] && [ $# -eq 0 ]; then
  echo "$library is not built"
  exit 77
fi
# A missing file must not look like a library without symbols.
readelf -h "$library" >/dev/null
grep -q . "$map"
bad=0

allowed=" $(grep -o '\<\(P\?MPI\|mpi\)_[A-Za-z0-9_]*;' "$map" | tr -d ';' | tr '\n' ' ')"
for symbol in $(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
do
  case $symbol in
  slimpi_*) ;;
  *)
    case $allowed in
    *" $symbol "*) ;;
    *)
      echo "$library exports $symbol, which $map does not list"
      bad=1
      ;;
    esac
    ;;
  esac
done
# $allowed is a list of words.
# shellcheck disable=SC2086
for symbol in $allowed; do
  if ! nm -D --defined-only "$library" | grep -q " $symbol\$\| $symbol@"; then
    echo "$library does not export $symbol, which $map lists"
    bad=1
  fi
done
for symbol in $(nm -D --undefined-only "$library" | awk '$1 == "U" { print $2 }'); do
  case $symbol in
  MPI_* | PMPI_* | MPIX_*)
    echo "$library needs $symbol to load; it must find MPI at run time"
    bad=1
    ;;
  esac
done
for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'); do
  case $needed in
  libmpi* | libpmpi* | libcuda* | libnccl* | libcublas* | libstdc++* | libhwloc*)
    echo "$library needs $needed to load"
    bad=1
    ;;
  esac
done
exit $bad
