# SPDX-License-Identifier: BSD-3-Clause
# THE runner of tests that are tables of MPI jobs. Behind helper/scripts/mpi.sh,
#   rows [CHECKS] <<END
#   name | ranks | options | command | expected
#   END
# runs a job under the library for each line, and names the line if something is not as expected
# there or by the CHECKS, which hold for every line.
# The shell expands $variables of the table and joins lines that end with a backslash. Blank lines
# and lines that begin with # are for the reader. TEST_ROW=TEXT in the environment runs only rows
# that have TEXT in their name, while code around the tables runs all the same. When rows returns,
# out.txt, err.txt and report.json are those of the last job.
#
#   name      what the row shows. A row without a name is called by its options and command. A name
#             that begins with + is of the second tier
#   ranks     4/2 is four ranks, two of them a node, as by SLIMPI_RANKS_PER_NODE=2
#   options   bits=4 is SLIMPI_BITS=4, and HOOK_FAILS="encode 2 1" a variable of the environment.
#             1?bits=4 holds on rank 1 alone. Others are as the script has exported them
#   command   a program of tests/mpi, or of tests by its path, such as gpu/sums; else any command.
#             Quote as in the shell. Steps of calls/steps need no more than their first word,
#             init, and not even this where the first step has a colon: sum:100000 dup sum:10 is
#             steps init sum:100000 dup sum:10 finalize
#   expected  checks with a semicolon between them; none: the job ends well
#             (a job that ends with status 77 skips the test)
#     refused PATTERN    the job fails by itself, and slimpi prints one line, which matches
#     fails              the job fails by itself; as the first check
#     ends               the job ends by itself, well or not; as the first check
#     out COUNT PATTERN  so many matches in standard output; 3+: three or more
#     err COUNT PATTERN  the same of standard error
#     quiet              standard error is empty
#     right              every sum is near the right one, and the same on all ranks
#     same FILE          standard output has the lines of FILE, which the first row that names FILE
#                        writes, in any order
#     as plain           standard output is that of the command without the library
#     compressed=2       a value of the report, by its path, as in memory.state=80, or by its name
#                        in calls, calls.passed or buffers. Also < > <= >=, and another value:
#                        bytes.sent<bytes.plain
#     counts [NAME]      the command prints lines of a name and its value in the report

rows() { # [CHECKS]
  row_common=${1-}
  set -f # words of the table are no patterns of files
  while IFS='|' read -r row row_ranks row_options row_command row_checks; do
    # shellcheck disable=SC2086 # words
    set -- $row
    row=$*
    case $row/$row_command in
      \#* | /) continue ;;
      +*)
        expensive || continue
        row=${row#+}
        row=${row# }
        ;;
    esac
    # shellcheck disable=SC2086
    set -- $row_ranks ranks: $row_options $row_command
    row=${row:-$*} row_ranks=$1
    case $row in *"${TEST_ROW-}"*) run_row ;; esac
  done
  set +f
}

run_row() {
  row_wrong='' row_keys='' row_status=0 row_checks=$row_checks${row_common:+;$row_common}
  rm -f report.json
  row_report=report.json # if a check looks into it
  printf ';%s\n' "$row_checks" | grep -q '; *\([a-z_.0-9]*[<>=]\|counts\)' ||
    row_report=''
  row_job under >out.txt 2>err.txt || row_status=$?
  [ "$row_status" != 77 ] || skip "$row: $(cat out.txt err.txt)"
  # shellcheck disable=SC2086
  set -- ${row_checks%%;*}
  case ${1-}/$row_status in
    refused/0 | fails/0 | [a-z]*/124 | [a-z]*/137) row_is_wrong "exit status $row_status" ;;
    refused/* | fails/* | ends/* | */0) ;;
    *) row_is_wrong "exit status $row_status" ;;
  esac
  while [ -n "$row_checks" ]; do
    # shellcheck disable=SC2086
    set -- ${row_checks%%;*}
    check_row "$@"
    case $row_checks in *\;*) row_checks=${row_checks#*;} ;; *) row_checks='' ;; esac
  done
  [ -z "$row_keys" ] || row_values
  if [ -z "$row_wrong" ]; then
    pass "$row"
  else
    fail "$row: $row_wrong"
    head -n 50 out.txt err.txt
  fi
}

row_is_wrong() { row_wrong="$row_wrong${row_wrong:+; }$*"; }

# row_job plain|under: a subshell, so that the options go with it
row_job() (
  launch=$1
  eval "set -- $row_command"
  case $1 in
    *:*) set -- steps init "$@" finalize ;;
    init | multiple | session) set -- steps "$@" ;;
  esac
  set +f
  for program in "$top_builddir"/tests/mpi/*/"$1" "$top_builddir/tests/$1" "$1"; do
    [ ! -x "$program" ] || break
  done
  set -f
  shift
  set -- "$program" "$@"
  [ -z "$row_report" ] || export SLIMPI_REPORT="$work/$row_report"
  case $row_ranks in */*) export SLIMPI_RANKS_PER_NODE="${row_ranks#*/}" ;; esac
  row_options=$(printf '%s\n' "$row_options" | sed -E 's/(^|[ ?])([a-z_0-9]+)=/\1SLIMPI_\U\2\E=/g')
  eval "for option in $row_options; do
    case \$option in
      [0-9]*\\?*) set -- sh \"\$on_rank\" \"\${option%%\\?*}\" \"\${option#*\\?}\" \"\$@\" ;;
      *) export \"\$option\" ;;
    esac
  done"
  $launch "${row_ranks%/*}" "$@"
)

check_row() {
  case ${1-} in
    '' | fails | ends) ;;
    out | err)
      row_file=$1.txt row_count=$2
      shift 2
      matches "$row_file" "$row_count" "$*"
      ;;
    refused)
      shift
      matches err.txt 1 '^slimpi'
      matches err.txt 1 "^slimpi.*$*"
      ;;
    quiet) [ ! -s err.txt ] || row_is_wrong "standard error is not empty" ;;
    right) row_out=$(alike_on "${row_ranks%/*}" out.txt) || row_is_wrong "sums: ${row_out:-none}" ;;
    same)
      sort out.txt >row.txt
      [ -e "$2" ] || cp row.txt "$2"
      row_prints row.txt "$2"
      ;;
    as)
      row_plain=$(printf '%s' "plain $row_ranks $row_command" | cksum | cut -d ' ' -f 1)
      [ -e "$row_plain" ] || row_report='' row_job plain >"$row_plain" ||
        row_is_wrong "it fails without the library"
      row_prints out.txt "$row_plain"
      ;;
    counts)
      row_counts=$(sed -n "s/^\(${2-[a-z_]*}\) \([0-9]*\)$/\1=\2/p" out.txt)
      [ -n "$row_counts" ] || row_is_wrong "the output has no counts"
      row_keys="$row_keys $row_counts"
      ;;
    *[\<\>=]*) row_keys="$row_keys $*" ;;
    *) row_is_wrong "no check is called '$1'" ;;
  esac
}

# matches FILE COUNT PATTERN: so many matches, because mpiexec of MPICH 4.2 may join two lines
matches() {
  row_found=$(grep -ao -e "$3" "$1" | wc -l)
  case $2 in
    *+) [ "$row_found" -ge "${2%+}" ] ;;
    *) [ "$row_found" = "$2" ] ;;
  esac || row_is_wrong "$row_found matches of '$3' in ${1%.txt}, not $2"
}

row_prints() { cmp -s "$1" "$2" || row_is_wrong "other output: $(diff "$2" "$1" | head -n 20)"; }

# Looks at all values of the report in one go.
row_values() {
  [ -e report.json ] || { row_is_wrong "there is no report" && return; }
  # shellcheck disable=SC2086
  row_said=$("$PYTHON" -c 'import functools, json, operator, re, sys
report = json.load(open("report.json"))
tests = {"=": operator.eq, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}

def value(key):
    for place in (report, report["calls"], report["calls"]["passed"], report["buffers"]):
        try:
            return functools.reduce(lambda rows, name: rows[name], key.split("."), place)
        except (KeyError, TypeError):
            pass
    return "missing"

for check in sys.argv[1:]:
    key, test, wanted = re.fullmatch("([^<>=]*)([<>]=?|=)(.*)", check).groups()
    found = value(key)
    wanted = wanted if value(wanted) == "missing" else value(wanted)
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        good = tests[test](found, float(wanted))
    else:
        good = test == "=" and str(found) == str(wanted)
    if not good:
        print(f"{key} is {found}, not {check}", end="; ")' $row_keys 2>&1) || :
  [ -z "$row_said" ] || row_is_wrong "the report: ${row_said%; }"
}
