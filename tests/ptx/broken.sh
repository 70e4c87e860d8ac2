#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/ptx/run.sh finds kernels that are wrong: each is made by a change of nvcc's PTX, or by one
# of nvcc's flags. Skips (77) without nvcc.
set -eu
. "${top_srcdir:?is set by make check}/tests/helper/ptx.sh"
target=$(echo "$targets" | tail -n 1)
make_ptx "$target" "$work/right"
failures=0

expect_found() { # WHAT DIRECTORY PATTERN: the cases go wrong, and say so
  if run_ptx "$2" >"$work/log" 2>&1; then
    echo "FAIL $1 is not found"
    failures=1
  elif ! grep -qE "$3" "$work/log"; then
    echo "FAIL $1: found as something else than '$3':"
    tail -n 20 "$work/log"
    failures=1
  else
    echo "PASS $1"
  fi
}

broken() { # WHAT FILE SED PATTERN: a change of one file
  rm -rf "$work/wrong"
  cp -r "$work/right" "$work/wrong"
  sed -E "$3" "$work/right/$2.$target.ptx" >"$work/wrong/$2.$target.ptx"
  if cmp -s "$work/right/$2.$target.ptx" "$work/wrong/$2.$target.ptx"; then
    echo "FAIL $1: nothing to change"
    failures=1
    return
  fi
  expect_found "$1" "$work/wrong" "$4"
}

bytes='(coded|second|total|residual|out|in|large|b) differs: codec'
broken "the rounding of a product" decode 's/mul\.rn\.f32/mul.rz.f32/' "$bytes"
broken "the rounding of a scale" sum 's/cvt\.rn\.f32\.f64/cvt.rz.f32.f64/' "$bytes"
broken "an index" plain 's/setp\.ge\.u64/setp.gt.u64/' 'outside of GPU memory'
broken "an offset" decode 's/(st\.global\.f32.*)\+1024\]/\1+1026]/' 'is not a multiple of 4'
broken "a barrier of a block" encode '/bar\.sync/d' 'a race with thread|never written'
broken "a barrier of a warp" encode '/bar\.warp\.sync/d' 'a race with thread|never written'
broken "a barrier that some pass by" sum 's/bar\.sync/@%p1 &/' 'never written|has ended|waits?'
broken "an atomic operation" encode 's/atom\.global\.max\.u32/atom.global.min.u32/' "$bytes"
# shellcheck disable=SC2016  # not the shell's $
broken "a kernel without a case" plain '$s/$/.visible .entry slimpi_new() { ret; }/' \
  "plain.$target.ptx: slimpi_new"
broken "an instruction that is not known" plain 's/add\.rn\.f32/add.strange.f32/' \
  "does not know 'add.strange.f32'"
# nvcc leaves the rounding of what ptxas may contract unsaid.
NVCC_FLAGS=$(echo "$NVCC_FLAGS" | sed 's/-fmad=false//') make_ptx "$target" "$work/fused"
expect_found "contraction" "$work/fused" "does not know '(add|mul|sub).f32'"
exit $failures
