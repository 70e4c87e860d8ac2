# SPDX-License-Identifier: BSD-3-Clause
# Libraries that break the rules of a check, built in a directory that goes away, and what the check
# says of them. Sourced after `check`, the script, is set; `more` is what it takes behind a library.
cc=${CC:-cc}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
failures=0
more=''

# build NAME CODE FLAGS...: NAME.so
build() {
  name=$1
  printf '%s\n' "$2" >"$name.c"
  shift 2
  $cc -shared -fPIC -o "$name.so" "$name.c" -Wl,--no-as-needed "$@"
}

# refused NAME TEXT: the check says TEXT of NAME.so, and only that
refused() {
  if "$check" "./$1.so" $more >out 2>&1; then
    echo "FAIL: $1.so is accepted"
    failures=1
  elif [ "$(cat out)" != "./$1.so $2" ]; then
    echo "FAIL: expected ./$1.so $2, found:"
    cat out
    failures=1
  fi
}
