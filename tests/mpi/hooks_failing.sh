#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Hooks that cannot be used or fail: an MPI error with one text on every rank, never a hang or a
# crash, and the calls after it are right.
. "$top_srcdir/tests/helper/mpi.sh"
: "${MPICC:=mpicc}"
need "$MPICC"
program=$top_builddir/tests/mpi/hooks
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1

# run HOOK: five calls on three ranks; errors.txt gets what each of them was.
run() {
  SLIMPI_ALGORITHM="hook:$work/$1.so" under 3 "$program" errors 20001 >errors.txt 2>stderr.txt ||
    { fail "$1: exit status $?"; cat errors.txt stderr.txt; }
}
# says LINES... : the hook's five calls went like this.
says() {
  what=$1
  shift
  printf '%s\n' "$@" >wanted.txt
  sed 's/ *$//' errors.txt >got.txt
  same got.txt wanted.txt "$what"
}
# refused HOOK WHY: all calls fail on all ranks, because of this.
refused() {
  run "$1"
  text="3 of 3 ranks: slimpi: SLIMPI_ALGORITHM=hook:$work/$1.so cannot be used: $2 (rank 0)"
  says "$1 is refused: $2" "call 1: $text" "call 2: $text" "call 3: $text" "call 4: $text" \
    "call 5: $text"
}
# fails_once HOOK "WHAT CALL RANK" WHY: that call fails on all ranks, the others are right.
fails_once() {
  HOOK_FAILS=$2 run "$1"
  at=$(echo "$2" | cut -d ' ' -f 2)
  rank=$(echo "$2" | cut -d ' ' -f 3)
  set -- "$1" "$2" "3 of 3 ranks: slimpi: hook:$work/$1.so: $3 (rank $rank)"
  for call in 1 2 3 4 5; do
    if [ "$call" = "$at" ]; then echo "call $call: $3"; else echo "call $call: 0 of 3 ranks:"; fi
  done >once.txt
  sed 's/ *$//' errors.txt >got.txt
  same got.txt once.txt "$1: $2 fails on all ranks, and nothing else does"
  expect "$(grep -c "cannot be used\|hook:" stderr.txt)" 1 "$2: one line says so"
}

refused missing "$work/missing.so: cannot open shared object file: No such file or directory"
echo "not a library" >text.so
refused text "$work/text.so: file too short"
hook nosymbol failing -DNO_SYMBOL
refused nosymbol "it does not export the symbol slimpi_hook"
speaks="this slimpi has version 1 of slimpi.h's hook ABI; build it with this slimpi's header"
hook newer failing -DABI=2
refused newer "it has version 2, and $speaks"
hook smaller failing -DSIZE=24
size=$(printf '#include <stdio.h>\n#include "slimpi.h"\nint main(void) {\n%s\n}\n' \
  'printf("%zu\n", sizeof(struct slimpi_hook_t));' >size.c &&
  "$MPICC" -I"$top_srcdir/include" -o size size.c && ./size)
refused smaller "its slimpi_hook_t has 24 bytes, not $size; $speaks"
hook function failing -DFUNCTION
refused function "slimpi_hook is not a struct slimpi_hook_t"
hook tiny failing -DTINY
refused tiny "slimpi_hook is not a struct slimpi_hook_t"
hook kind failing -DKIND=3
refused kind "kind 3 is neither SLIMPI_HOOK_CODEC nor SLIMPI_HOOK_STRATEGY"
hook flags failing -DFLAGS=4
refused flags "flags 4 are not for this kind of hook"
hook nodecode failing -DNO_DECODE
refused nodecode "its function decode is NULL"

hook codec failing
fails_once codec "encode 3 1" "encode failed with 7 in call 3: told to fail in encode"
fails_once codec "encode 1 0" "encode failed with 7 in call 1: told to fail in encode"
fails_once codec "decode 4 2" "decode failed with 9 in call 4: told to fail in decode"
fails_once codec "bound 2 1" \
  "bound(1000) is 4000 bytes, but encode says that it wrote 5000 in call 2"
fails_once codec "beyond 2 1" "bound(1000) is 4000 bytes, but encode wrote beyond them in call 2"

hook strategy failing -DKIND=SLIMPI_HOOK_STRATEGY
export HOOK_ANY_SUM=1
fails_once strategy "prepare 2 1" "prepare failed with 10 in call 2: told to fail in prepare"
fails_once strategy "allreduce 5 2" "allreduce failed with 11 in call 5: told to fail in allreduce"
unset HOOK_ANY_SUM

# open fails on one rank: no call is made, so each one asks again.
HOOK_FAILS="open 0 1" run codec
text="3 of 3 ranks: slimpi: hook:$work/codec.so: open failed with 13 in call 0: told to fail in"
text="$text open (rank 1)"
says "open fails on all ranks" "call 1: $text" "call 2: $text" "call 3: $text" "call 4: $text" \
  "call 5: $text"

# The ranks do not see the same file: each runs in a directory of its own.
cat >apart.sh <<'END'
#!/bin/sh
cd "rank${PMI_RANK:-$OMPI_COMM_WORLD_RANK}" && exec "$@"
END
chmod +x apart.sh
mkdir rank0 rank1 rank2
path=/proc/self/cwd/hook.so
# apart RANK FILE WHY: rank RANK has another file, or none.
apart() {
  for rank in 0 1 2; do cp codec.so "rank$rank/hook.so"; done
  if [ -n "$2" ]; then cp "$2" "rank$1/hook.so"; else rm "rank$1/hook.so"; fi
  SLIMPI_ALGORITHM=hook:$path under 3 ./apart.sh "$program" errors 20001 >errors.txt 2>stderr.txt ||
    fail "rank $1 apart: exit status $?"
  expect "$(head -n 1 errors.txt)" \
    "call 1: 3 of 3 ranks: slimpi: SLIMPI_ALGORITHM=hook:$path cannot be used: $3" \
    "rank $1 has another file"
}
apart 2 "" "$path: cannot open shared object file: No such file or directory (rank 2)"
apart 1 strategy.so "it is a codec on some ranks and a strategy on others"
hook othername failing -DNAME='"other"'
apart 0 othername.so \
  "its name, max_piece or bound differs between ranks; the file must be the same on every node"

# Without an error handler of the program's own the job ends, and the line is there.
if SLIMPI_ALGORITHM=hook:/no/such.so under 2 "$program" exact 1000 >/dev/null 2>stderr.txt; then
  fail "MPI_ERRORS_ARE_FATAL ends the job"
else
  holds "the line before the job ends" \
    grep -q "error: SLIMPI_ALGORITHM=hook:/no/such.so cannot be used: " stderr.txt
fi
