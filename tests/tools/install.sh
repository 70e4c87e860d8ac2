#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The files that make install puts in their places, and that the tree still works when it is moved
# as a whole. The files of a release.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
seconds=120
MAKEFLAGS='' timeout 120 make -s -C "$top_builddir" install DESTDIR="$work/stage" >log 2>&1 ||
  { cat log && fail "make install"; }
: "${bindir:=/usr/local/bin}" "${libdir:=/usr/local/lib}" "${datarootdir:=/usr/local/share}"
: "${includedir:=/usr/local/include}"
version=$(sed -n "s/^PACKAGE_VERSION = //p" "$top_builddir/Makefile")
bin=stage$bindir lib=stage$libdir share=stage$datarootdir

for file in "$bin/slimpi-run" "$bin/slimpi-info" "$lib/libslimpi.so" "$lib/slimpi/slimpi-hwloc.so" \
  "stage$includedir/slimpi.h" "$lib/pkgconfig/slimpi.pc" "$share/modulefiles/slimpi/$version" \
  "$share/bash-completion/completions/slimpi-run" "$share/man/man7/slimpi.7" \
  "$share/man/man1/slimpi-run.1" "$share/man/man1/slimpi-info.1" "$share/man/man5/slimpi.conf.5"; do
  holds "${file#stage} is installed" test -s "$file"
done
for program in "$bin"/slimpi-*; do
  name=${program##*/}
  holds "$name has a manual page" test -s "$share/man/man1/$name.1"
  holds "$name has a completion" test -s "$share/bash-completion/completions/$name"
done
holds "every installed page of section 1 has its program" \
  sh -c 'for page in "$1"/*.1; do name=${page##*/}; [ -x "$2/${name%.1}" ] || exit 1; done' sh \
  "$share/man/man1" "$bin"
# Debug information names the build tree, so the check reads stripped programs.
cp -r "$bin" stripped
strip --strip-debug stripped/slimpi-info stripped/slimpi-run stripped/slimpi-bench
expect "$(grep -rl "$top_builddir" "$lib/pkgconfig" "$share" stripped 2>/dev/null)" "" \
  "nothing that is installed names the build tree"
expect "$(find stage -name '*.la')" "" "no libtool files"
expect "$(grep -c '^URL' "$lib/pkgconfig/slimpi.pc")" 0 "slimpi.pc names no place that there is not"

# The installed tree, moved: the wrapper and the tool find what is theirs.
moved=$(realpath stage)
unset LD_PRELOAD SLIMPI_BITS
expect "$("$bin/slimpi-run" --dry-run true | head -1)" \
  "env LD_PRELOAD=$moved$libdir/libslimpi.so \\" \
  "slimpi-run finds the moved library"
mv "$lib/libslimpi.so" developer
expect "$("$bin/slimpi-run" --dry-run true | head -1)" \
  "env LD_PRELOAD=$moved$libdir/libslimpi.so.0 \\" "and without the name for developers"
mv developer "$lib/libslimpi.so"
export HWLOC_COMPONENTS=synthetic
HWLOC_SYNTHETIC='pack:1 core:3 pu:1' "$bin/slimpi-info" -t >topology 2>&1 || :
holds "slimpi-info finds its moved part" grep -q '3 cores' topology
expect "$("$bin/slimpi-run" --algorithm off echo works 2>&1)" works "a program starts"
mkdir -p deep/bin deep/lib/arch/slimpi
cp -r "$lib/slimpi/slimpi_lab" deep/lib/arch/slimpi/
sed -e 's,@pkglibdir@,/usr/lib/arch/slimpi,' -e 's,@bindir@,/usr/bin,' \
  "$top_srcdir/tools/slimpi-lab.in" >deep/bin/slimpi-lab
holds "slimpi-lab finds its moved parts, also below lib/ARCHITECTURE" \
  sh -c '"$0" deep/bin/slimpi-lab --help >/dev/null' "$PYTHON"

# Below a directory called tools or tests, without its parts: those that somebody else put where a
# build tree would have them are not opened.
mkdir tools .libs
cp -r stage tools/tests
rm -r "tools/tests$libdir/slimpi" "tools/tests$libdir/libslimpi.so" \
  "tools/tests$libdir/libslimpi.so.0"
echo 'void open_me(void); __attribute__((constructor)) void open_me(void) {
  extern int creat(const char*, unsigned); creat("opened", 0600); }' >planted.c
${CC:-cc} -shared -fPIC -o .libs/slimpi-hwloc.so planted.c
for name in slimpi-cuda.so libslimpi.so libslimpi.so.0; do
  cp .libs/slimpi-hwloc.so ".libs/$name"
done
cp -r .libs tools/.libs
"tools/tests$bindir/slimpi-info" -t >topology 2>&1 || :
for algorithm in bytegrad powersgd; do
  SLIMPI_ALGORITHM=$algorithm LD_PRELOAD=$(echo "$work/tools/tests$libdir"/libslimpi.so.*.*) \
    timeout 20 "$steps" init sum:50000 finalize </dev/null >log 2>&1 || :
done
holds "plugins of others are not opened" test ! -e opened
"tools/tests$bindir/slimpi-run" true >log 2>&1 || :
holds "nor preloaded" test ! -e opened

if command -v pkg-config >/dev/null; then
  PKG_CONFIG_PATH=$lib/pkgconfig
  export PKG_CONFIG_PATH
  expect "$(pkg-config --variable=preload slimpi)" "$libdir/libslimpi.so" "pkg-config: preload"
  expect "$(pkg-config --modversion slimpi)" "$("$bin/slimpi-info" -v | sed -n '1s/slimpi //p')" \
    "pkg-config: version"
  expect "$(PKG_CONFIG_SYSROOT_DIR=$moved pkg-config --validate slimpi 2>&1)" "" "pkg-config: valid"
  echo '#include <slimpi.h>
int main(void) { return slimpi_version()[0] == 0; }' >api.c
  # Several words on purpose.
  # shellcheck disable=SC2046
  ${CC:-cc} -o api api.c $(PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 \
    PKG_CONFIG_SYSROOT_DIR=$moved pkg-config --cflags --libs slimpi) &&
    holds "a program linked with -lslimpi runs" env LD_LIBRARY_PATH="$moved$libdir" ./api
fi
expect "$(grep -c "prepend-path PATH $bindir\$" "$share/modulefiles/slimpi/$version")" 1 \
  "the modulefile's PATH"
if command -v tclsh >/dev/null; then
  echo 'foreach name {module-whatis conflict prepend-path} { proc $name args {puts $args} }
source [lindex $argv 0]; ModulesHelp' >module.tcl
  holds "the modulefile is Tcl" \
    sh -c 'tclsh module.tcl "$0" >/dev/null 2>&1' "$share/modulefiles/slimpi/$version"
fi

# A release has every file that git has.
if (cd "$top_srcdir" && git ls-files) >tracked.txt 2>/dev/null; then
  MAKEFLAGS='' timeout 120 make -s -C "$top_builddir" distdir distdir="$work/release" >log 2>&1 ||
    { cat log && fail "make distdir"; }
  grep -v '^\.gitignore$' tracked.txt | while read -r file; do
    [ -e "release/$file" ] || [ ! -e "$top_srcdir/$file" ] || echo "$file"
  done >missing.txt
  expect "$(cat missing.txt)" "" "files that a release lacks"
fi
