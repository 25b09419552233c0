#!/usr/bin/env bash
# The C code under two watchers, in a debug build, which compares whole structs after a run was
# restored, and checks scratch memory (tools/debug): all tests with AddressSanitizer and
# UndefinedBehaviorSanitizer, then tools/every-method.R under valgrind, where only what involves our
# own library counts. "asan" or "valgrind" as the first argument picks one of them, a further one
# the test files whose names match it.
set -euo pipefail
source "$(dirname "$0")/common.sh"

watchers="asan valgrind"
case ${1:-} in asan | valgrind) watchers=$1; shift ;; esac
is_wanted() { [[ " $watchers " == *" $1 "* ]]; }

tarball=$(build_tarball)

# build_with <library> <flags>: our own library with these flags, for compiler and linker. -g is for
# gdb, which then knows types; watchers say lines, for which -g1 is enough and compiles faster.
build_with() {
  local how="${DEBUG_INFORMATION:--g} -O1 -fno-omit-frame-pointer -DLE_DEBUG -I$root/tools/debug $2"
  printf 'CC = gcc\nCFLAGS = %s\nLDFLAGS = %s\n' "$how" "$2" > "$scratch/Makevars"
  LOGEVIDENCE_DEBUG=1 R_MAKEVARS_USER=$scratch/Makevars \
    install_tarball "$tarball" "$1" --no-docs --no-test-load
}

status=0

with_asan() {
  echo "AddressSanitizer and UndefinedBehaviorSanitizer"
  flags="-fsanitize=address,undefined,float-cast-overflow"
  build_with "$scratch/asan" "$flags -fno-sanitize-recover=undefined,float-cast-overflow"
  # R itself is not built with the sanitizers, so their library must come first by preloading. R
  # never frees its own heap at exit: leaks are valgrind's to find.
  preload="$(gcc -print-file-name=libasan.so) $(gcc -print-file-name=libubsan.so)"
  if (cd "$root" && env LD_PRELOAD="$preload" ASAN_OPTIONS=detect_leaks=0:strict_string_checks=1 \
    UBSAN_OPTIONS=print_stacktrace=1 NOT_CRAN=true LOGEVIDENCE_PATIENCE=30 MC_CORES=$cores \
    LOGEVIDENCE_CROSSINGS=${LOGEVIDENCE_CROSSINGS:-pairs} \
    LOGEVIDENCE_MAKEVARS="$scratch/Makevars" \
    R_LIBS="$scratch/asan${R_LIBS:+:$R_LIBS}" \
    R --no-echo --no-restore --no-save --file=tools/run-tests.R --args "$@"); then
    echo "ok      sanitizers"
  else
    echo "FAILED  sanitizers"
    status=1
  fi
}

valgrind_script() {
  echo "valgrind"
  build_with "$scratch/valgrind" ""
  local tool="valgrind --quiet --leak-check=full --show-leak-kinds=definite --num-callers=30"
  if ! (cd "$scratch" && env R_LIBS="$scratch/valgrind${R_LIBS:+:$R_LIBS}" OMP_NUM_THREADS=2 \
    MODELS=mean,linear,noise,jzs,softmax,mixture THREADS=2 \
    R --no-restore --no-save --no-echo --file="$root/tools/every-method.R" \
    -d "$tool --xml=yes --xml-file=$scratch/valgrind.xml"); then
    echo "FAILED  valgrind: the script stopped"
    status=1
  elif Rscript "$root/tools/valgrind-report.R" "$scratch/valgrind.xml"; then
    echo "ok      valgrind"
  else
    echo "FAILED  valgrind"
    status=1
  fi
}

if is_wanted asan; then with_asan "$@"; fi
if is_wanted valgrind; then valgrind_script; fi
exit $status
