#!/usr/bin/env bash
# Installs the package into the checkout's private library, .lib, unless it is there already as the
# sources are now. It is built in .lib/build from nothing: nothing is left among the sources, and no
# object is stale. What was built stays there, for tools/toys.R.
set -euo pipefail
source "$(dirname "$0")/common.sh"
compile_once

cd "$root"
state=$({ find DESCRIPTION NAMESPACE configure cleanup R src inst -type f \
  ! -name '*.o' ! -name '*.so' ! -name Makevars ! -name flags 2> /dev/null || true; } |
  LC_ALL=C sort | tr '\n' '\0' | xargs -0 cksum | cksum)
state="$state, $(R --version | head -n 1)"
if [ -d "$library/logevidence" ] && [ "$(cat "$library/state" 2> /dev/null)" = "$state" ]; then
  exit 0
fi

echo "Installing the package into .lib"
tarball=$(build_tarball)
mkdir -p "$library"
fresh=$(mktemp -d "$library/new.XXXXXX")
trap 'rm -rf "$scratch" "$fresh"' EXIT
rm -rf "$library/build"
mkdir "$library/build"
tar -xzf "$tarball" -C "$library/build"
install_tarball "$library/build/logevidence" "$fresh"
rm -rf "$library/logevidence"
mv "$fresh/logevidence" "$library/logevidence"
echo "$state" > "$library/state"
