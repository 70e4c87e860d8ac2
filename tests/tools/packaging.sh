#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The packages: one version everywhere, every installed file in one Debian package, what these need
# for building is what tools/packages installs, and packages that dpkg can read.
. "${top_srcdir:?is set by make check}/tests/helper/scripts/mpi.sh"
seconds=120
packaging=$top_srcdir/tools/packaging
version=$(sed -n 's/^AC_INIT(\[slimpi\], \[\([^]]*\)\].*/\1/p' "$top_srcdir/configure.ac")
part() { sed -n "s/^#define SLIMPI_VERSION_$1 //p" "$top_srcdir/include/slimpi.h"; }
expect "$(part MAJOR).$(part MINOR).$(part PATCH)" "$version" "slimpi.h: the version"
expect "$(sed -n '1s/slimpi (\([^)]*\)) .*/\1/p' "$packaging/debian/changelog")" "$version" \
  "debian/changelog: the version"
expect "$(sed -n 's/^version: //p' "$top_srcdir/CITATION.cff")" "$version" "CITATION.cff"
# The newest heading is this version with its date, or what comes after it.
holds "CHANGELOG.md: this version, or what comes after it" sh -c 'grep -m 1 "^## " "$1" |
  grep -Eqx "## (Unreleased|$2 - 20[0-9]{2}-[0-9]{2}-[0-9]{2})"' sh "$top_srcdir/CHANGELOG.md" \
  "$version"

# Two releases of one commit have the same bytes.
if [ -e "$top_srcdir/.git" ]; then
  for directory in one two; do
    shows "tools/release" env -u MAKEFLAGS "$top_srcdir/tools/release" --head --sources \
      --directory "$work/$directory"
  done
  same one/SHA256SUMS two/SHA256SUMS "the files of a release can be made again"
  tar -tzf "one/slimpi-$version.tar.gz" >files.txt || fail "the tarball"
  for file in configure commit.txt pyproject.toml PKG-INFO tools/cross tools/release \
    man/slimpi.7; do
    holds "the tarball has $file" grep -qx "slimpi-$version/$file" files.txt
  done
  holds "SHA256SUMS" sh -c 'cd one && sha256sum --quiet -c SHA256SUMS'
  sed -n '/^What it does not do/q; /^- /p' one/slimpi-*-notes.md >notes.txt
  expect "$(grep -o '^- \*\*[^*]*\*\*' notes.txt)" \
    "$(awk '/^## / && ++headings > 1 { exit } headings' "$top_srcdir/CHANGELOG.md" |
      grep -o '^- \*\*[^*]*\*\*')" "the notes have every feature"
  holds "the notes are at most 25 lines, and whole sentences" \
    awk '!/[.]$/ { bad = 1; print } END { exit bad || NR > 25 }' notes.txt
  # To build slimpi takes minutes, so pip is given what is built.
  pip=$(echo /usr/share/python-wheels/pip-*.whl)
  if [ -e "$pip" ]; then
    shows "pip takes the tarball" env -u MAKEFLAGS PYTHONPATH="$pip" /usr/bin/python3 -m pip wheel \
      --no-index --no-cache-dir --config-settings=build="$top_builddir" --wheel-dir wheel \
      "one/slimpi-$version.tar.gz"
    holds "the wheel that pip makes" test -e wheel/slimpi-"$version"-py3-none-manylinux_*.whl
  else
    echo "NOTE no pip (Debian: python3-pip-whl): the tarball is not installed"
  fi
  status=0
  "$top_srcdir/tools/release" --sources --directory "$work/one" >out.txt 2>&1 || status=$?
  expect "$status" 1 "no release without a tag, or into a directory with files"
fi

# tools/packages and debian/control name the same packages for a build. Packages that are needed
# only to run slimpi stand elsewhere.
"$top_srcdir/tools/packages" --list build | grep -vx -e build-essential -e dataset-fashion-mnist \
  -e iproute2 -e gnuplot-nox -e hwloc-nox -e python3 | LC_ALL=C sort >build.txt
sed -n '/^Build-Depends:/,/^$/p' "$packaging/debian/control" | sed 's/^Build-Depends://' |
  tr ',' '\n' | sed -e 's/(.*//' -e 's/ //g' -e '/^$/d' |
  grep -vx -e debhelper-compat -e dh-python -e python3:any | LC_ALL=C sort >control.txt
same build.txt control.txt "debian/control: what a build needs"

# Debian's packages of what is built, with every installed file in one of them (debian/rules runs
# dh_missing --fail-missing).
for command in dpkg-buildpackage dh fakeroot; do
  command -v $command >/dev/null && continue
  [ "$failures" = 0 ] || exit
  skip "$command is not installed (tools/packages deb); what needs none passed"
done
if ! env -u MAKEFLAGS timeout 600 "$packaging/build-deb" --no-install --build "$top_builddir" \
  --directory packages >log 2>&1; then
  cat log
  fail "build-deb"
fi
for name in libslimpi0 libslimpi-dev slimpi-tools; do
  file=$(echo "$work/packages/${name}_${version}"_*.deb)
  dpkg-deb --contents "$file" >"$name.txt" || fail "$name: dpkg does not read it"
  dpkg-deb --field "$file" Depends >"$name.depends" || fail "$name: it needs nothing"
  dpkg-deb --extract "$file" root || fail "$name: dpkg does not unpack it"
done
installed=$(echo "$work"/root/usr/lib/*/libslimpi.so)
expect "$(root/usr/bin/slimpi-run --dry-run true | head -n 1)" "env LD_PRELOAD=$installed \\" \
  "slimpi-run finds the library"
for directory in "$top_builddir" "$(sed -n 's/^prefix = //p' "$top_builddir/Makefile")"; do
  [ "$directory" = /usr ] || holds "the packages do not name $directory" \
    sh -c '! grep -rIl "$0" root/usr --exclude-dir=doc --exclude-dir=man' "$directory"
done
holds "slimpi-tools has slimpi-run" grep -q ' ./usr/bin/slimpi-run$' slimpi-tools.txt
holds "slimpi-tools needs what its programs link" \
  grep -q '^libc6 .*libstdc++6 .*python3' slimpi-tools.depends
holds "libslimpi0 has its plugins" grep -q '/slimpi/slimpi-hwloc.so$' libslimpi0.txt
