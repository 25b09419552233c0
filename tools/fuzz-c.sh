#!/usr/bin/env bash
# The C code that reads what others have made, under libFuzzer with AddressSanitizer and
# UndefinedBehaviorSanitizer: lines of text files (csv), states of runs with a right checksum
# (state), and numbers of settings and rows (settings). Inputs that reach new code are kept for the
# length of the run. A crash, a time of 20 seconds or 3 GB of memory is a finding: its input is
# written to fuzz-c-findings, which INPUT=<file> runs again.
#
#   make fuzz-c                              60 seconds of each target
#   make fuzz-c TARGET=state SECONDS=3600
#   make fuzz-c TARGET=state INPUT=fuzz-c-findings/crash-...
set -euo pipefail
source "$(dirname "$0")/common.sh"

seconds=${SECONDS_OF_FUZZ:-60}
targets=${TARGET:-csv state settings}
watched="-fsanitize=address,undefined,float-cast-overflow -fno-sanitize-recover=all"
findings=$root/fuzz-c-findings

# The library counts its own branches; the fuzzer's main function is in the program alone.
printf 'CC = clang\nCFLAGS = -g -O1 -fno-omit-frame-pointer -fsanitize=fuzzer-no-link %s\n' \
  "$watched" > "$scratch/Makevars"
printf 'LDFLAGS =\nSHLIB_OPENMP_CFLAGS =\n' >> "$scratch/Makevars"
R_MAKEVARS_USER=$scratch/Makevars \
  install_tarball "$(build_tarball)" "$scratch/lib" --no-docs --no-test-load
# shellcheck disable=SC2046,SC2086
clang -g -O1 -fsanitize=fuzzer $watched $(R CMD config --cppflags) \
  "$root/tools/fuzz-c/fuzz.c" -o "$scratch/fuzz" $(R CMD config --ldflags) -rdynamic

export R_LIBS=$scratch/lib${R_LIBS:+:$R_LIBS} R_HOME OMP_NUM_THREADS=1
R_HOME=$(R RHOME)
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=1000
export UBSAN_OPTIONS=print_stacktrace=1 FUZZ_TARGET=$root/tools/fuzz-c/targets.R
cd "$root"
mkdir -p "$findings"
status=0
for target in $targets; do
  corpus=$scratch/$target
  mkdir -p "$corpus"
  what=("$corpus" "-max_total_time=$seconds")
  [ -z "${INPUT:-}" ] || what=("$INPUT")
  if TARGET=$target WRITE_CORPUS=$corpus "$scratch/fuzz" -timeout=20 -rss_limit_mb=3000 \
    -malloc_limit_mb=100000 -max_len=100000 -print_final_stats=1 \
    "-artifact_prefix=$findings/$target-" "${what[@]}" > "$scratch/log" 2>&1; then
    echo "ok      $target: $(grep -oE 'number_of_executed_units: [0-9]+' "$scratch/log" |
      grep -oE '[0-9]+$' || echo 1) inputs"
  else
    echo "FAILED  $target"
    grep -aE 'ERROR|runtime error|not a sentence|/src/|Test unit|SUMMARY' "$scratch/log" | head -40
    status=1
  fi
done
rmdir "$findings" 2> /dev/null || true
exit $status
