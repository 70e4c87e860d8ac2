# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# For tests that run what nvcc makes of the kernels on the fake driver: skips (77) where that is not
# possible, and makes a directory $work.
: "${top_srcdir:?is set by make check}" "${top_builddir:?is set by make check}"
if [ -z "${NVCC:-}" ]; then
  echo "SKIP nvcc was not found"
  exit 77
fi
for needed in tests/fake_driver/libcuda.so.1 tests/ptx/kernels; do
  if [ ! -e "$top_builddir/$needed" ]; then
    echo "SKIP $needed is not built: with sanitizers, or without CMocka"
    exit 77
  fi
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
libraries=$top_builddir/tests/fake_driver:$top_builddir/.libs
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"

# The GPUs that the build is for, the oldest first.
# shellcheck disable=SC2034
targets=$(echo "$NVCC_FLAGS" | grep -o 'arch=compute_[0-9]*' | sort -t_ -k2n | sed 's/arch=//')

make_ptx() { # TARGET DIRECTORY: the PTX of all kernels
  flags=$(echo "$NVCC_FLAGS" | sed 's/-gencode [^ ]*//g')
  mkdir "$2"
  for source in "$top_srcdir"/kernels/cuda/*.cu; do
    # The words of the flags.
    # shellcheck disable=SC2086
    "$NVCC" $flags -arch="$1" -I"$top_srcdir" -ptx \
      -o "$2/$(basename "$source" .cu).$1.ptx" "$source"
  done
}

run_ptx() { # DIRECTORY: all cases, interpreting the files in it
  files=$(find "$1" -name '*.ptx' | tr '\n' ':')
  FAKE_PTX=${files%:} timeout -k 5 150 "$top_builddir/tests/ptx/kernels"
}
