#!/usr/bin/env bash
# Every test: those of the tools, then those of tests/testthat on the freshly installed package,
# some of them once more for each of the slower variants of the vectorised kernels.
# The last line gives the totals; LOGEVIDENCE_TOTALS names a file that gets the three numbers too.
set -uo pipefail
source "$(dirname "$0")/common.sh"

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
one_check "the layer lint sees every kind of violation" Rscript "$root/tools/lint-selftest.R"
one_check "a toy model, kernel and method run as ARCHITECTURE.md adds them" \
  Rscript "$root/tools/toys.R"

if "$root/tools/install.sh"; then
  run_tests
  # The kernels of other processors, on the tests that are about likelihoods and on whole runs.
  for variant in plain avx2; do
    echo "With LOGEVIDENCE_SIMD=$variant"
    LOGEVIDENCE_SIMD=$variant run_tests '^(models|gradient|truth|linalg)$'
  done
else
  echo "FAILED  the package does not install"
  failed=$((failed + 1))
fi

if [ -n "${LOGEVIDENCE_TOTALS:-}" ]; then
  echo "$passed $failed $skipped" > "$LOGEVIDENCE_TOTALS"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
