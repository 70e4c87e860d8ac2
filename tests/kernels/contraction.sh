#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The code for GPUs rounds as the host does: no multiplication and addition in one, nothing
# approximate, no subnormal number flushed to zero, in any kernel. And no minimum or maximum with a
# zero, of which 0 is greater than -0; to a comparison they are equal. Skips (77) without nvcc.
set -eu
: "${top_srcdir:?is set by make check}"
if [ -z "${NVCC:-}" ]; then
  echo "SKIP nvcc was not found"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flags=$(echo "$NVCC_FLAGS" | sed 's/-gencode [^ ]*//g')
failures=0

# inexact FILE: prints lines of PTX that round otherwise. An operation without a rounding mode may
# still be fused when PTX is compiled.
inexact() {
  fused='[[:space:]](fma|mad)\.(rn|rz|rm|rp)[.a-z]*\.f(32|64)'
  loose='\.(approx|ftz|full)[.[:space:]]|[[:space:]](add|sub|mul|div)\.f(32|64)'
  zeros='(min|max)(\.[a-zA-Z]+)*\.f(32|64)[^;]*0[fd][08]0+;'
  grep -nE "$fused|$loose|$zeros" "$1"
}

# The words of the flags.
# shellcheck disable=SC2086
compile() {
  "$NVCC" $flags "$@"
}
# shellcheck disable=SC2086
compile_fused() {
  "$NVCC" $(echo "$flags" | sed 's/-fmad=false//') "$@"
}

for kernels in encode sum decode packed plain; do
  compile -arch=compute_90 -I"$top_srcdir" -ptx -o "$work/$kernels.ptx" \
    "$top_srcdir/kernels/cuda/$kernels.cu"
  grep -q '^.visible .entry slimpi_' "$work/$kernels.ptx"
  if inexact "$work/$kernels.ptx"; then
    echo "FAIL kernels/cuda/$kernels.cu"
    failures=1
  else
    echo "PASS kernels/cuda/$kernels.cu"
  fi
done

# Tests the check itself: if contraction is allowed, the check finds some.
compile_fused -arch=compute_90 -I"$top_srcdir" -ptx -o "$work/fused.ptx" \
  "$top_srcdir/kernels/cuda/plain.cu"
if inexact "$work/fused.ptx" >/dev/null; then
  echo "PASS contraction would be found"
else
  echo "FAIL contraction would not be found"
  failures=1
fi
exit $failures
