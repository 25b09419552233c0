#!/usr/bin/env bash
# Makes the site in docs/ by pkgdown, from README.md, man/ and vignettes/, without a network.
set -euo pipefail
source "$(dirname "$0")/common.sh"

cd "$root"
tools/install.sh
tools/with-lib.sh Rscript tools/site.R "$@"
