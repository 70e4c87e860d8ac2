#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Usage: mpi_directory.sh MPI TEST...
# Makes $top_builddir/mpis/MPI, in which `make check TESTS=...` runs these tests under the MPI of
# tests/mpis/MPI: their programs are compiled for it, all else is that of the build directory.
# Status 77: the MPI is not installed. Its text is then a line that says so.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"
mpi=$1
shift
[ -r "$top_srcdir/tests/mpis/$mpi" ] || {
  echo "no MPI called $mpi; there are $(cd "$top_srcdir/tests/mpis" && echo *)" >&2
  exit 2
}
directory=$top_builddir/mpis/$mpi
rm -rf "$directory"
mkdir -p "$directory/tests/mpi"
cd "$directory"
for entry in "$top_builddir"/* "$top_builddir"/.libs; do
  name=${entry##*/}
  case $name in
    tests | mpis | *.log | *.trs | *.txt) ;;
    src | kernels | tools | .libs) cp -rs "$entry" . ;; # what make writes here stays here
    *) ln -s "$entry" . ;;
  esac
done
# Dependencies on headers may be relative to the build directory; it has seen to them.
find src kernels tools '(' -name '*.P*o' -o -name '*.d' ')' -exec rm -f {} +
for libraries in fake_driver foreign_gpus; do
  [ ! -e "$top_builddir/tests/$libraries" ] || ln -s "$top_builddir/tests/$libraries" tests/
done

# The compilers and the launcher that configure would find.
settings="top_srcdir='$top_srcdir' top_builddir='$top_builddir' work='$directory'
. '$top_srcdir/tests/mpis/$mpi'"
cat >mpicc <<END
#!/bin/sh
$settings
exec \$mpi_c "\$@"
END
cat >mpifort <<END
#!/bin/sh
$settings
exec \$mpi_fortran "\$@"
END
cat >mpiexec <<END
#!/usr/bin/env bash
$settings
# Hydra's -genv and -env as words that each launcher knows.
words=() everywhere=() here=()
while ((\$#)); do
  case \$1 in
    -genv) everywhere+=("\$2=\$3"); shift 3 ;;
    -env) here+=("\$2=\$3"); shift 3 ;;
    -n) words+=("\$1" "\$2"); shift 2 ;;
    -*) words+=("\$1"); shift ;;
    *)
      words+=(env "\${everywhere[@]}" "\${here[@]}")
      here=()
      while ((\$#)); do
        words+=("\$1")
        shift
        [[ \${words[-1]} != : ]] || break
      done
      ;;
  esac
done
exec \$mpi_launcher "\${words[@]}"
END
chmod +x mpicc mpifort mpiexec
mpi_fortran=''
eval "$settings"
cpp='-DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX' libraries=''
for word in $(./mpicc -show 2>/dev/null); do
  case $word in
    -I* | -DMPI_ABI) cpp="$cpp $word" ;;
    -L* | -l* | -Wl,*) libraries="$libraries $word" ;;
  esac
done
[ -n "$libraries" ] || {
  echo "the MPI $mpi is not installed"
  exit 77
}

# The programs and libraries that the tests need.
named=$(sh "$top_srcdir/tests/helper/scripts/programs_of.sh" "$@")
# shellcheck disable=SC2016
known=$(printf 'include Makefile\nknown: ; @echo $(check_PROGRAMS) $(noinst_PROGRAMS)\n' |
  make -s -C "$top_builddir" -f - known)
programs='' modules=''
for name in $named; do
  case " $known " in *" $name "*) programs="$programs $name" ;; esac
  case $name in *.la) modules="$modules $name" ;; esac
done
cat >GNUmakefile <<END
override srcdir = $top_srcdir
override top_srcdir = $top_srcdir
override abs_srcdir = $top_srcdir
override abs_top_srcdir = $top_srcdir
override VPATH = $top_srcdir
override abs_builddir = $directory
override abs_top_builddir = $directory
override MPI_CPPFLAGS =$cpp
override MPI_LIBS =$libraries
override MPICC = $directory/mpicc
override MPIFC = ${mpi_fortran:+$directory/mpifort}
override MPIEXEC = $directory/mpiexec
override check_PROGRAMS =$programs
override check_LTLIBRARIES =$modules
override check_DATA =
override noinst_PROGRAMS =
include Makefile
END
