#!/usr/bin/env bash
# Writes NAMESPACE and man/ from the roxygen comments. NAMESPACE comes first, from the sources
# alone, because the package must install before the examples and links can be looked at.
set -euo pipefail
source "$(dirname "$0")/common.sh"

cd "$root"
Rscript -e 'roxygen2::roxygenise(roclets = "namespace", load_code = roxygen2::load_source)'
tools/install.sh
tools/with-lib.sh Rscript -e 'roxygen2::roxygenise(load_code = roxygen2::load_installed)'
