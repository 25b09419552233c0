#!/usr/bin/env bash
# Compiles every C file with gcc and clang, with and without OpenMP; a warning is an error.
# Objects go to a scratch folder, nothing is linked.
set -euo pipefail
source "$(dirname "$0")/common.sh"

flags="-std=gnu11 -fPIC -Wall -Wextra -Werror -I$root/src -I$root/inst/include"
flags+=" $(gsl-config --cflags)"
flags+=" $(R CMD config --cppflags | sed 's/-I/-isystem /g')"

compile_one() {
  local source=$1 object
  object=$(echo "${source#"$root"/src/}" | tr / -).o
  # shellcheck disable=SC2086
  $compiler $flags -c "$source" -o "$objects/$object"
}
export -f compile_one
export root flags compiler objects

status=0
# Warnings of gcc follow from its optimiser, those of clang do not.
for build in "gcc -O2 -fopenmp" "gcc -O2 -Wno-unknown-pragmas" "clang -O0 -fopenmp" \
  "clang -O0 -Wno-unknown-pragmas"; do
  compiler=$build
  objects=$(mktemp -d "$scratch/objects.XXXXXX")
  if ! command -v "${build%% *}" > /dev/null 2>&1; then
    echo "FAILED  $build: not installed (make ci-deps)"
    status=1
  elif find "$root/src" -name '*.c' -print0 | sort -z |
    xargs -0 -n 1 -P "$cores" bash -c 'compile_one "$1"' compile; then
    echo "ok      $build: $(find "$objects" -name '*.o' | wc -l | tr -d ' ') files"
  else
    echo "FAILED  $build"
    status=1
  fi
done
exit $status
