#!/usr/bin/env bash
# with-lib.sh <command>...: runs a command that finds the package in the private library, .lib.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
export R_LIBS=$root/.lib${R_LIBS:+:$R_LIBS}
cd "$root"
exec "$@"
