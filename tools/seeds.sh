#!/usr/bin/env bash
# The tests of the package once more for each of several values that move all their random seeds
# (LOGEVIDENCE_TEST_SEED). A test that fails for some seeds has a tolerance that is too narrow, or
# has found a wrong standard error: find out which before changing it.
#   SEEDS   the values, "1000 2000 3000"; they must differ by more than any test counts up
# An argument picks the test files whose names match it.
set -uo pipefail
source "$(dirname "$0")/common.sh"

"$root/tools/install.sh" || exit 1
status=0
for seed in ${SEEDS:-1000 2000 3000}; do
  echo "With LOGEVIDENCE_TEST_SEED=$seed"
  if MC_CORES=$cores NOT_CRAN=true LOGEVIDENCE_TEST_SEED=$seed \
    "$root/tools/with-lib.sh" Rscript tools/run-tests.R "$@"; then
    echo "ok      seed $seed"
  else
    echo "FAILED  seed $seed"
    status=1
  fi
done
exit $status
