#!/usr/bin/env bash
# Is the checkout slower than an earlier commit? Both are installed, each into a library of its own,
# and tools/speed.R runs ten fits in pairs of fresh processes.
#   BASE    the commit to compare with: HEAD if the package has changes that are not committed, and
#           otherwise HEAD's parent
#   PAIRS   how many pairs of runs, 5
#   FITS    only fits whose names match this regular expression
set -euo pipefail
source "$(dirname "$0")/common.sh"
cd "$root"

package="DESCRIPTION NAMESPACE configure R src inst"
# shellcheck disable=SC2086
if git diff --quiet HEAD -- $package; then before=HEAD^; else before=HEAD; fi
if ! base=$(git rev-parse --verify --quiet "${BASE:-$before}^{commit}"); then
  echo "There is no commit '${BASE:-$before}' here." >&2
  exit 1
fi

"$root/tools/install.sh"
built=$library/speed/$base
if [ ! -d "$built/logevidence" ]; then
  echo "Installing $(git log -1 --format='%h %s' "$base")"
  mkdir "$scratch/base"
  git archive "$base" | tar -x -C "$scratch/base"
  rm -rf "$library/speed" # one earlier commit is kept
  install_tarball "$scratch/base" "$built" --no-docs --no-test-load
fi
Rscript tools/speed.R "$built" "$library" "${PAIRS:-5}" "${FITS:-.}"
