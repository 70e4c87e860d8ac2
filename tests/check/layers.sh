#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: layers.sh [ROOT]
# Checks that the layers under ROOT/src, ROOT/kernels and ROOT/tools keep to themselves. Prints one
# line file:line: reason for each violation and fails if there is any.
#
#   intercept -> call -> algorithm -> inter, intra -> comm -> device -> kernels, observe
#   observe -> options -> base; mpi, kernels, topology -> base
#   tools: above algorithm; they use no part of a call, and nothing under src uses them
#
# A file includes its own layer and lower ones, as "layer/file.h". Only base/process.cpp
# reads the environment, and programs in C under tools, which link nothing of src. MPI is called
# through the mpi table, but for tools. CUDA and NCCL headers stay in device/ and kernels/cuda/.
# The functions that stand in for MPI's know no algorithm and no CUDA.
set -eu
root=${1:-${top_srcdir:-.}}
cd "$root"
files=$(find src kernels tools -type f \( -name '*.h' -o -name '*.hpp' -o -name '*.c' \
  -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' -o -name '*.def' \) 2>/dev/null |
  LC_ALL=C sort) || :
if [ -z "$files" ]; then
  echo "layers.sh: no sources under $root/src, $root/kernels and $root/tools" >&2
  exit 2
fi
# File names of this project have no white space.
# shellcheck disable=SC2086
exec awk '
BEGIN {
  below = "base mpi topology kernels options observe"
  may["base"] = "base"
  may["options"] = "base options"
  may["observe"] = may["options"] " observe"
  may["mpi"] = "base mpi"
  may["topology"] = "base topology"
  may["kernels"] = "base kernels"
  may["device"] = below " device"
  may["comm"] = may["device"] " comm"
  may["intra"] = may["comm"] " intra"
  may["inter"] = may["comm"] " inter"
  may["algorithm"] = may["comm"] " intra inter algorithm"
  may["tools"] = may["algorithm"] " tools"
  may["call"] = may["algorithm"] " call"
  may["intercept"] = may["call"] " intercept"
  split("Comm Datatype Op Aint Count Offset Request Status Info Win File Group Errhandler " \
        "Message Session Fint", names)
  for (i in names) type["MPI_" names[i]] = 1
}

function violation(reason) {
  print FILENAME ":" FNR ": " reason
  bad = 1
}

function has(list, word) { return index(" " list " ", " " word " ") > 0 }

# A name is a violation only if its file has intercepted functions, wherever in the file they stand.
function end_of_file(    reason) {
  for (reason in named) {
    if (shim) print reason
    if (shim) bad = 1
    delete named[reason]
  }
}

# The line without what stands in comments.
function code(line,    at, end) {
  if (in_comment) {
    end = index(line, "*/")
    if (!end) return ""
    line = substr(line, end + 2)
    in_comment = 0
  }
  while ((at = match(line, /\/[*\/]/)) > 0) {
    if (substr(line, at, 2) == "//") return substr(line, 1, at - 1)
    end = index(substr(line, at + 2), "*/")
    if (!end) {
      in_comment = 1
      return substr(line, 1, at - 1)
    }
    line = substr(line, 1, at - 1) " " substr(line, at + 3 + end)
  }
  return line
}

function check_include(line,    name, quoted, slash, target, directory) {
  quoted = line ~ /^[ \t]*#[ \t]*include[ \t]*"/
  name = line
  sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", name)
  sub(/[">].*/, "", name)
  if (name ~ /^(cuda|cublas|nccl|nvrtc|nvml|curand|cub\/|thrust\/|cooperative_groups)/ &&
      layer != "device" && FILENAME !~ /^kernels\/cuda\//)
    violation("includes " name "; CUDA and NCCL headers belong to device/ and kernels/cuda/")
  if (name ~ /^hwloc/ && layer != "topology")
    violation("includes " name "; only topology/ uses hwloc")
  if (name == "mpi.h" && layer != "tools")
    violation("includes mpi.h; mpi/abi.h has the types of every MPI")
  if (!quoted || name == "config.h" || name == "slimpi.h") return
  slash = index(name, "/")
  target = substr(name, 1, slash - 1)
  if (target in may) {
    if (!has(may[layer], target)) violation(layer " includes " name ", a layer above its own")
    return
  }
  directory = FILENAME
  sub(/[^\/]*$/, "", directory)
  if (name ~ /\.\.\// || (getline unused < (directory name)) < 0)
    violation("includes " name "; write it as \"layer/file.h\"")
  close(directory name)
}

# Calls of MPI functions by their own name. Definitions, in intercept, begin at the margin.
function check_mpi_calls(line,    rest, name) {
  rest = line
  while (match(rest, /P?MPI_[A-Z][A-Za-z0-9_]*[ ]*\(/)) {
    name = substr(rest, RSTART, RLENGTH)
    sub(/[ ]*\($/, "", name)
    if (RSTART == 1 || substr(rest, RSTART - 1, 1) !~ /[A-Za-z0-9_]/)
      if (name ~ /[a-z]/ && !(name in type) &&
          (layer != "intercept" || line ~ /^([ \t]|return)/))
        violation("calls " name " directly; MPI is called through the table of src/mpi")
    rest = substr(rest, RSTART + RLENGTH)
  }
}

FNR == 1 {
  end_of_file()
  split(FILENAME, part, "/")
  layer = part[1] == "src" ? part[2] : part[1]
  in_comment = shim = 0
  if (!(layer in may)) violation("lies in no layer")
}

{ line = code($0) }

line ~ /^[ \t]*#[ \t]*include[ \t]*["<]/ {
  check_include(line)
  next
}

line ~ /(^|[^A-Za-z0-9_])(secure_getenv|getenv|environ)([^A-Za-z0-9_]|$)/ &&
FILENAME != "src/base/process.cpp" && FILENAME !~ /^tools\/.*\.c$/ {
  violation("reads the environment; only src/base/process.cpp does")
}

layer != "tools" { check_mpi_calls(line) }

layer == "intercept" && line ~ /^[A-Za-z].*[ *]MPI_[A-Za-z_]*\(/ { shim = 1 }
layer == "intercept" && tolower(line) ~ /bytegrad|qsgd|powersgd|decentralized|fp16|bf16/ {
  named[FILENAME ":" FNR ": intercepted functions stand beside the name of an algorithm"]
}
layer == "intercept" && tolower(line) ~ /cuda|nccl/ {
  named[FILENAME ":" FNR ": intercepted functions stand beside the name of CUDA"]
}

END {
  end_of_file()
  exit bad
}
' $files
