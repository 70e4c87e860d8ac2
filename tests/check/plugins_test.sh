#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds parts that violate each rule of parts.sh and sees it fail with the right line.
set -eu
check=$(cd "$(dirname "$0")" && pwd)/plugins.sh
. "${check%/*}/broken_libraries.sh"
clean='int slimpi_device_plugin(void) { return 0; }'

build clean "$clean" -ldl
if ! "$check" ./clean.so; then
  echo "FAIL: a clean part is refused"
  failures=1
fi
build leak "$clean int helper(void) { return 1; }"
refused leak 'shows: helper slimpi_device_plugin '
build empty 'static int hidden; int slimpi_other(void) { return hidden; }'
refused empty 'shows: slimpi_other '
for soname in libcuda.so.1 libcudart.so.13 libcublas.so.13 libnccl.so.2 libmpich.so.12 \
  libstdc++.so.6; do
  build stub '' -Wl,-soname,$soname
  build needs "$clean" ./stub.so
  refused needs "needs $soname to load"
done
code=0
"$check" ./absent.so >out || code=$?
[ "$code" = 77 ] || { echo "FAIL: no part at all is no skip"; failures=1; }
exit $failures
