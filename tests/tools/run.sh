#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-run: what it sets, what it refuses, and what it starts.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
run=$top_builddir/tools/slimpi-run
for name in LD_PRELOAD PMI_RANK $(env | sed -n 's/^\(SLIMPI_[A-Z_]*\)=.*/\1/p'); do
  unset "$name"
done
[ -e "$library" ] || skip "$library is not built"

# refused STATUS TEXT ARGUMENT...: one line on stderr, nothing on stdout
refused() {
  wanted=$1 text=$2
  shift 2
  "$run" "$@" >out 2>err && status=0 || status=$?
  expect "$status: $(cat err)$(cat out)" "$wanted: slimpi-run: $text" "refused: $*"
}

# Prints the environment of the program that slimpi-run starts.
started() { "$run" "$@" /usr/bin/env | grep -e '^SLIMPI_' -e '^LD_PRELOAD=' | LC_ALL=C sort; }
expect "$(started)" "LD_PRELOAD=$library" "preloads the library"
expect "$(started --bits 4 --min-size=1M --ranks_per_node 1 --report=)" "LD_PRELOAD=$library
SLIMPI_BITS=4
SLIMPI_MIN_SIZE=1M
SLIMPI_RANKS_PER_NODE=1
SLIMPI_REPORT=" "sets options, with - or _, and empty values"
expect "$(SLIMPI_BITS=2 SLIMPI_SEED=3 started --bits 4 --bits 5)" "LD_PRELOAD=$library
SLIMPI_BITS=5
SLIMPI_SEED=3" "the last value wins, other variables stay"
expect "$(started --estimate --bits 4 | tail -n 1)" "SLIMPI_ESTIMATE=stderr" \
  "--estimate takes no word behind it"
expect "$(started --estimate=e.json | tail -n 1)" "SLIMPI_ESTIMATE=e.json" "--estimate=FILE"
expect "$(started --compare | tail -n 2)" "SLIMPI_REPORT=stderr
SLIMPI_VERIFY=1" "--compare verifies and reports"
for verify in "SLIMPI_VERIFY=5 --compare" "--compare --verify 5"; do
  # shellcheck disable=SC2086
  expect "$(env SLIMPI_REPORT=r.json ${verify%--compare*} "$run" --compare ${verify#*--compare} \
    /usr/bin/env | grep -e REPORT -e VERIFY | LC_ALL=C sort)" "SLIMPI_REPORT=r.json
SLIMPI_VERIFY=5" "--compare keeps what is set: $verify"
done
echo 'report = stdout' >options
expect "$(started --compare --config options | grep REPORT)" "" "--compare keeps a file's report"
echo 'bits = 4' >options
expect "$(started --config options | tail -1)" "SLIMPI_CONFIG=options" "takes a file of options"

# slimpi-run adds itself behind what LD_PRELOAD holds, once, whatever name the library has there.
ln -s "$library" link.so
preloaded() { "$run" --dry-run true | sed -n 's/^env LD_PRELOAD=\(.*\) \\$/\1/p'; }
expect "$(LD_PRELOAD=/no/a.so preloaded 2>/dev/null)" "/no/a.so:$library" "appends"
for before in "$library" "/no/a.so:$library" "$library /no/a.so" "$work/link.so"; do
  expect "$(LD_PRELOAD=$before preloaded 2>/dev/null | tr -d "'")" "$before" "not twice: $before"
done

# The command line.
expect "$("$run" --bits 4 -- echo --bits 5)" "--bits 5" "-- ends the options"
expect "$("$run" echo --bits 5)" "--bits 5" "the program's own options are its own"
expect "$("$run" --bits 4 --dry-run echo 'a b' "it's" '')" "env LD_PRELOAD=$library \\
  SLIMPI_BITS=4 \\
  echo 'a b' 'it'\\''s' ''" "--dry-run prints what a shell can read"
"$run" --dry-run sh -c 'exit 3'
expect "$(sh -c "$("$run" --bits 4 --dry-run sh -c 'echo "$SLIMPI_BITS $LD_PRELOAD"')")" \
  "4 $library" "a shell does the same with the output of --dry-run"
"$run" sh -c 'exit 3' && status=0 || status=$?
expect "$status" 3 "the program's exit status is its own"
expect "$("$run" --version)" \
  "slimpi-run (slimpi) $("$run" --version | grep -o '[0-9.]*$')" "--version"
expect "$("$run" --help | sed -n 's/^  --\([a-z-]*\)[[ ].*/\1/p' |
  grep -v -e compare -e stand-in -e torch -e dry-run -e version | tr - _ |
  LC_ALL=C sort)" \
  "$("$top_builddir/tools/slimpi-info" --options | cut -f1 | LC_ALL=C sort)" \
  "--help lists the table"
holds "--help: values have names" sh -c '"$0" --help | grep -q "^  --rules FILE  "' "$run"
expect "$("$run" --help | awk 'length > 100')" "" "--help: at most 100 columns"

# Mistakes are refused.
refused 2 "--bits=17 cannot be used; accepted: 1 to 16, packed also 2.5" --bits 17 true
refused 2 "--min-size=x cannot be used; accepted: 0 or more (K, M, G allowed)" --min-size=x true
refused 2 "--log=inf cannot be used; accepted: error, warn, info, debug; did you mean info?" \
  --log inf true
refused 2 "--torch-sums=sum cannot be used; accepted: gradients, all" --torch --torch-sums sum true
refused 2 "--torch-sums needs a value; accepted: gradients, all" --torch --torch-sums
refused 2 "--torch-weights=17 cannot be used; accepted: 1 to 16, packed also 2.5" --torch \
  --torch-weights 17 true
refused 2 "--torch-weights needs --torch, whose weights it is for" --torch-weights 8 true
refused 2 "--torch-sums needs --torch, whose sums it is for" --torch-sums all true
hook=hook:/no/hook.so
refused 2 "SLIMPI_ALGORITHM=$hook cannot be used: No such file or directory" --algorithm $hook true
echo "* * * $hook *" >rules
refused 2 "rules:1: * * * $hook *: $hook cannot be used: No such file or directory" \
  --rules rules true
expect "$(SLIMPI_BITZ=4 "$run" --dry-run true 2>&1 >/dev/null)" \
  "slimpi-run: warning: SLIMPI_BITZ is not an option of slimpi; did you mean SLIMPI_BITS?" \
  "--dry-run warns of unknown names"
refused 2 "--bit is not an option of slimpi; did you mean --bits?" --bit 4 true
refused 2 "--minsize is not an option of slimpi; did you mean --min-size?" --minsize=4 true
refused 2 "--fubar is not an option of slimpi (slimpi-run --help lists them)" --fubar true
refused 2 "-n belongs to the launcher: mpiexec -n ... slimpi-run PROGRAM" -n 4 true
refused 2 "--bits needs a value; accepted: 1 to 16, packed also 2.5" --bits
refused 2 "--dry-run takes no value" --dry-run=1 true
refused 2 "--compare takes no value" --compare=1 true
refused 2 "--compare and --estimate cannot be used together; use one after the other" --compare \
  --estimate true
refused 2 "--compare has nothing to compare: SLIMPI_ALGORITHM is off" --compare --algorithm off true
refused 2 "--compare has nothing to compare: SLIMPI_VERIFY is 0" --verify 0 --compare true
echo 'estimate = stderr' >estimate.conf
refused 2 "--compare has nothing to compare: SLIMPI_ESTIMATE is set" --compare \
  --config estimate.conf true
refused 2 "no program given; use slimpi-run [OPTION VALUE ...] PROGRAM" --bits 4
refused 2 "no program given; use slimpi-run [OPTION VALUE ...] PROGRAM" --
refused 2 "SLIMPI_CONFIG=/no/file: the file cannot be read: No such file or directory" \
  --config /no/file true
export SLIMPI_SEED=x
refused 2 "SLIMPI_SEED=x cannot be used; accepted: 0 or more, below 2^63" true
expect "$("$run" --seed 3 echo fine)" fine "an option replaces a bad variable"
unset SLIMPI_SEED
start=$(date +%s)
PMI_RANK=1 refused 2 "--bits=17 cannot be used; accepted: 1 to 16, packed also 2.5" --bits 17 true
holds "other ranks let the first one speak" test $(($(date +%s) - start)) -ge 1
# Ranks of one host fail, and their launcher ends no rank because of another.
for bits in "17 17 17" "17 18 17"; do
  rank=0
  for value in $bits; do
    PMI_RANK=$rank "$run" --bits "$value" true 2>"err$rank" &
    rank=$((rank + 1))
  done
  wait
  expect "$(cat err0 err1 err2 | wc -l)" "$(echo "$bits" | tr ' ' '\n' | sort -u | wc -l)" \
    "$bits: every mistake is said once"
done

# A program that cannot be started gives the exit status that a shell gives.
refused 127 "no-such-program: not found in PATH" no-such-program
refused 127 "./no-such-program: not found" ./no-such-program
refused 126 "/: Is a directory" /
echo 'echo plain script "$@"' >own-script
refused 126 "./own-script: Permission denied" ./own-script
PATH=$work:$PATH refused 126 "own-script: Permission denied" own-script
chmod +x own-script
expect "$("$run" ./own-script a)" "plain script a" "a script without #!"
expect "$(PATH=$work:$PATH "$run" own-script b)" "plain script b" "a program found through PATH"

# Programs that a preload cannot reach are started, with a warning from the first rank.
warned() {
  "$run" "./$1" >out 2>err && status=0 || status=$?
  expect "$(head -n 1 err)" \
    "slimpi-run: warning: ./$1 $2, so slimpi cannot be preloaded into it" "$2"
}
echo 'int main(void) { return 7; }' >seven.c
if ${CC:-cc} -static -o static seven.c 2>/dev/null; then
  warned static "is statically linked"
  expect "$status" 7 "a static program is started"
  expect "$(PMI_RANK=1 "$run" ./static 2>&1)" "" "one rank warns"
  expect "$(RANK=1 WORLD_SIZE=2 "$run" ./static 2>&1)" "" "one rank of torchrun warns"
  export TORCHELASTIC_RUN_ID=a
  expect "$(PMI_RANK=0 RANK=1 "$run" ./static 2>&1)" "" "one rank of torchrun in a job warns"
  PMI_RANK=1 RANK=0 warned static "is statically linked"
  unset TORCHELASTIC_RUN_ID
  RANK=1 warned static "is statically linked" # any program's variable
fi
if ${CC:-cc} -m32 -o other seven.c 2>/dev/null; then
  warned other "is built for another architecture than libslimpi.so"
else
  cp "$(command -v ls)" other
  printf '\267' | dd of=other bs=1 seek=18 conv=notrunc 2>/dev/null
  "$run" ./other >out 2>err || :
  holds "another architecture" grep -q "is built for another architecture" err
fi
expect "$("$run" true 2>&1)" "" "no warning for a dynamic program"
# Programs whose dynamic linker is that of an older glibc, or of another C library, such as musl's.
"$PYTHON" - /bin/true <<'END' || fail "programs with another C library"
import os, struct, sys
program = bytearray(open(sys.argv[1], "rb").read())
start, = struct.unpack_from("<Q", program, 32)
size, count = struct.unpack_from("<HH", program, 54)
for at in range(start, start + count * size, size):
    if struct.unpack_from("<I", program, at)[0] == 3:  # PT_INTERP
        where, = struct.unpack_from("<Q", program, at + 8)
        linker = program[where:program.index(0, where)].decode()
for name, version in ("old", b"GLIBC_2.34"), ("foreign", b"GLIBC_PRIVATE"):
    program[where:where + len(name) + 6] = b"./ld-" + name.encode() + b"\0"
    open(name, "wb").write(program)
    bytes = open(linker, "rb").read().replace(version, b"GLIBC_2.11".ljust(len(version)))
    open("ld-" + name, "wb").write(bytes)
    for file in name, "ld-" + name: os.chmod(file, 0o755)
END
warned old "has a glibc before 2.34"
warned foreign "has another C library than glibc"
for program in old foreign; do
  expect "$("$run" --dry-run ./$program 2>/dev/null | grep -c LD_PRELOAD)" 0 "no LD_PRELOAD"
done

# Installed somewhere else, with and without the library.
from_bin=$(realpath -m --relative-to="${bindir:-/usr/local/bin}" "${libdir:-/usr/local/lib}")
mkdir -p prefix/bin prefix/tools
cp "$run" prefix/bin
expect "$(prefix/bin/slimpi-run true 2>&1)" \
  "slimpi-run: libslimpi.so is not where this slimpi-run expects it; reinstall both" "no library"
mkdir -p "prefix/bin/$from_bin"
cp -L "$library" "prefix/bin/$from_bin/"
installed=$(realpath "prefix/bin/$from_bin")/libslimpi.so
expect "$(prefix/bin/slimpi-run --dry-run true | head -1)" "env LD_PRELOAD=$installed \\" "moved"
# A library like that of the wheel, which is linked to an older glibc.
sed -i 's/GLIBC_2\.34/GLIBC_2.27/' "$installed"
expect "$(prefix/bin/slimpi-run --dry-run ./old 2>&1 | head -1)" "env LD_PRELOAD=$installed \\" \
  "a library for an older glibc"
ln -s prefix/bin/slimpi-run linked-run
expect "$(./linked-run --dry-run true | head -1)" "env LD_PRELOAD=$installed \\" \
  "through a symbolic link"
mv prefix 'a b'
expect "$('a b/bin/slimpi-run' true 2>&1 | grep -c 'a blank or a colon')" 1 \
  "a directory with a blank"
# A program without MPI, of which something was asked: one line at its end, from this program only.
silent="nothing to report: no MPI library is in "
told() { # COUNT WHAT ARGUMENT...
  wanted=$1 what=$2
  shift 2
  timeout -k 5 60 "$run" "$@" >out 2>err || fail "$what: exit status $?"
  expect "$(grep -c "$silent" err)" "$wanted" "no MPI: $what" || cat err
}
work_done='x=0; while [ $x -lt 20000 ]; do x=$((x + 1)); done'
told 1 "a report" --report stderr bash -c "$work_done"
expect "$(grep -c 'is in bash at its end.*shared MPI that stays loaded$' err)" 1 "its name"
told 1 "a Python program" --report stderr "$PYTHON" -c 'sum(range(1000000))'
expect "$(grep -c 'slimpi-run --torch' err)" 1 "no MPI: --torch is for Python"
timeout -k 5 60 "$run" --torch --report stderr "$PYTHON" -c 'sum(range(1000000))' >out 2>err || true
expect "$(grep -c 'nothing to report: .* made no sums, as a driver whose workers are' err)" 1 \
  "no sums with --torch: a driver"
told 1 "an estimate" --estimate bash -c "$work_done"
told 1 "lines" --log info bash -c "$work_done"
told 0 "nothing was asked" bash -c "$work_done"
told 1 "its children say nothing" --report stderr bash -c "$work_done; uname; /bin/true"
told 0 "its child did the work" --report stderr bash -c "bash -c '$work_done'; true"
expect "$(PMI_RANK=1 "$run" --report stderr bash -c "$work_done" 2>&1)" "" \
  "no MPI: rank 1 is silent"
