# lint-layers.R [folder]: holds the code to the rules of the house and prints each breach as
# "file:line: sentence".  The folder is the checkout, "." unless told.
#
#   layers     base <- core <- {models | kernels | estimators} <- registry <- bridge.  A file
#              includes its own folder and those to the left; the three siblings never include one
#              another. logevidence.h lies below everything.  R's headers are for the bridge alone.
#   circles    no file needs one that needs it: a file is a .c with its .h, and needs what either
#              includes and whose functions or tables the .c names.
#   R          the same for R/: a file's name begins with its layer (`r_layers` below). A file uses
#              functions of its own layer and of those before, and none of a file that uses it.
#   traits     no file but its own asks for the name or class of a method, kernel, model or family,
#              or has a list of such names: constructors and FAMILIES declare traits. In C core,
#              models, kernels and estimators compare no words but in files called settings.c.
#   fields     where R/ has a table such as FEED_FIELDS, fields of a variable `feed` are in it, and
#              each field of it is used.
#   memory     core, kernels and estimators take memory from base/arena, never from malloc.
#   manners    nothing prints, exits, jumps or uses rand: a status says what went wrong.
#   rows       only core/rows knows which rows are gone: others ask the contract of core/sums.h.
#   state      no variable outlives a call.  One that is set while the library loads says so in a
#              comment with the words "filled at load" on its line.
#   saved      of a struct that is saved (base/archive.h) each member is saved or is said not to be,
#              in a table or in the comment behind it: "set once", "scratch" or "derived".
#   contents   OBJECTS in src/Makevars.in and the files in src/ are the same list.
#   names      no name is defined by two files of R/, as the second would replace the first.
#   width      lines of code have at most 100 columns.

root <- c(commandArgs(trailingOnly = TRUE), ".")[[1]]
breaches <- character()
breach <- function(file, line, ...) {
  breaches <<- c(breaches, sprintf("%s:%d: %s", file, line, paste0(...)))
}

rank <- c(base = 0, core = 1, models = 2, kernels = 2, estimators = 2, registry = 3, bridge = 4)

# "src/models/linear.c" lies in layer "models", "src/registry.h" in "registry".
layer_of <- function(file) {
  part <- strsplit(sub("^src/", "", file), "/", fixed = TRUE)[[1]]
  if (length(part) == 1) sub("\\.[^.]*$", "", part) else part[[1]]
}

# A file is in the layer that its name begins with.
r_layers <- c("base", "spec", "rows", "run", "call", "fit", "change", "develop")

r_header <- "^(R|Rinternals|Rmath|Rdefines|Rversion|Rconfig|Rembedded|Rinterface|S)\\.h$|^R_ext/"

# Comments and the insides of literals become blanks; lines stay where they are.
without_comments <- function(text) {
  pattern <- "(?s)/\\*.*?\\*/|//[^\n]*|\"(?:\\\\.|[^\"\\\\\n])*\"|'(?:\\\\.|[^'\\\\\n])*'"
  found <- gregexpr(pattern, text, perl = TRUE)
  regmatches(text, found) <- lapply(regmatches(text, found), function(literals) {
    quoted <- grepl("^[\"']", literals)
    ifelse(quoted, strrep(substr(literals, 1, 1), 2), gsub("[^\n]", "", literals))
  })
  text
}

as_lines <- function(text) strsplit(paste0(text, "\n"), "\n", fixed = TRUE)[[1]]

# ---- layers

tidy_path <- function(path) {
  part <- character()
  for (step in strsplit(path, "/", fixed = TRUE)[[1]]) {
    if (step == "..") part <- utils::head(part, -1) else if (step != ".") part <- c(part, step)
  }
  paste(part, collapse = "/")
}

# For circles: a row for each include.
needs <- data.frame(from = character(), to = character(), file = character(), line = integer(),
                    by = character())
stem_of <- function(file) sub("\\.[a-z]+$", "", sub("^src/", "", file))
note_need <- function(from, to, file, line, by) {
  if (stem_of(from) != stem_of(to))
    needs[nrow(needs) + 1, ] <<- list(stem_of(from), stem_of(to), file, line, by)
}

check_includes <- function(file, lines) {
  from <- layer_of(file)
  public <- startsWith(file, "inst/")
  if (!public && !from %in% names(rank)) {
    breach(file, 1L,
           "src/ holds base, core, models, kernels, estimators, bridge and registry, not `", from,
           "`.")
    return()
  }
  pattern <- "^\\s*#\\s*include\\s*([<\"])([^>\"]+)[>\"].*"
  for (line in grep(pattern, lines)) {
    quote <- sub(pattern, "\\1", lines[line])
    name <- sub(pattern, "\\2", lines[line])
    if (grepl(r_header, name)) {
      if (public || from != "bridge")
        breach(file, line, "R's header `", name, "` belongs in src/bridge only.")
      next
    }
    if (quote == "<" || basename(name) == "logevidence.h") next
    candidates <- c(tidy_path(file.path(dirname(file), name)), file.path("src", tidy_path(name)))
    candidates <- candidates[file.exists(file.path(root, candidates))]
    if (!length(candidates)) {
      breach(file, line, "`", name,
             "` is no file of src/; write it from src/, as \"base/status.h\".")
    } else if (public) {
      breach(file, line, "the public header must stand alone, without `", name, "`.")
    } else {
      note_need(file, candidates[[1]], file, line, name)
      to <- layer_of(candidates[[1]])
      if (!to %in% names(rank)) {
        breach(file, line, "`", name, "` lies in none of the layers.")
      } else if (from != to && rank[[to]] == rank[[from]]) {
        breach(file, line, from, " must not include its sibling ", to, " (`", name, "`).")
      } else if (rank[[to]] > rank[[from]]) {
        breach(file, line, from, " must not include ", to, ", which lies above it (`", name, "`).")
      }
    }
  }
}

# ---- memory and manners

# A call, not a member of that name: `ops->free(state)` is a contract's own.
call_of <- function(names) sprintf("(?<![\\w.>])(%s)\\s*\\(", paste(names, collapse = "|"))

report_matches <- function(file, lines, pattern, sentence) {
  for (line in grep(pattern, lines, perl = TRUE)) {
    found <- regmatches(lines[line], regexpr(pattern, lines[line], perl = TRUE))
    breach(file, line, "`", sub("[[:space:](]+$", "", found), "` ", sentence)
  }
}

check_calls <- function(file, lines) {
  if (layer_of(file) %in% c("core", "kernels", "estimators")) {
    memory <- c("malloc", "calloc", "realloc", "free", "alloca", "aligned_alloc", "posix_memalign",
                "strdup", "strndup")
    report_matches(file, lines, call_of(memory),
                   "is not for this folder: memory comes from base/arena.")
  }
  printing <- c("printf", "fprintf", "vprintf", "vfprintf", "puts", "fputs", "putchar", "perror",
                "sprintf", "vsprintf")
  report_matches(file, lines, call_of(printing),
                 "has no place here: text for the user travels in a status.")
  report_matches(file, lines, "(?<![\\w.>])(stdout|stderr)\\b",
                 "has no place here: text for the user travels in a status.")
  ending <- c("exit", "_exit", "_Exit", "quick_exit", "abort", "assert")
  report_matches(file, lines, call_of(ending), "would end the user's session: return a status.")
  jumping <- c("longjmp", "_longjmp", "siglongjmp", "setjmp", "_setjmp", "sigsetjmp")
  report_matches(file, lines, call_of(jumping),
                 "would jump over frames that hold memory: return a status.")
  if (layer_of(file) %in% c("core", "models", "kernels", "estimators") &&
      basename(file) != "settings.c")
    report_matches(file, lines, call_of(c("strcmp", "strncmp", "strcasecmp")),
                   "compares names: let a table say what differs.")
  chance <- c("rand", "srand", "rand_r", "random", "srandom", "drand48")
  report_matches(file, lines, call_of(chance), "is not reproducible: draw from base/rng.")
}

# ---- rows

check_rows <- function(file, lines) {
  if (file %in% c("src/core/rows.h", "src/core/rows.c")) return()
  report_matches(file, lines, "(?<=\\.|->)gone\\b",
                 "is known to core/rows alone: ask le_rows_of(), as core/sums.h says.")
}

# ---- state

# A statement's text with braces emptied; is it a variable that can change?
is_mutable <- function(statement, inside_function) {
  statement <- gsub("__attribute__\\s*\\(\\((?:[^()]|\\([^()]*\\))*\\)\\)|_Alignas\\s*\\([^)]*\\)",
                    " ", statement, perl = TRUE)
  statement <- trimws(gsub("\\s+", " ", statement))
  if (!grepl("\\w", statement) || grepl("\\bconst\\b", statement)) return(FALSE)
  if (inside_function) return(grepl("^(static|_Thread_local|__thread)\\b", statement) &&
                              !grepl("\\binline\\b", statement))
  if (grepl("^(typedef|extern|_Static_assert|static_assert)\\b", statement)) return(FALSE)
  if (grepl("^(static )?(struct|union|enum)( \\w+)?( ?\\{\\})?$", statement)) return(FALSE)
  declarator <- sub("=.*", "", statement)
  # a prototype or a macro
  if (grepl("^[^(]*\\w ?\\(", declarator) && !grepl("^[^(]*\\( ?\\*", declarator)) return(FALSE)
  grepl("^[A-Za-z_][\\w ]*[ *]+\\(?[ *]*[A-Za-z_]", declarator, perl = TRUE) ||
    grepl("\\}", declarator)
}

check_state <- function(file, text, original) {
  lines <- as_lines(text)
  continued <- FALSE
  for (i in seq_along(lines)) { # the preprocessor's lines are not statements
    directive <- continued || grepl("^\\s*#", lines[i])
    continued <- directive && grepl("\\\\\\s*$", lines[i])
    if (directive) lines[i] <- ""
  }
  text <- gsub("extern\\s+\"\"\\s*\\{", "", paste(lines, collapse = "\n"))
  at <- gregexpr("[{};]", text)[[1]]
  if (at[1] == -1) return()
  marks <- substring(text, at, at)
  between <- substring(text, c(1, at + 1), c(at - 1, nchar(text)))
  line_at <- 1 + cumsum(nchar(gsub("[^\n]", "", between)))

  depth <- 0
  statement <- ""
  in_body <- logical() # for each open brace: does it hold statements of a function?
  started <- 1L
  for (i in seq_along(marks)) {
    piece <- between[i]
    if (!grepl("\\S", statement)) {
      leading <- regmatches(piece, regexpr("^\\s*", piece))
      started <- line_at[i] - nchar(gsub("[^\n]", "", piece)) + nchar(gsub("[^\n]", "", leading))
    }
    inner <- length(in_body) && !all(in_body)
    if (!inner) statement <- paste0(statement, piece)
    if (marks[i] == "{") {
      body <- length(in_body) && all(in_body)
      head <- statement
      opens_body <- !inner && if (body) !grepl("=|\\b(struct|union|enum)\\b", head) else
        grepl("\\(", head) && !grepl("=", head)
      in_body <- c(in_body, opens_body)
      if (opens_body) statement <- ""
    } else if (marks[i] == "}") {
      closed_body <- length(in_body) && utils::tail(in_body, 1)
      in_body <- utils::head(in_body, -1)
      if (closed_body) statement <- ""
      else if (!length(in_body) || all(in_body)) statement <- paste0(statement, "{}")
    } else if (!inner) {
      inside <- length(in_body) > 0
      said <- any(grepl("filled at load", original[started:min(line_at[i], length(original))],
                        fixed = TRUE))
      if (!said && is_mutable(statement, inside)) {
        shown <- trimws(gsub("\\s+", " ", sub("=.*", "", statement)))
        breach(file, started, "`", shown,
               "` is a variable that outlives a call: make it const or part of the run.")
      }
      statement <- ""
    }
  }
}

# ---- circles

# Functions and tables that a .c file defines for others: at the margin, and not static.
globals_of <- function(text) {
  pattern <-
    paste0("(?m)^(?!static|typedef|extern|#)[A-Za-z_][\\w *]*?\\b(\\w+)(?:\\[\\w*\\])*\\s*",
           "(?:=|\\([^;{}]*\\)\\s*\\{)")
  found <- gregexpr(pattern, text, perl = TRUE)[[1]]
  if (found[1] == -1) return(character())
  start <- attr(found, "capture.start")[, 1]
  unique(substring(text, start, start + attr(found, "capture.length")[, 1] - 1))
}

names_in <- function(text) unique(regmatches(text, gregexpr("[A-Za-z_]\\w*", text))[[1]])

check_circles <- function(bodies) {
  defined <- lapply(bodies, globals_of)
  owner <- stats::setNames(rep(names(defined), lengths(defined)), unlist(defined))
  for (file in names(bodies)) {
    used <- intersect(names_in(bodies[[file]]), names(owner))
    for (name in used[owner[used] != file]) note_need(file, owner[[name]], file, NA, name)
  }
  nodes <- unique(c(needs$from, needs$to))
  reach <- matrix(FALSE, length(nodes), length(nodes), dimnames = list(nodes, nodes))
  reach[cbind(needs$from, needs$to)] <- TRUE
  for (node in nodes) reach <- reach | outer(reach[, node], reach[node, ])
  circular <- which(reach[cbind(needs$to, needs$from)] & !duplicated(needs[c("from", "to")]))
  for (i in circular) {
    need <- needs[i, ]
    if (is.na(need$line))
      need$line <- grep(paste0("\\b", need$by, "\\b"), as_lines(bodies[[need$file]]),
                        perl = TRUE)[[1]]
    breach(need$file, need$line, "`", need$from, "` and `", need$to, "` need each other, here by `",
           need$by, "`: what both need belongs in a third file.")
  }
}

# ---- saved members

# Members are named in tables of fields, blocks and settings (LE_UNSAVED, LE_BLOCK and settings say
# that one is not saved) and in calls of archive functions, where the first member counts. A pointer
# to what is const belongs to others, and what a struct begins with saves itself.
saved <- new.env()

# Texts between braces that belong together, from the brace at `at` on.
braced <- function(text, at) {
  marks <- gregexpr("[{}]", substring(text, at))[[1]]
  depth <- cumsum(ifelse(substring(text, at + marks - 1, at + marks - 1) == "{", 1, -1))
  substring(text, at + 1, at + marks[match(0, depth)] - 2)
}

# Where a pattern with groups matches: a matrix with a row for each match, and its position.
all_matches <- function(pattern, text) {
  found <- gregexpr(pattern, text, perl = TRUE)[[1]]
  if (found[1] == -1) return(NULL)
  start <- attr(found, "capture.start")
  groups <- substring(text, start, start + attr(found, "capture.length") - 1)
  list(group = matrix(groups, nrow(start)), at = c(found),
       end = c(found) + attr(found, "match.length"))
}

# The members of a struct with their types. "@" stands for a comment that says why those before it
# are not saved.
UNSAVED <- "(?s)/\\*(?:(?!\\*/).)*\\b(set once|scratch|derived)\\b.*?\\*/"
members_in <- function(body) {
  body <- gsub("\\{[^{}]*\\}", "", gsub("\\[[^]]*\\]", "", body))
  lines <- strsplit(body, ";", fixed = TRUE)[[1]]
  unsaved <- c(grepl("^ *@", lines[-1]), FALSE)
  lines <- trimws(gsub("@", "", lines))
  do.call(rbind, lapply(which(nzchar(lines)), function(i) {
    called <- regmatches(lines[i], regexec("\\(\\s*\\*\\s*(\\w+)\\s*\\)", lines[i]))[[1]]
    names <- if (length(called)) called[2]
             else sub(".*?(\\w+)\\s*$", "\\1", strsplit(lines[i], ",", fixed = TRUE)[[1]])
    data.frame(name = names, type = sub("^(const )?(struct )?(\\w+).*", "\\3", lines[i]),
               borrowed = grepl("^const\\b.*\\*", lines[i]), unsaved = unsaved[i])
  }))
}

read_structs <- function(file, text) {
  found <- regmatches(text, gregexpr(UNSAVED, text, perl = TRUE))[[1]]
  regmatches(text, gregexpr(UNSAVED, text, perl = TRUE)) <- list(sub("^[^\n]*", "@", found))
  text <- without_comments(gsub("@[^\n]*\n", "@\n", text))
  found <- all_matches("typedef struct (?:\\w+ )?(\\{)", text)
  for (at in found$end - 1) {
    body <- braced(text, at)
    behind <- at + nchar(body) + 2
    name <- sub("^\\s*(\\w+).*", "\\1", substring(text, behind, behind + 80))
    line <- length(as_lines(substring(text, 1, at)))
    key <- if (grepl("\\.c$", file)) paste(name, file) else name
    saved$structs[[key]] <- list(file = file, line = line, members = members_in(body))
  }
}

# The struct of this name for a file: its own, or that of a header.
struct_for <- function(name, file) {
  own <- paste(name, file)
  if (is.null(saved$structs[[own]])) name else own
}

# `path` is a member of the struct, or a member of a member: "target.seen".
note_saved <- function(file, type, path, kept) {
  for (part in strsplit(path, ".", fixed = TRUE)[[1]]) {
    type <- struct_for(type, file)
    if (is.null(saved$structs[[type]])) return()
    members <- saved$structs[[type]]$members
    saved$named[[type]] <- c(saved$named[[type]], part)
    if (kept) saved$kept[[type]] <- c(saved$kept[[type]], part)
    type <- c(members$type[members$name == part], "none")[1]
  }
}

KEPT_BY <- c("FIELD", "WITHIN", "UP_TO", "BELOW", "KEPT")

read_tables <- function(file, bare) {
  own <- all_matches("#define (\\w+)\\(\\w+[^)]*\\) (LE_\\w+)\\((\\w+), ", bare)$group
  for (i in seq_len(NROW(own)))
    bare <- gsub(sprintf("\\b%s\\(", own[i, 1]), sprintf("%s(%s, ", own[i, 2], own[i, 3]), bare)
  entry <- paste0("LE_(FIELD|WITHIN|UP_TO|BELOW|EXPECTED|KEPT|BLOCK|UNSAVED|\\w+_INTO)",
                  "\\((\\w+),\\s*([\\w.]+)")
  named <- all_matches(entry, bare)$group
  for (i in seq_len(NROW(named)))
    note_saved(file, named[i, 2], named[i, 3], named[i, 1] %in% KEPT_BY)
  # engines and kernels
  sizes <- all_matches("\\.(?:layout|size) = \\{?sizeof\\((\\w+)\\)", bare)$group[, 1]
  sizes <- vapply(sizes, struct_for, "", file)
  begins <- vapply(saved$structs[sizes], function(struct) struct$members$type[1], "")
  for (type in sizes[begins %in% c("le_machine", "le_kernel")])
    saved$kept[[type]] <- c(saved$kept[[type]], "")
}

read_archive_functions <- function(file, bare) {
  found <- all_matches("(?m)^(?:static )?void \\w*archive\\w*\\(([^;{]*)\\)\\s*\\{", bare)
  for (i in seq_along(found$at)) {
    body <- braced(bare, found$end[i] - 1)
    pointers <- paste0(found$group[i, 1], ";", body)
    typed <- all_matches("(?<!const )\\b(\\w+) \\*(\\w+)(?=,| =|;|$)", pointers)$group
    types <- stats::setNames(typed[, 1], typed[, 2])
    local <- all_matches("\\b\\w+ (\\w+) = [^;]*?(\\w+)->([\\w.]+)", body)$group
    not <- "(?!le_blocks|le_archive_fields|le_archive_require)"
    calls <- all_matches(paste0("\\b", not, "(\\w*archive\\w*\\([^;]*);"), body)$group
    for (call in calls[, 1]) {
      of <- rbind(utils::head(all_matches("(\\w+)->([\\w.]+)", call)$group, 1),
                  local[vapply(sprintf("&%s\\b", local[, 1]), grepl, NA, call), 2:3])
      for (k in seq_len(NROW(of)))
        if (of[k, 1] %in% names(types))
          note_saved(file, types[[of[k, 1]]], of[k, 2], !startsWith(call, "le_archive_expect"))
    }
  }
}

check_saved <- function(texts) {
  for (name in c("structs", "named", "kept")) saved[[name]] <- list()
  bodies <- lapply(texts, without_comments)
  for (file in names(texts)) read_structs(file, texts[[file]])
  for (file in names(texts)) {
    read_tables(file, bodies[[file]])
    read_archive_functions(file, bodies[[file]])
  }
  for (type in intersect(names(saved$kept), names(saved$structs))) {
    struct <- saved$structs[[type]]
    members <- struct$members
    first <- members$type[1] %in% names(saved$kept)
    named <- members$name %in% saved$named[[type]]
    silent <- !named & !members$unsaved & !members$borrowed & !(seq_along(named) == 1 & first)
    for (name in members$name[silent])
      breach(struct$file, struct$line, "`", name, "` of ", sub(" .*", "", type),
             " is not saved, and no table or comment says why.")
    for (name in intersect(members$name[members$unsaved], saved$kept[[type]]))
      breach(struct$file, struct$line, "`", name, "` of ", sub(" .*", "", type),
             " is saved, but its comment says that it is not.")
  }
}

# ---- contents

objects_of <- function(makefile) {
  path <- file.path(root, makefile)
  if (!file.exists(path)) {
    breach(makefile, 1L, "the file is missing.")
    return(character())
  }
  lines <- sub("#.*", "", readLines(path, warn = FALSE))
  found <- regmatches(lines, gregexpr("[A-Za-z0-9_/-]+\\.o\\b", lines))
  stats::setNames(rep(seq_along(lines), lengths(found)), unlist(found))
}

check_contents <- function(sources) {
  makefile <- "src/Makevars.in"
  listed <- objects_of(makefile)
  for (i in which(duplicated(names(listed))))
    breach(makefile, listed[[i]], names(listed)[i], " is listed twice.")
  there <- sub("\\.c$", ".o", sub("^src/", "", grep("\\.c$", sources, value = TRUE)))
  for (i in which(!names(listed) %in% there)) {
    breach(makefile, listed[[i]], "OBJECTS lists ", names(listed)[i], ", which has no source.")
  }
  for (object in setdiff(there, names(listed))) {
    breach(file.path("src", sub("\\.o$", ".c", object)), 1L, "the file is not in OBJECTS of ",
           makefile, ".")
  }
}

# ---- R, and all code

# Each file is parsed once.
parsed <- new.env()
code_of <- function(file) {
  if (is.null(parsed[[file]]))
    parsed[[file]] <- parse(file.path(root, file), keep.source = TRUE)
  parsed[[file]]
}

# What a file defines at its top level, with lines.
definitions_in <- function(file) {
  code <- code_of(file)
  is_definition <- function(x) is.call(x) && identical(x[[1]], as.name("<-")) && is.name(x[[2]])
  own <- vapply(code, is_definition, NA)
  data.frame(name = vapply(code[own], function(x) as.character(x[[2]]), ""),
             file = rep(file, sum(own)),
             line = vapply(attr(code, "srcref")[own], function(at) at[[1]], 0L))
}

check_names <- function(files) {
  defined <- do.call(rbind, lapply(files, definitions_in))
  for (i in which(duplicated(defined$name))) {
    first <- defined[match(defined$name[i], defined$name), ]
    breach(defined$file[i], defined$line[i], "`", defined$name[i], "` is defined in ", first$file,
           ":", first$line, " too.")
  }
}

# Scripts that are run by hand use functions which are not exported: nothing else would say that one
# is gone.
check_inside_names <- function(files, defined) {
  for (file in files) {
    lines <- readLines(file.path(root, file), warn = FALSE, encoding = "UTF-8")
    inside <- "(?<=\\blogevidence:::)(?!ffi_)[A-Za-z_.][\\w.]*"
    used <- regmatches(lines, gregexpr(inside, lines, perl = TRUE))
    for (at in which(lengths(used) > 0))
      for (name in setdiff(used[[at]], defined))
        breach(file, at, "the package has no `", name, "`.")
  }
}

r_layer_of <- function(file) sub("-.*", "", basename(as.character(file)))

# What a file uses of others, as codetools finds it: names of variables are no uses.
uses_in <- function(file, owner) {
  used <- unlist(lapply(code_of(file), function(expression)
    codetools::findGlobals(as.function(list(expression)))))
  used <- intersect(used, names(owner))
  others <- owner[used] != file
  if (any(others)) data.frame(from = file, to = owner[used][others], name = used[others])
}

# The line where a file names something first.
first_line <- function(file, name) {
  lines <- readLines(file.path(root, file), warn = FALSE, encoding = "UTF-8")
  c(grep(paste0("\\b\\Q", name, "\\E\\b"), lines, perl = TRUE), 1L)[1]
}

check_r_layers <- function(files) {
  layer <- match(r_layer_of(files), r_layers)
  for (file in files[is.na(layer)])
    breach(file, 1L, "the file is in no layer: its name must begin with ",
           paste0("`", r_layers, "-`", collapse = ", "), ".")
  names(layer) <- files
  defined <- do.call(rbind, lapply(files, definitions_in))
  uses <- do.call(rbind, lapply(files, uses_in, stats::setNames(defined$file, defined$name)))
  for (i in seq_len(NROW(uses))) {
    use <- uses[i, ]
    if (isTRUE(layer[[use$to]] > layer[[use$from]]))
      breach(use$from, first_line(use$from, use$name), "`", use$name, "` is of ", use$to,
             ", in the layer \"", r_layers[layer[[use$to]]], "\", which is above \"",
             r_layers[layer[[use$from]]], "\".")
  }
  check_r_circles(uses, files)
}

# Files that nothing left uses go, again and again; what stays is a circle, or uses one.
check_r_circles <- function(arrows, files) {
  repeat {
    last <- setdiff(files, arrows$from)
    if (!length(last)) break
    files <- setdiff(files, last)
    arrows <- arrows[!arrows$to %in% last, ]
  }
  repeat {
    first <- setdiff(files, arrows$to)
    if (!length(first)) break
    files <- setdiff(files, first)
    arrows <- arrows[!arrows$from %in% first, ]
  }
  if (length(files)) breach(arrows$from[1], first_line(arrows$from[1], arrows$name[1]),
                            "a circle of files: ", toString(files), ".")
}

# ---- traits

CONSTRUCTORS <- c("new_method", "rename_method", "new_kernel", "new_model")

# Calls in an expression, with their lines.
calls_in <- function(file) {
  code <- code_of(file)
  line <- vapply(attr(code, "srcref"), function(at) at[[1]], 0L)
  found <- list()
  visit <- function(x, line) {
    if (is.call(x)) found[[length(found) + 1]] <<- list(call = x, line = line)
    at <- if (is.call(x)) utils::getSrcref(x)
    if (is.recursive(x) && !is.environment(x))
      for (i in seq_along(x)) {
        part <- x[[i]]
        if (!missing(part)) visit(part, if (length(at) >= i) at[[i]][1] else line)
      }
  }
  for (i in seq_along(code)) visit(code[[i]], line[i])
  found
}

words_of <- function(x) {
  if (is.character(x)) return(x)
  if (!is.call(x)) return(character())
  inner <- lapply(as.list(x)[-1], function(part) if (!missing(part)) words_of(part))
  c(Filter(nzchar, names(x)), unlist(inner))
}

# Names of methods, kernels and models, with their files.
constructed_in <- function(file, calls) {
  made <- Filter(function(found) is.name(found$call[[1]]) &&
                   as.character(found$call[[1]]) %in% CONSTRUCTORS, calls)
  names <- unlist(lapply(made, function(found) utils::head(Filter(is.character,
                                                                  as.list(found$call)[-1]), 1)))
  stats::setNames(rep(file, length(names)), names)
}

is_name_of <- function(x) is.call(x) && identical(x[[1]], as.name("$")) &&
  as.character(x[[3]]) %in% c("name", "type", "family")

# The rows of a table of families: their names, with the file.
families_in <- function(file, calls) {
  tables <- Filter(function(found) identical(found$call[[1]], as.name("<-")) &&
                     identical(found$call[[2]], as.name("FAMILIES")), calls)
  names <- unlist(lapply(tables, function(found) names(found$call[[3]])[-1]))
  stats::setNames(rep(file, length(names)), names)
}

COMPARING <- c("==", "!=", "%in%", "identical", "switch", "match")

# The engine of a method, or the name of a model or family in C, which are asked by tables and
# fields instead.
is_hidden_name <- function(x) is.call(x) &&
  (identical(x[[1]], as.name("$")) && as.character(x[[3]]) == "estimator" ||
     is.name(x[[1]]) && as.character(x[[1]]) %in% c("model_type", "family_type"))
TAKING_APART <- c(setdiff(COMPARING, "match"), "grepl", "startsWith", "endsWith")

check_traits <- function(files) {
  calls <- stats::setNames(lapply(files, calls_in), files)
  made <- unlist(lapply(files, function(file) constructed_in(file, calls[[file]])))
  constructed <- names(made)
  made <- c(made, unlist(lapply(files, function(file) families_in(file, calls[[file]]))))
  for (file in files) for (found in calls[[file]]) {
    call <- found$call
    what <- if (is.name(call[[1]])) as.character(call[[1]]) else ""
    if (what %in% TAKING_APART && any(vapply(as.list(call)[-1], is_hidden_name, NA)))
      breach(file, found$line, "asks for the name of an engine, or of a model or family in C. Put ",
             "a part into ENGINES or FAMILIES, or a field into the model.")
    if (!what %in% c(COMPARING, "inherits", "is", "c")) next
    words <- setdiff(intersect(words_of(call), names(made)), names(made)[made == file])
    # also a class of the package bridgesampling
    if (what == "inherits") words <- setdiff(words, "bridge")
    asks <- what %in% COMPARING &&
      any(vapply(as.list(call)[-1], is_name_of, NA)) || what %in% c("inherits", "is")
    lists <- what == "c" && length(words) > 1 && all(words_of(call) %in% constructed)
    if (length(words) && (asks || lists))
      breach(file, found$line, if (lists) "a list of names: " else "asks for a name: ",
             toString(paste0("`", words, "`")), ". Let the constructor declare a trait.")
  }
}

# ---- fields

# Tables of fields: a list of their names for each variable, such as "feed" of FEED_FIELDS.
tables_of_fields <- function(files) {
  found <- list()
  for (file in files) for (i in seq_along(code <- code_of(file))) {
    one <- code[[i]]
    is_table <- is.call(one) && identical(one[[1]], as.name("<-")) && is.name(one[[2]]) &&
      grepl("^[A-Z_]+_FIELDS$", as.character(one[[2]])) && is.call(one[[3]])
    if (!is_table) next
    name <- tolower(sub("_FIELDS$", "", as.character(one[[2]])))
    found[[name]] <- list(file = file, line = attr(code, "srcref")[[i]][1],
                          fields = names(one[[3]])[-1])
  }
  found
}

# The variable that a field is of: `feed` also in `work$feed$at` and in `feeds[[1]]$at`.
variable_of <- function(x) {
  if (is.name(x)) return(as.character(x))
  if (!is.call(x)) return(NULL)
  if (identical(x[[1]], as.name("$"))) as.character(x[[3]])
  else if (identical(x[[1]], as.name("[["))) sub("s$", "", variable_of(x[[2]]))
}

check_fields <- function(files) {
  tables <- tables_of_fields(files)
  used <- lapply(tables, function(table) character())
  for (file in files) for (found in calls_in(file)) {
    call <- found$call
    if (!identical(call[[1]], as.name("$"))) next
    of <- variable_of(call[[2]])
    if (length(of) != 1 || is.null(tables[[of]])) next
    field <- as.character(call[[3]])
    used[[of]] <- c(used[[of]], field)
    if (!field %in% tables[[of]]$fields)
      breach(file, found$line, "`", field, "` is no field of ", toupper(of), "_FIELDS.")
  }
  for (of in names(tables)) for (field in setdiff(tables[[of]]$fields, used[[of]]))
    breach(tables[[of]]$file, tables[[of]]$line, "no code has `", of, "$", field, "`.")
}

check_width <- function(files) {
  for (file in files) {
    lines <- readLines(file.path(root, file), warn = FALSE, encoding = "UTF-8")
    width <- nchar(lines, "width", allowNA = TRUE)
    for (i in which(width > 100)) breach(file, i, "the line has ", width[i], " columns, not 100.")
  }
}

files_in <- function(folders, pattern) {
  unlist(lapply(folders, function(folder) {
    files <- list.files(file.path(root, folder), pattern, recursive = TRUE)
    if (length(files)) file.path(folder, files)
  }))
}

# ----

sources <- c(
  file.path("src", list.files(file.path(root, "src"), pattern = "\\.(c|h|def|inc)$",
                              recursive = TRUE)),
  file.path("inst/include", list.files(file.path(root, "inst/include"), pattern = "\\.h$"))
)
if (!any(grepl("\\.c$", sources))) breach("src", 1L, "there is no C file to look at.")

bodies <- texts <- list()
for (file in sources) {
  original <- readLines(file.path(root, file), warn = FALSE, encoding = "UTF-8")
  text <- paste(original, collapse = "\n")
  bare <- without_comments(text)
  texts[[file]] <- text
  # An include's name looks like a literal: it is read where the comments are blank and the rest is
  # not.
  visible <- as_lines(bare)
  visible <- ifelse(grepl("^\\s*#\\s*include", visible), original[seq_along(visible)], visible)
  check_includes(file, visible)
  check_calls(file, as_lines(bare))
  check_rows(file, as_lines(bare))
  if (grepl("\\.c$", file)) bodies[[file]] <- bare
  if (!grepl("\\.(def|inc)$", file)) check_state(file, bare, original)
}
check_contents(sources)
check_saved(texts)
check_circles(bodies)

of_r <- files_in("R", "\\.R$")
check_names(of_r)
check_r_layers(of_r)
check_traits(of_r)
check_fields(of_r)
code <- c(of_r, files_in(c("src", "inst", "tests", "tools", "bench", "reproduce"),
                         "\\.(R|c|h|def|inc|sh)$"),
          Filter(function(file) file.exists(file.path(root, file)),
                 c("Makefile", "configure", "src/Makevars.in")))
check_width(code)
check_inside_names(grep("[.]R$", setdiff(code, of_r), value = TRUE),
                   do.call(rbind, lapply(of_r, definitions_in))$name)

if (length(breaches)) {
  writeLines(breaches)
  quit(status = 1)
}
cat(length(sources), "C files and", length(of_r), "R files keep the rules of the house\n")
