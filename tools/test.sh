#!/usr/bin/env bash
# Tests of tests/testthat on the freshly installed package. The argument says which:
#   quick     all but the thorough ones (make test)
#   thorough  those that take longest (tools/run-tests.R lists them), and those of the tools
#   all       both, and some once more for each of the slower variants of the vectorised kernels
# The last line gives the totals; LOGEVIDENCE_TOTALS names a file that gets the three numbers too.
set -uo pipefail
source "$(dirname "$0")/common.sh"

suite=${1:-quick}
passed=0 failed=0 skipped=0

# one_check <what it shows> <command>...
one_check() {
  local what=$1
  shift
  if "$@" > "$scratch/check.log" 2>&1; then
    passed=$((passed + 1))
    echo "ok      $what"
  else
    failed=$((failed + 1))
    cat "$scratch/check.log"
    echo "FAILED  $what"
  fi
}

scripts_parse() {
  local script
  for script in "$root"/tools/*.sh "$root"/.ci/run; do bash -n "$script" || return 1; done
  for script in "$root"/configure "$root"/cleanup; do sh -n "$script" || return 1; done
}

# An object is made again after a change of a header that its C file includes, also through other
# headers, and not after a change of other headers.
objects_follow_headers() (
  copy=$scratch/headers
  mkdir "$copy" && cd "$root" && cp -R configure src inst "$copy" && cd "$copy" || return 1
  ./configure && find src inst -name '*.[ch]' -exec touch -t 200001010000 {} + || return 1
  cd src && touch -t 200101010000 base/sort.o core/mode.o || return 1
  current() { make -q -f Makevars "$1"; }
  current base/sort.o && current core/mode.o || { echo "objects are made again"; return 1; }
  touch base/status.h
  current base/sort.o || { echo "it does not include this header"; return 1; }
  ! current core/mode.o
)

# run_tests [file names that match]
run_tests() {
  local totals=$scratch/totals
  rm -f "$totals"
  MC_CORES=$cores NOT_CRAN=true LOGEVIDENCE_TOTALS=$totals \
    "$root/tools/with-lib.sh" Rscript tools/run-tests.R "$@"
  if read -r p f s 2> /dev/null < "$totals"; then
    passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  else
    echo "FAILED  the tests stopped before their end"
    failed=$((failed + 1))
  fi
}

one_check "shell scripts parse" scripts_parse
one_check "objects are made again after a change of their headers" objects_follow_headers

check_tools() {
  # Two checks side by side: each has one process.
  Rscript "$root/tools/lint-selftest.R" > "$scratch/lint.log" 2>&1 &
  lint=$!
  one_check "a toy model, kernel and method run as ARCHITECTURE.md adds them" \
    Rscript "$root/tools/toys.R"
  the_lint() { wait "$lint" || { cat "$scratch/lint.log"; return 1; }; }
  one_check "the layer lint sees every kind of violation" the_lint
}

if "$root/tools/install.sh"; then
  [ "$suite" = quick ] || check_tools
  [ "$suite" = all ] || export LOGEVIDENCE_SUITE=$suite
  run_tests
  # The vectorised loops for other processors: test-simd.R has compared them number by number.
  unset LOGEVIDENCE_SUITE
  if [ "$suite" != quick ]; then
    for variant in plain avx2; do
      echo "With LOGEVIDENCE_SIMD=$variant"
      LOGEVIDENCE_SIMD=$variant run_tests '^(variants|linalg)$'
    done
  fi
else
  echo "FAILED  the package does not install"
  failed=$((failed + 1))
fi

if [ -n "${LOGEVIDENCE_TOTALS:-}" ]; then
  echo "$passed $failed $skipped" > "$LOGEVIDENCE_TOTALS"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
