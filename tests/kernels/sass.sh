#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Checks the machine code that nvcc made of the kernels, as the plugin has it: no local memory,
# bounded registers, and loads that are issued together where a GPU would otherwise wait for each.
# Skips (77) without the CUDA toolkit's disassembler, which tools/check takes from PyPI.
set -eu
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
if [ -z "${NVCC:-}" ]; then
  echo "SKIP nvcc was not found"
  exit 77
fi
PATH=$PATH:$(dirname "$NVCC")
for tools in "$top_builddir"/cuda-tools/lib/python3*/site-packages/nvidia/cu*/bin; do
  [ ! -d "$tools" ] || PATH=$PATH:$(realpath "$tools")
done
if ! command -v nvdisasm >/dev/null || ! command -v cuobjdump >/dev/null; then
  echo "SKIP nvdisasm or cuobjdump was not found"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
images=$(realpath "$top_builddir/kernels/cuda")
for kernels in encode sum decode packed plain; do
  (cd "$work" && cuobjdump --extract-elf all "$images/$kernels.fatbin" >/dev/null)
done
for code in "$work"/*.cubin; do
  nvdisasm --print-code "$code" >"${code%.cubin}.sass"
done
cd "$work"
python3 "$top_srcdir/tests/helper/python/sass.py" ./*.sass
