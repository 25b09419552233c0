# Sourced by the other scripts: where the checkout is, and a scratch folder that goes away by
# itself.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
library=$root/.lib

cores=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
# Compilations run side by side; a parent make's own flags are not theirs.
export MAKEFLAGS="-j$cores"
unset MAKELEVEL MFLAGS || true

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Installation, R CMD build and R CMD check compile the same files with the same flags: where ccache
# is (tools/setup.sh ci), each is compiled once. It compares the preprocessed text, the flags and
# the compiler. Folders may differ: they are in the debugging information alone, which is stripped.
compile_once() {
  if [ -x /usr/lib/ccache/gcc ]; then
    export CCACHE_DIR=$library/ccache CCACHE_NOHASHDIR=1 PATH=/usr/lib/ccache:$PATH
  fi
}

# The source package as a user would get it, without vignettes: prints the path of the tarball.
build_tarball() {
  mkdir -p "$scratch/tarball"
  if ! (cd "$scratch/tarball" && R CMD build --no-build-vignettes "$root") \
    > "$scratch/build.log" 2>&1; then
    cat "$scratch/build.log" >&2
    return 1
  fi
  ls "$scratch"/tarball/logevidence_*.tar.gz
}

# install_tarball <tarball or folder> <library> [options of R CMD INSTALL]: quiet unless it fails.
install_tarball() {
  local tarball=$1 into=$2
  shift 2
  mkdir -p "$into"
  if ! R CMD INSTALL --library="$into" "$@" "$tarball" > "$scratch/install.log" 2>&1; then
    # the compiler's words, not its command lines
    grep -vE '^(gcc|cc|clang)[ -]' "$scratch/install.log" >&2
    return 1
  fi
}
