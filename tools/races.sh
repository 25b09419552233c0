#!/usr/bin/env bash
# Data races between threads: every method on every model (tools/every-method.R) with four threads,
# under ThreadSanitizer. clang's OpenMP tells it, through Archer, where threads wait for one
# another; R itself is not watched. A race that is known must be found too.
set -euo pipefail
source "$(dirname "$0")/common.sh"

archer=$(find /usr/lib -name libarcher.so 2> /dev/null | head -1)
[ -n "$archer" ] || { echo "FAILED  libarcher.so is missing (libomp-dev)"; exit 1; }
printf 'CC = clang\nCFLAGS = -g -O1 -fno-omit-frame-pointer -fsanitize=thread\nLDFLAGS =\n' \
  > "$scratch/Makevars"
echo 'SHLIB_OPENMP_CFLAGS = -fopenmp' >> "$scratch/Makevars"
export R_MAKEVARS_USER=$scratch/Makevars
install_tarball "$(build_tarball)" "$scratch/lib" --no-docs --no-test-load
cp "$root"/tools/races/*.c "$scratch"
(cd "$scratch" && PKG_CFLAGS=-fopenmp PKG_LIBS=-fopenmp R CMD SHLIB -o race.so race.c > build.log)
# shellcheck disable=SC2046
clang -g -O1 -fsanitize=thread $(R CMD config --cppflags) "$scratch/run.c" -o "$scratch/run" \
  $(R CMD config --ldflags) -rdynamic

# watched <script>: the sanitizer's report, if there is one. Without random addresses, which some
# kernels spread further than it can follow.
watched() {
  setarch -R env R_HOME="$(R RHOME)" R_LIBS="$scratch/lib${R_LIBS:+:$R_LIBS}" OMP_NUM_THREADS=4 \
    OMP_TOOL_LIBRARIES="$archer" THREADS=4 ROWS="${ROWS:-40}" OMP_WAIT_POLICY=passive \
    TSAN_OPTIONS="ignore_noninstrumented_modules=1 log_path=$scratch/report" \
    "$scratch/run" "$1"
}
echo "dyn.load('$scratch/race.so'); .Call('race')" > "$scratch/race.R"
watched "$scratch/race.R" || true
ls "$scratch"/report* > /dev/null 2>&1 || { echo "FAILED  a known race is not found"; exit 1; }
rm -f "$scratch"/report*
if watched "$root/tools/every-method.R" && ! ls "$scratch"/report* > /dev/null 2>&1; then
  echo "ok      no data race"
else
  grep -hE 'WARNING|^ +#[0-9]+ .*\.c:|SUMMARY' "$scratch"/report* 2> /dev/null | head -40
  echo "FAILED  data races"
  exit 1
fi
