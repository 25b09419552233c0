#!/usr/bin/env bash
# Compiles every C file with gcc and clang, with and without OpenMP; a warning is an error. A file
# that the preprocessor turns into the same text with and without OpenMP is compiled with it alone.
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

# text_of <file> <flags>: what a compiler reads after the preprocessor. For gcc and clang alike
# OpenMP is one macro, _OPENMP, and lines that begin with #pragma omp, which stay in the text.
text_of() {
  # shellcheck disable=SC2086
  gcc $flags "${@:2}" -E -P "$1"
}
asks_for_openmp() {
  local with without
  with=$(text_of "$1" -fopenmp) && without=$(text_of "$1") || { echo "$1"; return; }
  if [ "$with" != "$without" ] || grep -q '^ *#pragma omp' <<< "$with"; then echo "$1"; fi
}
export -f text_of asks_for_openmp

find "$root/src" -name '*.c' | sort > "$scratch/all"
if command -v gcc > /dev/null 2>&1; then
  xargs -n 1 -P "$cores" bash -c 'asks_for_openmp "$1"' asks < "$scratch/all" > "$scratch/differ"
else
  cp "$scratch/all" "$scratch/differ"
fi
# a list that is empty would mean that nothing was read
[ -s "$scratch/differ" ] || { echo "FAILED  no file asks for OpenMP"; exit 1; }

status=0
# Warnings of gcc follow from its optimiser, those of clang do not.
for build in "gcc -O2 -fopenmp" "gcc -O2 -Wno-unknown-pragmas" "clang -O0 -fopenmp" \
  "clang -O0 -Wno-unknown-pragmas"; do
  compiler=$build
  objects=$(mktemp -d "$scratch/objects.XXXXXX")
  case $build in *-fopenmp) files=$scratch/all ;; *) files=$scratch/differ ;; esac
  if ! command -v "${build%% *}" > /dev/null 2>&1; then
    echo "FAILED  $build: not installed (make ci-deps)"
    status=1
  elif xargs -n 1 -P "$cores" bash -c 'compile_one "$1"' compile < "$files"; then
    echo "ok      $build: $(find "$objects" -name '*.o' | wc -l | tr -d ' ') files"
  else
    echo "FAILED  $build"
    status=1
  fi
done
exit $status
