#!/usr/bin/env bash
# R CMD build and R CMD check --as-cran in a scratch folder.  Fails on every error, warning and note
# but the one that a package new to CRAN cannot avoid. The tests run as CRAN runs them: those of
# what may depend on the machine (tests/testthat.R), `make test` and `make thorough` have all.
set -euo pipefail
source "$(dirname "$0")/common.sh"
compile_once

# What needs the internet, or a tool this machine lacks, is left out; it would only give a note.
export _R_CHECK_CRAN_INCOMING_REMOTE_=false
export _R_CHECK_SYSTEM_CLOCK_=false
export _R_CHECK_XREFS_USE_ALIASES_FROM_CRAN_=false
has() { command -v "$1" > /dev/null 2>&1; }
has tidy || export _R_CHECK_RD_VALIDATE_RD2HTML_=false
has checkbashisms || export _R_CHECK_BASHISMS_=false
Rscript -e 'quit(status = !requireNamespace("V8", quietly = TRUE))' > /dev/null 2>&1 ||
  export _R_CHECK_RD_MATH_RENDERING_=false
manual=()
has pdflatex || manual=(--no-manual)

# Flags that Debian's own build of R adds to every package.
export _R_CHECK_COMPILATION_FLAGS_KNOWN_="-Wformat -Werror=format-security -Wdate-time"

unset NOT_CRAN LOGEVIDENCE_SLOW LOGEVIDENCE_TOTALS R_LIBS || true

cd "$scratch"
R CMD build ${manual[@]+"${manual[@]}"} "$root"
status=0
# Without --run-donttest --as-cran runs all examples twice: without \donttest, then with it.
R CMD check --as-cran --run-donttest ${manual[@]+"${manual[@]}"} logevidence_*.tar.gz || status=$?

log=logevidence.Rcheck/00check.log
if [ ! -f "$log" ]; then
  echo "R CMD check left no log." >&2
  exit 1
fi

# An item of the log runs from its "* checking" line to the next. Those that are not clean are
# printed; the log's own count at its end must agree that there is nothing else.
awk '
  function finish() {
    if (item ~ /(ERROR|WARNING|NOTE)$/) {
      if (incoming && !other) allowed = 1
      else printf "%s", text
    }
  }
  /^\* / { finish(); item = $0; text = ""; other = 0; incoming = /CRAN incoming feasibility/ }
  /^ *(\[[^]]*\] )?(ERROR|WARNING|NOTE)$/ { item = $0 }
  !/^\* / && !/^Maintainer: / && !/^New submission$/ && !/^ *$/ { other = 1 }
  { text = text $0 "\n" }
  /^Status: / { said = $0 }
  END { exit !(said == "Status: OK" || (allowed && said == "Status: 1 NOTE")) }
' "$log" > findings || status=1

if [ "$status" -ne 0 ]; then
  echo
  echo "R CMD check is not clean:"
  cat findings
  if grep -q install findings; then
    echo "--- what the compiler said"
    grep -vE '^(gcc|cc|clang)[ -]' logevidence.Rcheck/00install.out || true
  fi
  for output in logevidence.Rcheck/tests/*.fail; do
    if [ -f "$output" ]; then
      echo "--- the end of ${output#logevidence.Rcheck/}"
      tail -n 60 "$output"
    fi
  done
  exit 1
fi
echo "R CMD check is clean."
