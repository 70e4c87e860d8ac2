#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tests/gpu/run, as far as it goes without a GPU; and a rehearsal from a packed folder, without a
# network, on the fake driver.
. "$top_srcdir/tests/helper/mpi.sh"
need "$PYTHON"
run() { "$PYTHON" "$top_srcdir/tests/gpu/run" "$@" >out.txt 2>err.txt; }

status=0
run --list || status=$?
expect "$status" 0 "--list works anywhere"
for step in unpack build kernels costs sums-4 memcheck-kernels \
  bench-kernels end-to-end-one train-2; do
  holds "there is a step $step" grep -qx $step out.txt
done
status=0
run --nonsense || status=$?
expect "$status" 2 "an unknown option"
status=0
run --pack || status=$?
expect "$status" 2 "packing wants a configured tree"
holds "and says so" grep -q 'wants a configured tree' err.txt

if ! nvidia-smi >/dev/null 2>&1; then
  status=0
  run || status=$?
  expect "$status" 77 "without a GPU it is skipped"
  expect "$(cat err.txt)" 'tests/gpu/run: there is no GPU here, or no CUDA driver: nothing to run' \
    "and says why"
fi

# The folder as it is carried, and calls of it as on a machine that is lent for a few minutes.
fake_driver=$top_builddir/tests/fake_driver
[ -e "$fake_driver/libnccl.so.2" ] || verdict
(cd "$top_builddir" && "$PYTHON" "$top_srcdir/tests/gpu/run" --pack --local --carry "$work/carry") \
  >out.txt || fail "packing"
holds "what is carried is small: no debug information" \
  test "$(du -sk carry | cut -f 1)" -lt 16384
alone=
! unshare -rn true 2>/dev/null || alone="unshare -rn"
mkdir kept
# call LIBRARIES STATUS WHAT WORD...
call() {
  libraries=$1 wanted=$2 what=$3
  shift 3
  status=0
  # The words of a command.
  # shellcheck disable=SC2086
  OUT=$work/kept LD_LIBRARY_PATH=$libraries timeout -k 5 100 $alone "$work/carry/run" \
    --work "$work/lent" "$@" >out.txt 2>err.txt || status=$?
  expect "$status" "$wanted" "$what"
  [ "$status" = "$wanted" ] || cat out.txt err.txt
}
call "$fake_driver" 75 "a step that others need is not skipped" --seconds 0 links-self
holds "and it is said" grep -q 'unpack does not fit' out.txt
call "$fake_driver" 0 "the first call" --seconds 90 --quick links-self costs sums-1
for step in unpack build links-self costs sums-1; do
  holds "$step ran" grep -q "^passed  *$step " out.txt
done
for file in results.json results.txt logs.tar.gz; do
  holds "$file is kept" test -s kept/$file
done
holds "with what was measured" grep -q 'poll of an event' kept/results.json
holds "with the logs" sh -c 'tar -tzf kept/logs.tar.gz | grep -q logs/links-self.log'
call "$fake_driver" 0 "the next call goes on" --seconds 90 links-self sums-1 powersgd-2
holds "with what is new" grep -q "^passed  *powersgd-2 (" out.txt
expect "$(grep -c '^passed  *sums-1 (' out.txt)" 0 "and with that only"
# compute-sanitizer is not here: what comes behind its options runs without it.
mkdir bin
cat >bin/compute-sanitizer <<'END'
#!/bin/sh
[ "$1 $2 $3" = "--error-exitcode 9 --tool" ] || exit 3
shift 4
exec "$@"
END
chmod +x bin/compute-sanitizer
PATH=$work/bin:$PATH call "$fake_driver" 0 "steps of other kinds" --seconds 90 --quick \
  links-2-hosts links-shared links-refused end-to-end-one memcheck-sums-2 trace \
  resources end-to-end-10gbit
holds "the lab ran, or says that it may not" grep -q \
  -e '^passed  *end-to-end-10gbit' -e '^not allowed here end-to-end-10gbit' out.txt
holds "each kernel has its resources" grep -q '"kernel": "low_rank"' kept/results.json
# Without NCCL that test has nothing to do: it says 77, which may not pass for good here.
mkdir driver_only
cp -L "$fake_driver/libcuda.so.1" driver_only/
: >driver_only/libnccl.so.2 # which hides one that is installed
call "$work/driver_only" 1 "a step that is skipped has failed" --seconds 90 --again links-self
holds "and is named" grep -q '^failed  *links-self' out.txt
holds "with its status" grep -q '"exit": 77' kept/results.json

call "$work/driver_only" 1 "the next call" --seconds 90 --quick links-self calls-1
expect "$(sed -n 's/^[a-z]*  *\(.*\) (.*/\1/p' out.txt | tr '\n' ' ')" "calls-1 links-self " \
  "what failed comes after what is new"

# NCCL of a package of Python's is in no folder that a loader knows.
mkdir -p site/nvidia/nccl/lib only
ln -s "$(readlink -f "$fake_driver/libcuda.so.1")" only/libcuda.so.1
ln -s "$(readlink -f "$fake_driver/libcuda.so.1")" site/nvidia/nccl/lib/libnccl.so.2
export PYTHONPATH="$work/site"
call "$work/only" 0 "NCCL of a Python package is found" --seconds 90 --again links-self

# A run that is cut off has measured something.
LD_LIBRARY_PATH=$fake_driver "$top_builddir/tests/gpu/bench" --quick --json cut.json 100000 \
  >/dev/null &
turns=0
until grep -q decode_add cut.json 2>/dev/null || [ $turns -ge 300 ]; do
  sleep 0.1
  turns=$((turns + 1))
done
kill -9 $!
wait $! 2>/dev/null || :
holds "a run that is cut off leaves its rows" "$PYTHON" -c 'import json
assert json.load(open("cut.json"))[0]["kernel"] == "encode"'
verdict
