#!/usr/bin/env bash
# Random calls of the package, see tools/fuzz.R. A case may ask for more memory than there is, so
# processes get only so much; and R writes a trace of each crash, which the report replaces.
set -euo pipefail
cd "$(dirname "$0")/.."
ulimit -v 4000000 2> /dev/null || true # kilobytes
errors=$(mktemp)
trap 'rm -f "$errors"' EXIT
OMP_NUM_THREADS=1 tools/with-lib.sh Rscript tools/fuzz.R 2> "$errors" && exit 0
grep -E '^Error|^ \*\*\*' "$errors" | sort | uniq -c | head -20 || true
exit 1
