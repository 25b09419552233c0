#!/usr/bin/env bash
# Checks the index and the links of the site (tools/links.R), and renders the articles that the site
# has and the package has not (.Rbuildignore, for CRAN's limit of size) in a scratch folder; those
# of the package are rendered by R CMD check.
set -euo pipefail
source "$(dirname "$0")/common.sh"

cp -r "$root/vignettes" "$scratch/vignettes"
# an article reads a table of the papers
mkdir "$scratch/reproduce"
cp -r "$root/reproduce/results" "$scratch/reproduce/results"
cd "$root"
Rscript tools/links.R
for article in vignettes/*.Rmd; do
  if Rscript -e 'quit(status = !any(vapply(readLines(".Rbuildignore"), grepl, NA, commandArgs(TRUE),
                                           perl = TRUE)))' "$article"; then
    before=$SECONDS
    if ! tools/with-lib.sh Rscript -e 'rmarkdown::render(commandArgs(TRUE), quiet = TRUE)' \
      "$scratch/$article" > "$scratch/render.log" 2>&1; then
      echo "$article cannot be rendered:" >&2
      cat "$scratch/render.log" >&2
      exit 1
    fi
    echo "$article: $((SECONDS - before)) s"
  fi
done
