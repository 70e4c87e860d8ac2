#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Hooks that cannot be used or fail: an MPI error with one text on every rank, never a hang or a
# crash, and the calls after it are right.
. "$top_srcdir/tests/helper/scripts/mpi.sh"
. "$top_srcdir/tests/helper/scripts/rows.sh"
: "${MPICC:=mpicc}"
need "$MPICC"
export SLIMPI_MIN_SIZE=0 SLIMPI_RANKS_PER_NODE=1
echo "not a library" >text.so
printf '\nalgorithm = hook:/no/such.so\n' >conf
printf '\n* * * hook:/no/such.so *\n' >rules
hook nosymbol failing -DNO_SYMBOL
hook newer failing -DABI=2
hook smaller failing -DSIZE=24
hook function failing -DFUNCTION
hook tiny failing -DTINY
hook kind failing -DKIND=3
hook flags failing -DFLAGS=4
hook nodecode failing -DNO_DECODE
hook codec failing
hook strategy failing -DKIND=SLIMPI_HOOK_STRATEGY
hook othername failing -DNAME='"other"'
size=$(printf '#include <stdio.h>\n#include "slimpi.h"\nint main(void) {\n%s\n}\n' \
  'printf("%zu\n", sizeof(struct slimpi_hook_t));' >size.c &&
  "$MPICC" -I"$top_srcdir/include" -o size size.c && ./size)
speaks="this slimpi has version 1 of slimpi.h's hook ABI. build it with this slimpi's header"
hook=algorithm=hook:$work

# The program makes five calls, and prints what each of them was. All calls fail on all ranks,
# because of rank 0.
all="out 5 ^call [1-5]: 3 of 3 ranks: slimpi: SLIMPI_ALGORITHM=hook:$work/[a-z]*.so cannot be used:"
rows <<END
missing            | 3 | $hook/missing.so | hooks errors 20001 \
  | $all $work/missing.so: cannot open shared object file: No such file or directory (rank 0)
a text             | 3 | $hook/text.so | hooks errors 20001 \
  | $all $work/text.so: file too short (rank 0)
without the symbol | 3 | $hook/nosymbol.so | hooks errors 20001 \
  | $all it does not export the symbol slimpi_hook (rank 0)
newer              | 3 | $hook/newer.so | hooks errors 20001 \
  | $all it has version 2, and $speaks (rank 0)
smaller            | 3 | $hook/smaller.so | hooks errors 20001 \
  | $all its slimpi_hook_t has 24 bytes, not $size. $speaks (rank 0)
a function         | 3 | $hook/function.so | hooks errors 20001 \
  | $all slimpi_hook is not a struct slimpi_hook_t (rank 0)
tiny               | 3 | $hook/tiny.so | hooks errors 20001 \
  | $all slimpi_hook is not a struct slimpi_hook_t (rank 0)
an unknown kind    | 3 | $hook/kind.so | hooks errors 20001 \
  | $all kind 3 is neither SLIMPI_HOOK_CODEC nor SLIMPI_HOOK_STRATEGY (rank 0)
unknown flags      | 3 | $hook/flags.so | hooks errors 20001 \
  | $all flags 4 are not for this kind of hook (rank 0)
no decode          | 3 | $hook/nodecode.so | hooks errors 20001 \
  | $all its function decode is NULL (rank 0)
END

# One call fails on all ranks, the others are right, and one line says so. If open fails on one
# rank, no call is made, so each one asks again.
codec="3 of 3 ranks: slimpi: hook:$work/codec.so:" strategy="${codec%codec.so:}strategy.so:"
rows 'err 1 ^.*\(cannot be used\|hook:\).*' <<END
encode in call 3             | 3 | $hook/codec.so HOOK_FAILS="encode 3 1" | hooks errors 20001 \
  | out 4 0 of 3 ranks; \
    out 1 ^call 3: $codec encode failed with 7 in call 3: told to fail in encode (rank 1)
encode in call 1             | 3 | $hook/codec.so HOOK_FAILS="encode 1 0" | hooks errors 20001 \
  | out 4 0 of 3 ranks; \
    out 1 ^call 1: $codec encode failed with 7 in call 1: told to fail in encode (rank 0)
decode                       | 3 | $hook/codec.so HOOK_FAILS="decode 4 2" | hooks errors 20001 \
  | out 4 0 of 3 ranks; \
    out 1 ^call 4: $codec decode failed with 9 in call 4: told to fail in decode (rank 2)
more than its bound, it says | 3 | $hook/codec.so HOOK_FAILS="bound 2 1" | hooks errors 20001 \
  | out 4 0 of 3 ranks; out 1 ^call 2: $codec bound(1000) is 4000 bytes, but encode says that it \
    wrote 5000 in call 2 (rank 1)
more than its bound          | 3 | $hook/codec.so HOOK_FAILS="beyond 2 1" | hooks errors 20001 \
  | out 4 0 of 3 ranks; out 1 ^call 2: $codec bound(1000) is 4000 bytes, but encode wrote beyond \
    them in call 2 (rank 1)
prepare                      | 3 | $hook/strategy.so HOOK_ANY_SUM=1 HOOK_FAILS="prepare 2 1" \
  | hooks errors 20001 | out 4 0 of 3 ranks; out 1 ^call 2: $strategy prepare failed with 10 in \
    call 2: told to fail in prepare (rank 1)
allreduce                    | 3 | $hook/strategy.so HOOK_ANY_SUM=1 HOOK_FAILS="allreduce 5 2" \
  | hooks errors 20001 | out 4 0 of 3 ranks; out 1 ^call 5: $strategy allreduce failed with 11 in \
    call 5: told to fail in allreduce (rank 2)
END
rows <<END
open on one rank | 3 | $hook/codec.so HOOK_FAILS="open 0 1" | hooks errors 20001 \
  | out 5 $codec open failed with 13 in call 0: told to fail in open (rank 1)
# Without an error handler of the program's own the job ends, and the line is there.
errors are fatal | 2 | algorithm=hook:/no/such.so | hooks exact 1000 \
  | fails; err 1+ error: SLIMPI_ALGORITHM=hook:/no/such.so cannot be used:
# The error names what the user wrote, and where.
in a file        | 2 | config=$work/conf | hooks exact 1000 \
  | fails; err 1+ error: $work/conf:2: algorithm=hook:/no/such.so cannot be used:
in the rules     | 2 | rules=$work/rules | hooks exact 1000 \
  | fails; err 1+ error: $work/rules:2: . . . hook:/no/such.so .: hook:/no/such.so cannot be used:
END

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
  rows <<END
rank $1 has another file | 3 | algorithm=hook:$path \
  | ./apart.sh "$top_builddir/tests/mpi/values/hooks" errors 20001 | out 1 ^call 1: 3 of 3 ranks: \
    slimpi: SLIMPI_ALGORITHM=hook:$path cannot be used: $3
END
}
apart 2 "" "$path: cannot open shared object file: No such file or directory (rank 2)"
apart 1 strategy.so "it is a codec on some ranks and a strategy on others"
apart 0 othername.so \
  "its name, max_piece or bound differs between ranks. the file must be the same on every node"
