#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tools/packages, tools/build, tools/check and tools/quickstart: what they say and how they end, on
# a made-up build that takes no time.
. "$top_srcdir/tests/helper/mpi.sh"
unset MAKEFLAGS MFLAGS MAKELEVEL RUN_EXPENSIVE_TESTS TESTS  # of the make that runs this
tools=$top_srcdir/tools
need bash awk

ends() { # STATUS TEXT COMMAND...: it ends so, and says TEXT
  wanted=$1 text=$2 status=0
  shift 2
  "$@" >said.txt 2>&1 </dev/null || status=$?
  expect "$status" "$wanted" "$*: exit status"
  holds "$*: says '$text'" grep -q -e "$text" said.txt
}

for script in packages build check quickstart; do
  ends 0 "^usage: tools/$script" "$tools/$script" --help
  case $script in packages) status=1 ;; *) status=2 ;; esac
  ends $status "tools/$script: --wrong: not known" "$tools/$script" --wrong
done
ends 2 "wants" "$tools/quickstart" --epochs
ends 2 "mpi wants one of mpich4 mpich5 openmpi4" "$tools/check" --mpi none

# One list: the tests' packages come on top of those of the build.
"$tools/packages" --list build >build.txt
"$tools/packages" --list >all.txt
holds "the build's packages" grep -qx libmpich-dev build.txt
holds "the build does without CMocka" test "$(grep -c libcmocka-dev build.txt)" = 0
holds "the tests' packages" grep -qx libcmocka-dev all.txt
expect "$(grep -cvx '[a-z0-9.+-]*' all.txt)" 0 "names of packages are names"

# A system without apt: what is needed, by name, and nothing else happens.
mkdir bin
for command in bash env cat; do ln -s "$(command -v $command)" bin/$command; done
ends 1 "not Debian or Ubuntu" env PATH="$work/bin" bash "$tools/packages"
holds "without apt: names what is needed" grep -q libhwloc-dev said.txt

# A compiler's new warning ends a build only where --werror asks for that, as .ci/run does.
mkdir -p tree/tools
cp "$tools/build" "$tools/check" "$tools/packages" tree/tools
touch tree/Makefile.in
printf '%s\n' '#!/bin/sh' 'echo "$*" >options.txt' 'printf "all check:\n" >Makefile' >tree/configure
chmod +x tree/configure
for given in "" --werror; do
  # shellcheck disable=SC2086
  ends 0 "0 passed, 0 failed" tree/tools/check --no-install $given --directory "$work/with$given"
  expect "$(grep -o -e --enable-werror "with$given/options.txt")" "${given:+--enable-werror}" \
    "tools/check $given: what configure is given"
done
[ ! -e "$top_srcdir/.ci/run" ] ||  # a release has none
  holds "CI: --werror" grep -q 'tools/check --werror' "$top_srcdir/.ci/run"

# tools/check counts, shows what the failing tests said, and only that.
mkdir made
cat >made/Makefile <<'EOM'
all:
# `make check TESTS=` only builds them.
ifeq ($(origin TESTS)$(TESTS),command line)
check:
else
check:
	@test -z '$(TESTS)' || echo 'ran $(TESTS) $(RUN_EXPENSIVE_TESTS)' >>ran.txt
	@for line in 'PASS: one' 'PASS: two' 'FAIL: three' 'SKIP: four' 'ERROR: five' '# TOTAL: 5' \
	  '# PASS:  2' '# SKIP:  1' '# XFAIL: 0' '# FAIL:  1' '# XPASS: 0' '# ERROR: 1'; \
	  do echo "$$line"; done
	@exit $(STATUS)
endif
list-tests:
	@echo first/one.sh first/two.sh
list-expensive-tests:
	@echo second/one.sh second/two.sh second/three.sh
expensive-programs:
list-deeper-tests:
	@printf '%s\n' first/two.sh
EOM
printf '%s\n' 'SKIP: four' 'no GPU' 'FAIL: three' 'wrong sum' 'PASS: one' 'fine' \
  >made/test-suite.log
printf '#!/bin/sh\n' >made/config.status
chmod +x made/config.status
printf '%s\n' '#!/bin/sh' 'true' >tree/configure  # leaves the makefile as it is
check="tree/tools/check --no-install --directory $work/made"
# shellcheck disable=SC2086
STATUS=2 ends 1 "wrong sum" $check
expect "$(tail -n 1 said.txt)" "2 passed, 2 failed, 1 skipped" "check: last line"
expect "$(grep -c -e fine -e GPU said.txt)" 0 "check: nothing of the tests that passed"
sed -i -e 's/FAIL:  1/FAIL:  0/' -e 's/ERROR: 1/ERROR: 0/' made/Makefile
# shellcheck disable=SC2086
STATUS=0 ends 0 "PASS: one" $check some/test
expect "$(tail -n 1 said.txt)" "2 passed, 0 failed, 1 skipped" "check: last line when all is well"
expect "$(cat made/ran.txt)" "ran some/test " "check: only the named test"

# --all: both tiers at once; --minutes: all of the first, of what the second adds what fits, each
# test once, in another order on another day.
rm made/ran.txt
# shellcheck disable=SC2086
STATUS=0 ends 0 "PASS: one" $check --all
expect "$(cat made/ran.txt)" \
  "ran second/one.sh second/two.sh second/three.sh first/one.sh first/two.sh yes" "check --all"
order() { # DAY: of the tests of the second tier
  rm -f made/ran.txt
  printf '#!/bin/sh\necho %s\n' "$1" >day/date
  # shellcheck disable=SC2086
  PATH=$work/day:$PATH STATUS=0 ends 0 "PASS: one" $check --all --minutes 5 >>minutes.txt
  sed 's/^ran //; s/ yes$//' made/ran.txt | tr ' ' '\n'
}
mkdir day
printf '#!/bin/sh\necho 2\n' >day/nproc
touch day/date
chmod +x day/date day/nproc
order 2026-01-01 | grep / >one.txt
expect "$(LC_ALL=C sort one.txt | xargs)" \
  "first/two.sh second/one.sh second/three.sh second/two.sh" "--minutes: each once"
expect "$(tail -n 1 said.txt)" "6 passed, 0 failed, 3 skipped" "--minutes: counts of all"
[ "$(grep -c FAIL minutes.txt)" = 0 ] || fail "$(cat minutes.txt)"
orders=$(for day in 1 2 3 4 5 6; do order 2026-02-0$day | grep / | xargs; done | sort -u | wc -l)
holds "--minutes: the order is the day's" test "$orders" -gt 1
# shellcheck disable=SC2086
STATUS=0 ends 0 "left for another day: .*second/" $check --all --minutes 0

# --retry: what passes when it is run again is named and counted as passed.
sed -i -e 's/@exit $(STATUS)/@test -n "$(filter three five,$(TESTS))" || exit $(STATUS)/' \
  -e 's/# FAIL:  0/# FAIL:  1/' made/Makefile
# shellcheck disable=SC2086
STATUS=2 ends 0 "FLAKY: three failed" $check --retry
expect "$(tail -n 1 said.txt)" "4 passed, 0 failed, 1 skipped" "--retry: last line"
sed -i 's/@test -n .* || exit/@exit/' made/Makefile
# shellcheck disable=SC2086
STATUS=2 ends 1 "wrong sum" $check --retry
expect "$(tail -n 1 said.txt)" "2 passed, 2 failed, 1 skipped" "--retry: it fails again: last line"

# A build that fails: the compiler's words, the place of the rest, and a failing last line.
printf 'all:\n\t@echo "x.cpp:1: error: no such thing"; exit 1\n' >made/Makefile
# shellcheck disable=SC2086
ends 1 "error: no such thing" $check
holds "a failed build: where its output is" grep -q "$work/made/build.log" said.txt
expect "$(tail -n 1 said.txt)" "0 passed, 1 failed, 0 skipped" "a failed build: last line"
verdict
