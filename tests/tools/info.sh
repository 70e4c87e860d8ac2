#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# slimpi-info: what it lists, as text and as JSON, and what it says of bad options.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
info=$top_builddir/tools/slimpi-info
for name in $(env | sed -n 's/^\(SLIMPI_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done

# slimpi-info lists all of the table of options, and nothing else.
options=$top_srcdir/src/options/options.def
table=$(
  sed -n 's/^SLIMPI_OPTION(\([a-z_0-9]*\),.*/\1/p' "$options"
  sed -n '/^SLIMPI_OPTION($/{n;s/^ *\([a-z_0-9]*\),.*/\1/p;}' "$options"
)
table=$(echo "$table" | LC_ALL=C sort)
variables=$(echo "$table" | sed 's/.*/SLIMPI_\U&/')
holds "the table is read" test "$(echo "$table" | wc -l)" -ge 28
expect "$("$info" --options | cut -f1 | LC_ALL=C sort)" "$table" "--options lists the table"
expect "$("$info" -c | sed -n 's/^  \(SLIMPI_[A-Z_]*\) .*/\1/p' | LC_ALL=C sort)" "$variables" \
  "-c lists the table"
expect "$("$info" -cf | sed -n 's/^# \([a-z_]*\) =.*/\1/p' | LC_ALL=C sort)" \
  "$(echo "$table" | grep -vx config)" "-cf lists the table, but for the file's own name"
"$info" -cf | sed 's/^# \([a-z_]* =\)/\1/' >uncommented
expect "$(SLIMPI_CONFIG="$work/uncommented" "$info" -c 2>&1 | grep -c ' file ')" \
  "$(($(echo "$table" | wc -l) - 1))" "-cf without its comment signs is a file of options"
expect "$("$info" --mdoc | sed -n 's/^\.It Ev \(SLIMPI_[A-Z_]*\) .*/\1/p' | LC_ALL=C sort)" \
  "$variables" "--mdoc lists the table"

# slimpi-info lists all of the table of bypass reasons.
reasons=$(sed -n '/^SLIMPI_BYPASS_REASON($/{N;s/\n *//;}
  s/^SLIMPI_BYPASS_REASON([a-z_]*, "\([a-z_]*\)".*/\1/p' \
  "$top_srcdir/src/observe/bypass_reasons.def")
holds "the table of reasons is read" test "$(echo "$reasons" | wc -l)" -ge 12
expect "$("$info" --reasons | cut -f1)" "$reasons" "--reasons lists the table"
expect "$("$info" --reasons --mdoc | sed -n 's/^\.It Li //p')" "$reasons" "as mdoc"

# The list shows values and where they come from.
echo 'bits = 3
seed = 5' >options
export SLIMPI_CONFIG="$work/options" SLIMPI_SEED=7 SLIMPI_RULES=
line() { "$info" -c | sed -n "s/^  SLIMPI_$1 *//p" | tr -s ' '; }
expect "$(line BITS)" "file 3" "a value from the file"
expect "$(line SEED)" "environment 7" "a value from the environment"
expect "$(line RULES)" "environment unset" "a value that is unset"
expect "$(line BUCKET)" "default 512" "a default"
expect "$("$info" -cf | grep -A1 '^# Default: 8')" "# Default: 8; set by: file.
bits = 3" "-cf has values"
# A file that -cf writes says the same when it is read back.
"$info" -cf >copy
SLIMPI_CONFIG="$work/copy" "$info" -cf 2>err | grep -v -e '^#' -e '^$' >again
grep -v -e '^#' -e '^$' copy >first
same first again "-cf can be used as SLIMPI_CONFIG"
expect "$(cat err)" "" "-cf as SLIMPI_CONFIG: no complaint"
expect "$(cat again)" "bits = 3
seed = 7" "-cf: what is set, and nothing else"
unset SLIMPI_CONFIG SLIMPI_SEED SLIMPI_RULES

# --bug has what -v has and the last report, and names neither host, user, home nor command.
cat >report.json <<'R'
{"slimpi": "0.1.0", "command": "/secret/train --key x", "hosts": ["node17", "node18"], "ranks": 4,
 "options": {"SLIMPI_RULES": "/home/somebody/rules"}}
R
export HOME=$work/home SLIMPI_REPORT=$work/report.json SLIMPI_BITS=5
mkdir -p "$HOME"
cp report.json "$HOME/here.json"
SLIMPI_REPORT=$HOME/here.json "$info" --bug >bug.txt 2>err || fail "--bug: $(cat err)"
for text in '^slimpi [0-9]' '^  commit  ' '^  compiler  ' '^  launcher  ' '^  system .*glibc' \
  'SLIMPI_BITS=5 (environment)' 'SLIMPI_REPORT=~/here.json' '"hosts": 2' '"ranks": 4' \
  '"SLIMPI_RULES": "~/rules"'; do
  holds "--bug: $text" grep -q "$text" bug.txt
done
for text in "$HOME" "$(hostname)" node17 secret somebody; do
  holds "--bug leaves out $text" sh -c '! grep -qwF "$1" bug.txt' sh "$text"
done
SLIMPI_REPORT=$work/none.json "$info" --bug >bug.txt 2>err || fail "--bug: $(cat err)"
holds "--bug without a report" grep -q 'SLIMPI_REPORT names a file that cannot be read' bug.txt
unset SLIMPI_REPORT SLIMPI_BITS

# No line is wider than the page, whatever is asked.
export SLIMPI_REPORT=/a/rather/long/path/for/a/report/file.json
expect "$("$info" -v -cf -t | awk 'length > 100')" "" "at most 100 columns"
unset SLIMPI_REPORT

# A bad value gives one line and exit status 2; the list is still printed.
for arguments in -c --json\ -c -cf; do
  # Several words on purpose.
  # shellcheck disable=SC2086
  SLIMPI_BITS=17 "$info" $arguments >out 2>err && status=0 || status=$?
  expect "$status" 2 "$arguments: exit status of a bad value"
  expect "$(cat err)" \
    "slimpi-info: SLIMPI_BITS=17 cannot be used; accepted: 1 to 16, packed also 2.5" \
    "$arguments: the line for a bad value"
  holds "$arguments: a bad value still lists" grep -q "512" out
done
said() { "$info" -c 2>&1 >/dev/null || :; }
expect "$(SLIMPI_RULES=/no/such/file said)" \
  "slimpi-info: SLIMPI_RULES=/no/such/file: the file cannot be read: No such file or directory; \
the option names a file with a row a line: min_size max_size communicator algorithm bits, such as: \
* 1M * off" \
  "rules that cannot be read"
expect "$(SLIMPI_BIT=4 said)" \
  "slimpi-info: warning: SLIMPI_BIT is not an option of slimpi; did you mean SLIMPI_BITS?" \
  "an unknown name is a warning"
expect "$(SLIMPI_BITZ=4 "$info" -v 2>&1 >/dev/null)" \
  "slimpi-info: warning: SLIMPI_BITZ is not an option of slimpi; did you mean SLIMPI_BITS?" \
  "-v warns too"
holds "-v: auto and off" sh -c '"$0" -v | grep -q "auto, off$"' "$info"
# Every tool says that its output could not be written.
[ ! -w /dev/full ] || while read -r tool arguments; do
  # shellcheck disable=SC2086 # words
  timeout 60 "$top_builddir/tools/slimpi-$tool" $arguments </dev/null 2>err >/dev/full &&
    status=0 || status=$?
  expect "$status: $(tail -n 1 err)" \
    "1: slimpi-$tool: standard output cannot be written: No space left on device" \
    "$tool $arguments: a full standard output"
done <<'E1'
info --help
info -v
info -c
info --options
info --mdoc
run --help
run --version
run --dry-run true
lab --help
lab --version
trace --help
trace --version
bench --help
bench --version
bench --predict
bench --size 4K --iterations 1
E1
holds "a warning is no failure" env SLIMPI_BIT=4 "$info" -c >/dev/null 2>&1

# The command line.
for arguments in --nonsense extra "-c extra"; do
  # shellcheck disable=SC2086
  "$info" $arguments >out 2>err && status=0 || status=$?
  expect "$status $(wc -l <err) $(wc -c <out)" "2 1 0" "'$arguments' is refused in one line"
done
expect "$("$info" --topolgy 2>&1)" "slimpi-info: --topolgy is not an option; did you mean \
--topology? (slimpi-info --help lists the options)" "a misspelt option"
holds "the help has no word of the parser" sh -c "! \"\$0\" --help | grep -q Excludes" "$info"
holds "the help names every option" sh -c "\"\$0\" --help | grep -q -- --topology" "$info"
holds "without arguments: version and options" \
  sh -c "\"\$0\" | grep -q '^slimpi ' && \"\$0\" | grep -q SLIMPI_CONFIG" "$info"

# Topologies of invented machines.
unset HWLOC_COMPONENTS
export HWLOC_XMLFILE="$top_srcdir/tests/topology/four_gpus.xml"
"$info" -t >topology
holds "four GPUs are listed" test "$(grep -c '0000:.*:00.0' topology)" -eq 6
holds "a GPU's nearest NIC" \
  grep -q '^  0    0000:03:00.0  0          ib0, mlx5_0  same PCI switch  GH100' topology
holds "who leads" \
  grep -q '^  The lowest rank on GPU 0 leads: .* a NIC, ib0, mlx5_0.$' topology
unset HWLOC_XMLFILE
export HWLOC_SYNTHETIC="pack:2 [numa(memory=3GiB)] core:4 pu:2"
holds "a synthetic machine" \
  sh -c "\"\$0\" -t | grep -q '2 packages, 2 NUMA nodes, 8 cores, 16 hardware threads'" "$info"

# A picture of the machine, by another program.
"$info" --svg picture.svg >out 2>err && status=0 || status=$?
expect "$status: $(cat err)" "0: " "--svg"
expect "$(grep -c "<rect .*class='NUMANode'" picture.svg)" 2 "--svg: this machine"
echo old >picture.svg
holds "--svg: a file is replaced" "$info" --svg picture.svg
holds "--svg: a file is replaced" grep -q '</svg>' picture.svg
for file in absent/x.svg .; do
  expect "$("$info" --svg $file 2>&1 | sed 's/No such.*/error/; s/Is a dir.*/error/')" \
    "slimpi-info: --svg: $file cannot be written: error" "--svg $file: one line, with the option"
done
expect "$("$info" --svg - | tail -1)" "</svg>" "--svg: standard output"
expect "$(PATH=/no "$info" --svg picture.svg 2>&1)" \
  "slimpi-info: --svg needs hwloc's lstopo, which is not in PATH; install it (Debian: hwloc-nox)" \
  "--svg: no lstopo"

# slimpi-info calls slimpi-trace for a trace.
expect "$("$info" --trace /no/a 2>&1)" \
  "slimpi-trace: /no/a cannot be read: No such file or directory" "--trace: the file is read"
cp "$info" alone
expect "$(./alone --trace a 2>&1)" "slimpi-info: --trace: $(pwd -P)/slimpi-trace \
cannot be started: No such file or directory; reinstall slimpi's commands" "--trace: not there"
for arguments in --svg --trace "--trace a --json"; do
  # shellcheck disable=SC2086
  "$info" $arguments >out 2>err && status=0 || status=$?
  expect "$status $(wc -l <err) $(wc -c <out)" "2 1 0" "'$arguments' is refused in one line"
done

# The JSON has the same facts, and Python's parser reads it.
if command -v "$PYTHON" >/dev/null; then
  "$info" --json -v -cf -t >all.json
  expect "$(report all.json topology cores)" 8 "JSON: cores"
  expect "$(report all.json topology numa_nodes | tr -d "{}[] '" | cut -d, -f3)" memory:3221225472 \
    "JSON: memory"
  expect "$("$PYTHON" -c 'import json
for row in json.load(open("all.json"))["options"]: print(row["name"])' | LC_ALL=C sort)" "$table" \
    "JSON: the table"
  holds "JSON: the version" \
    test "$("$info" -v | head -1)" = "slimpi $(report all.json version slimpi)"
fi

# A process that cannot be read: one line, exit status 1.
attach() {
  "$info" --attach "$1" >out 2>err && status=0 || status=$?
  expect "$status" 1 "--attach $1: exit status"
  expect "$(cat err; cat out)" "slimpi-info: --attach $1$2" "--attach $1: the line"
}
attach abc " cannot be used; give the process id of a rank, a whole number"
attach 0 " cannot be used; give the process id of a rank, a whole number"
attach $$ ": this process runs without slimpi"
sh -c 'echo $$' >dead
attach "$(cat dead)" ": there is no such process on this machine"

# Without slimpi-hwloc.so the topology is not known; all else works.
cp "$info" .
./slimpi-info -t >out 2>&1 && status=0 || status=$?
expect "$status" 1 "exit status without the hwloc part"
holds "the reason" grep -q 'because slimpi-hwloc.so is not installed' out
# All pages say the same about the GPUs that slimpi has run on.
"$info" -v >version.txt
holds "-v names the command for a report of a defect" grep -q 'slimpi-info --bug' version.txt
for page in README.md man/slimpi-gpu.7 CHANGELOG.md docs/DESIGN.md docs/RESULTS.md; do
  holds "$page says on what GPUs slimpi has run" \
    sh -c "tr '\n' ' ' <'$top_srcdir/$page' | grep -q 'has run on single GPUs only'"
done
if grep -q 'define WITH_CUDA 1' "$top_builddir/config.h"; then
  holds "and so does slimpi-info" \
    sh -c "tr -s '\n ' ' ' <version.txt | grep -q 'has run on single GPUs only'"
fi
