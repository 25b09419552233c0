# Feeds the layer lint a small clean tree, which it must pass, and the same tree with one bad line
# at a time, which it must refuse at the right place. A lint that cannot fail proves nothing.
#
# Then it adds the toys of ARCHITECTURE.md (model, kernel, method, family, check, source, verb on
# fits) to a copy of the checkout, which the lint must pass and the compiler accept, counts their
# edits, which are stated there and at most five, and removes them again (tools/toys.R runs them).

here <- dirname(normalizePath(sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))))

clean <- list(
  "src/Makevars.in" = c(
    "# base/old.o is gone",
    "base = base/status.o \\", "  base/simd.o",
    "OBJECTS = $(base) core/target.o core/rows.o core/saved.o models/linear.o kernels/rwm.o \\",
    "  estimators/walk.o registry.o bridge/init.o"
  ),
  "inst/include/logevidence.h" = c(
    "#include <stddef.h>", "#ifdef __cplusplus", "extern \"C\" {", "#endif",
    "typedef struct le_ops { void (*free)(void *); size_t size; } le_ops;",
    "enum le_colour { LE_RED, LE_BLUE };",
    "static inline int le_twice(int x) { return 2 * x; }",
    "#ifdef __cplusplus", "}", "#endif"
  ),
  "src/base/status.h" = c("#include \"logevidence.h\"", "struct arena;",
                          "int le_fail(void (*tell)(int));", "extern int le_level;"),
  "src/base/status.c" = c(
    "/* printf( and exit( in a comment, malloc( too */", "#include \"base/status.h\"",
    "static const char *const words[] = { \"abort(\", \"b;{\" };",
    "static int (*exp_block)(double *, int); /* filled at load */",
    "int le_fail(void (*tell)(int))",
    "{ for (int i = 0; i < 2; i++) { tell(words[0][i]); } return exp_block != 0; }"
  ),
  "src/base/simd.c" = c("#include <stdlib.h>", "#include \"status.h\"",
                        "void *le_get(size_t n) { return malloc(n); }"),
  "src/core/target.h" = c("#include \"base/status.h\"", "typedef struct { int a; } le_target;"),
  "src/core/target.c" = c(
    "#include \"core/target.h\"", "__attribute__((unused)) static int twice(int x)", "{",
    "  static const int two = 2;",
    "  struct { int y; } local = { x };", "  int table[] = { 1, 2 };",
    "  return two * local.y * table[0];", "}",
    "void le_close(const le_ops *ops, void *p) { ops->free(p); }"
  ),
  "src/core/rows.h" = c("#include \"core/target.h\"",
                        "static inline int le_all(le_target *t) { return t->gone == 0; }"),
  # what is saved, and what says why it is not
  "src/core/saved.h" = c(
    "#include \"core/target.h\"", "typedef struct le_part { double x; } le_part;",
    "typedef struct le_saved {", "  le_target base;", "  const le_target *other;",
    "  int (*call)(int a, int b); /* set once */", "  double table, *array; size_t local;",
    "  size_t n, m; /* set once: two", "                * sizes */",
    "  double a[2], *b; /* scratch */", "  le_part part;", "} le_saved;"
  ),
  "src/core/saved.c" = c(
    "#include \"core/saved.h\"", "#define FIELD(member) LE_FIELD(le_saved, member)",
    "static const le_field fields[] = {FIELD(base.a), FIELD(table)};",
    "void le_saved_archive(le_saved *saved, le_archive *archive)", "{",
    "  size_t local = saved->local;", "  LE_ARCHIVE_FIELDS(archive, saved, fields);",
    "  le_archive_size(archive, &local);", "  le_archive_doubles(archive, saved->array, saved->n);",
    "  le_archive_doubles(archive, &saved->part.x, 1);", "}"
  ),
  "src/core/rows.c" = c("#include \"core/rows.h\"", "void *le_ends(le_target *t)", "{",
                        "  le_close(0, t);", "  return t;", "}",
                        "const int le_sizes[] = { 1, 2 };"),
  "src/models/linear.c" = c("#include <stdlib.h>", "#include \"../core/target.h\"",
                            "void *le_mine(void) { return calloc(1, 8); }"),
  "src/kernels/rwm.c" = c("#include \"core/target.h\"", "static int draw(le_target *t);",
                          "static int draw(le_target *t) { return t->a; }",
                          "int le_draw(le_target *t) { return draw(t); }"),
  "src/kernels/rwm.h" = "int le_move(void);",
  "src/estimators/walk.c" = c("#include \"core/target.h\"",
                              "const le_ops le_walk = { .free = 0, .size = sizeof(le_ops) };"),
  "R/base-draws.R" = c("draws <- function(x) {", "  inner <- function() x", "  inner()", "}"),
  "R/fit-plot.R" = c("plot_draws <- function(x) {", "  inner <- function() draws(x)", "  inner()",
                     "}"),
  "R/spec-method.R" = c("ais <- function() new_method(\"ais\", match.call())",
                   "own <- function(m) m$name == \"ais\"",
                   "rwm <- function() new_kernel(\"rwm\", list())",
                   "words <- function() c(\"ais\", \"of another kind\")",
                   "FAMILIES <- list(beta = list(links = 1))",
                   "own_family <- function(f) f$family == \"beta\""),
  # the name of a variable is no use of the function
  "R/fit-print.R" = "show <- function(x) { draws <- plot_draws(x); draws }",
  "bench/speed.R" = paste0("logevidence::", ":plot_draws(1)"),
  "src/registry.h" = "const le_ops *le_find(const char *name);",
  "src/registry.c" = c("#include \"kernels/rwm.h\"", "#include \"registry.h\"",
                       "static const le_ops *const table[] = { 0 };",
                       "const le_ops *le_find(const char *name) { return table[name[0] == 'a']; }"),
  "src/bridge/init.c" = c("#include <R.h>", "#include <R_ext/Rdynload.h>",
                          "#include \"registry.h\"", "#include \"base/status.h\"",
                          "void R_init_x(DllInfo *dll) { Rprintf(\"hello\"); }")
)

# file, line to add, what the lint must say
bad <- list(
  list("src/base/status.c", "#include \"core/target.h\"", "base must not include core"),
  list("src/base/simd.c", "#include \"../core/target.h\"", "base must not include core"),
  list("src/core/target.c", "#include \"kernels/rwm.h\"", "core must not include kernels"),
  list("src/models/linear.c", "#include \"kernels/rwm.h\"",
       "models must not include its sibling kernels"),
  list("src/estimators/walk.c", "#include \"kernels/rwm.h\"",
       "estimators must not include its sibling kernels"),
  list("src/estimators/walk.c", "#include \"registry.h\"", "estimators must not include registry"),
  list("src/core/target.h", "#include \"core/rows.h\"",
       "`core/target` and `core/rows` need each other"),
  list("src/core/target.c", "#include \"core/rows.h\"",
       "`core/target` and `core/rows` need each other"),
  list("src/core/target.c", "void le_k(le_target *t) { le_ends(t); }",
       "need each other, here by `le_ends`"),
  list("src/core/target.c", "int le_l(int k) { return le_sizes[k]; }",
       "need each other, here by `le_sizes`"),
  list("src/core/target.c", "  #  include \"core/nowhere.h\"", "is no file of src/"),
  list("src/core/target.c", "#include <Rinternals.h>", "belongs in src/bridge only"),
  list("src/registry.c", "#include <R_ext/Utils.h>", "belongs in src/bridge only"),
  list("inst/include/logevidence.h", "#include <Rmath.h>", "belongs in src/bridge only"),
  list("src/core/target.c", "void *le_a(void) { return malloc(8); }",
       "`malloc` is not for this folder"),
  list("src/kernels/rwm.c", "void le_b(void *p) { free (p); }", "`free` is not for this folder"),
  list("src/estimators/walk.c", "#define GET(n) calloc(n, 8)", "`calloc` is not for this folder"),
  list("src/models/linear.c", "void le_c(void) { printf(\"x\"); }", "`printf` has no place"),
  list("src/base/simd.c", "void le_d(void) { fprintf(stderr, \"x\"); }", "`stderr` has no place"),
  list("src/bridge/init.c", "void le_e(void) { exit(1); }", "`exit` would end"),
  list("src/base/simd.c", "void le_f(void) { abort(); }", "`abort` would end"),
  list("src/models/linear.c", "int le_g(void) { return rand(); }", "`rand` is not reproducible"),
  list("src/bridge/init.c", "void le_h(void) { longjmp(buf, 1); }", "`longjmp` would jump"),
  list("src/estimators/walk.c", "int le_k(le_target *t) { return t->gone; }",
       "`gone` is known to core/rows alone"),
  list("src/core/target.c", "int le_l(le_target t) { int gone = 0; return t.gone + gone; }",
       "`gone` is known to core/rows alone"),
  list("src/base/simd.c", "static int counter;", "`static int counter` is a variable"),
  list("src/base/simd.c", "int counter = 3;", "`int counter` is a variable"),
  list("src/base/simd.c", "static double cache[10] = { 1, 2 };",
       "`static double cache[10]` is a variable"),
  list("src/base/simd.c", "static struct state { int a; } now;", "is a variable"),
  list("src/base/simd.c", "static void (*hook)(int);", "is a variable"),
  list("src/base/simd.c", "static gsl_rng *stream;", "is a variable"),
  list("src/core/target.c",
       "int le_i(void) { static int calls; if (1) { return ++calls; } return 0; }",
       "`static int calls` is a variable"),
  list("src/core/target.c",
       "int le_j(void) { if (1) { static int deep = 0; return ++deep; } return 0; }",
       "`static int deep` is a variable"),
  list("src/Makevars.in", "more = base/ghost.o", "base/ghost.o, which has no source"),
  list("src/Makevars.in", "more = base/simd.o", "base/simd.o is listed twice"),
  list("src/base/orphan.c", "int le_k(void);", "the file is not in OBJECTS"),
  list("src/helpers/more.c", "int le_l(void);", "not `helpers`"),
  list("R/fit-plot.R", "draws <- function(y) y", "`draws` is defined in R/base-draws.R:1 too"),
  list("R/base-draws.R", "early <- function(x) plot_draws(x)",
       "`plot_draws` is of R/fit-plot.R, in the layer \"fit\", which is above \"base\""),
  list("R/fit-plot.R", "late <- function(x) show(x)",
       "a circle of files: R/fit-plot.R, R/fit-print.R"),
  list("R/other.R", "other <- 1", "the file is in no layer"),
  list("R/fit-plot.R", "f <- function(m) m$name == \"ais\"", "asks for a name: `ais`"),
  list("R/fit-plot.R", "f <- function(m) if (m$kernel$name %in% OTHERS(\"rwm\")) 1",
       "a name: `rwm`"),
  list("R/fit-plot.R", "f <- function(m) switch(m$name, ais = 1, 2)", "asks for a name: `ais`"),
  list("R/fit-plot.R", "f <- function(m) inherits(m, c(\"ais\", \"x\"))", "asks for a name: `ais`"),
  list("R/fit-plot.R", "f <- function(m) m$estimator == \"walk\"", "the name of an engine"),
  list("R/fit-plot.R", "f <- function(m) grepl(\"_linear_\", model_type(m))",
       "of a model or family in C"),
  list("R/fit-plot.R", "f <- function(m) m$family$family != \"beta\"", "asks for a name: `beta`"),
  list("R/fit-plot.R", "f <- function(m) startsWith(family_type(m), \"b\")", "or family in C"),
  list("R/fit-plot.R", "NAMES <- c(\"ais\", \"rwm\")", "a list of names: `ais`, `rwm`"),
  list("R/fit-plot.R", "TABLE <- c(ais = \"ais\", rwm = \"rwm\")", "a list of names: `ais`, `rwm`"),
  list("R/base-draws.R", "TREE_FIELDS <- list(leaf = 1); f <- function(tree) tree$leaf + tree$bud",
       "`bud` is no field of TREE_FIELDS"),
  list("R/base-draws.R", "TREE_FIELDS <- list(leaf = 1)", "no code has `tree$leaf`"),
  list("src/kernels/rwm.c", "int le_n(const char *s) { return strcmp(s, \"x\"); }",
       "`strcmp` compares names"),
  # put together here, as the lint looks at this file too
  list("bench/more.R", paste0("logevidence::", ":gone(1)"), "the package has no `gone`"),
  list("R/fit-plot.R", strrep("#", 101), "the line has 101 columns"),
  list("src/base/simd.c", paste0("/*", strrep("x", 97), "*/"), "the line has 101 columns")
)

# a line to change, what with, what the lint must say
changed <- list(
  list("FIELD(base.a), FIELD(table)", "FIELD(base.a)", "`table` of le_saved is not saved"),
  list("  le_archive_doubles(archive, saved->array, saved->n);", "", "`array` of le_saved is not"),
  list("&local);", "&other);", "`local` of le_saved is not saved"),
  list("&saved->part.x", "&x", "`part` of le_saved is not saved"),
  list("} le_saved;", "  int more; } le_saved;", "`more` of le_saved is not saved"),
  list("  le_part part;", "  le_part part; /* more */ int c, d[2];", "`d` of le_saved is not"),
  list("double x;", "double x, y;", "`y` of le_part is not saved"),
  list("  int (*call)(int a, int b); /* set once */", "  int (*call)(int a, int b);",
       "`call` of le_saved is not saved"),
  list("  const le_target *other;", "  le_target *other;", "`other` of le_saved is not saved"),
  list("size_t local;", "size_t local; /* set once */", "`local` of le_saved is saved, but")
)

# The lint as in a process of its own: it is told the folder, prints and quits.
LINT <- parse(file.path(here, "lint-layers.R"), keep.source = FALSE)
run_lint <- function(folder) {
  process <- new.env(parent = globalenv())
  process$commandArgs <- function(...) folder
  process$quit <- function(status) stop(errorCondition("it quits", class = "quit"))
  output <- utils::capture.output(failed <- tryCatch({
    for (step in LINT) eval(step, process)
    FALSE
  }, quit = function(condition) TRUE))
  list(output = output, failed = failed)
}

lint <- function(tree) {
  folder <- tempfile("lint-")
  on.exit(unlink(folder, recursive = TRUE))
  for (file in names(tree)) {
    dir.create(dirname(file.path(folder, file)), recursive = TRUE, showWarnings = FALSE)
    writeLines(tree[[file]], file.path(folder, file))
  }
  run_lint(folder)
}

wrong <- character()
result <- lint(clean)
if (result$failed) wrong <- c(wrong, "the clean tree was refused:", paste0("  ", result$output))
for (case in bad) {
  tree <- clean
  tree[[case[[1]]]] <- c(tree[[case[[1]]]], case[[2]])
  place <- sprintf("%s:%d:", case[[1]], length(tree[[case[[1]]]]))
  result <- lint(tree)
  seen <- startsWith(result$output, place) & grepl(case[[3]], result$output, fixed = TRUE)
  if (!result$failed || !any(seen)) {
    wrong <- c(wrong, sprintf("not seen: %s %s  [%s]", place, case[[2]], case[[3]]),
               paste0("  ", result$output))
  }
}

for (case in changed) {
  tree <- lapply(clean, function(lines) sub(case[[1]], case[[2]], lines, fixed = TRUE))
  result <- lint(tree)
  seen <- grepl(case[[3]], result$output, fixed = TRUE)
  if (identical(tree, clean) || !result$failed || !any(seen))
    wrong <- c(wrong, sprintf("not seen: %s  [%s]", case[[2]], case[[3]]), result$output)
}

# ---- the toys

source(file.path(here, "toys.R"))
root <- dirname(here)
config <- function(what) system2(file.path(R.home("bin"), "R"), c("CMD", "config", what),
                                 stdout = TRUE)

compiles <- function(copy, file) {
  flags <- c("-fsyntax-only", "-Wall", "-Wextra", "-Werror", paste0("-I", copy, "/src"),
             paste0("-I", copy, "/inst/include"), system2("gsl-config", "--cflags", stdout = TRUE))
  system(paste(c(config("CC"), flags, file.path(copy, file)), collapse = " ")) == 0
}

diffs <- toy_diffs(root)
if (length(diffs) < 7) wrong <- c(wrong, "ARCHITECTURE.md does not have seven diffs")
broken <- list(diffs[[1]], diffs[[1]])
broken[[1]]$new <- broken[[1]]$new[1]
broken[[2]]$edits <- broken[[2]]$edits[c(1, 2, 1, 2), ]
broken[[2]]$stated <- edits_of(broken[[2]])
if (any(lengths(lapply(broken, promise_broken)) == 0))
  wrong <- c(wrong, "not seen: another number of edits than stated, or six of them")
copy <- checkout_copy(root)
before <- contents_of(copy)
for (diff in diffs) {
  wrong <- c(wrong, promise_broken(diff))
  add_toy(diff, root, copy)
  for (file in c(grep("\\.c$", c(diff$new, diff$edits$file), value = TRUE)))
    if (!compiles(copy, file)) wrong <- c(wrong, paste(file, "does not compile with a toy"))
  for (file in grep("\\.R$", diff$new, value = TRUE)) parse(file.path(copy, file))
}
result <- run_lint(copy)
if (result$failed)
  wrong <- c(wrong, "the copy with the toys was refused:", paste0("  ", result$output))
# What follows is about C: half of the time of the lint is for the calls in R/.
in_r <- file.path(copy, "R")
aside <- tempfile("R-")
stopifnot(file.rename(in_r, aside))
# a further member of each struct that is saved
sources <- list.files(file.path(copy, "src"), "[.][ch]$", recursive = TRUE, full.names = TRUE)
whole <- lapply(sources, readLines, warn = FALSE)
for (i in seq_along(sources))
  writeLines(sub("^(\\} \\w+;)$", "  int forgotten_member;\n\\1", whole[[i]]), sources[i])
output <- grep("`forgotten_member` of", run_lint(copy)$output, value = TRUE)
if (length(output) < 35) wrong <- c(wrong, "a further member of a struct that is saved:", output)
for (i in seq_along(sources)) writeLines(whole[[i]], sources[i])
# without its line in OBJECTS a new file would be left out
for (diff in diffs) {
  listed <- grepl("Makevars", diff$edits$file)
  remove_toy(list(new = character(), edits = diff$edits[listed, ]), copy)
}
output <- run_lint(copy)$output
stopifnot(file.rename(aside, in_r))
for (diff in diffs) {
  in_c <- grep("\\.c$", diff$new, value = TRUE)
  if (length(in_c) && !any(startsWith(output, paste0(in_c, ":1:"))))
    wrong <- c(wrong, paste("not seen:", diff$new[1], "is not in OBJECTS"))
  remove_toy(diff, copy)
}
if (!identical(contents_of(copy), before)) wrong <- c(wrong, "the toys were not removed")
unlink(copy, recursive = TRUE)

if (length(wrong)) {
  writeLines(wrong)
  quit(status = 1)
}
cat("the lint passes a clean tree, refuses", length(bad) + length(changed), "bad ones, and takes",
    length(diffs), "toys\n")
for (diff in diffs) cat("  edits: ", edits_of(diff), ", new: ", toString(diff$new), "\n", sep = "")
