#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: plugins.sh [PLUGIN...]
# Checks what a part that is loaded on demand needs and shows: the one for GPU memory needs no
# library of CUDA to load, and none shows more than its one function.
set -eu
libs=${top_builddir:-.}/.libs
[ $# -gt 0 ] || set -- "$libs/slimpi-cuda.so" "$libs/slimpi-hwloc.so"
bad=0 found=0
for part in "$@"; do
  [ -e "$part" ] || continue
  found=$((found + 1))
  readelf -h "$part" >/dev/null
  for needed in $(readelf -d "$part" | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p'); do
    case $needed in
    libcuda* | libnccl* | libcublas* | libmpi* | libpmpi* | libstdc++*)
      echo "$part needs $needed to load"
      bad=1
      ;;
    esac
  done
  shown=$(nm -D --defined-only "$part" | awk '$2 != "A" { print $3 }')
  case $shown in
  slimpi_device_plugin | slimpi_hwloc_load) ;;
  *)
    echo "$part shows: $(echo "$shown" | tr '\n' ' ')"
    bad=1
    ;;
  esac
done
[ "$found" -gt 0 ] || { echo "no part is built"; exit 77; }
exit $bad
