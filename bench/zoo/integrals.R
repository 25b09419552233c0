# Integrals in up to three dimensions by adaptive Gauss-Legendre rules, for reference values.
# Plain R; it shares no code with the package.

gauss_legendre <- function(m) {
  k <- seq_len(m - 1)
  beside <- k / sqrt(4 * k^2 - 1)
  jacobi <- matrix(0, m, m)
  jacobi[cbind(k, k + 1)] <- jacobi[cbind(k + 1, k)] <- beside
  e <- eigen(jacobi, symmetric = TRUE)
  list(x = e$values, w = 2 * e$vectors[1, ]^2)
}

# Log of the integral of exp(f) over a box, by two meshes. `f` takes a matrix with a point in each
# row. Cells within six standard deviations of a peak (`peaks`, from peaks_of()) are first halved
# until they are as narrow as it. Then a cell is halved in each dimension as long as this changes
# its integral by more than `share` of the total. The stated error is the sum of the changes of the
# cells that were accepted, and the difference of the two meshes.
cubature <- function(f, lower, upper, peaks = list(), first = 8, share = 1e-6, most = 6e6) {
  first <- rep_len(first, length(lower))
  one <- on_mesh(f, lower, upper, peaks, first, share, most)
  if (!is.finite(one$value)) return(one)
  other <- on_mesh(f, lower, upper, peaks, first + 1 + first %/% 4, share, most)
  replace(one, "se", one$se + abs(one$value - other$value))
}

on_mesh <- function(f, lower, upper, peaks, first, share, most) {
  d <- length(lower)
  one <- gauss_legendre(c(7, 5, 4)[d])
  nodes <- as.matrix(expand.grid(rep(list(one$x), d)))
  log_weights <- rowSums(log(as.matrix(expand.grid(rep(list(one$w), d)))))
  corners <- as.matrix(expand.grid(rep(list(c(-0.5, 0.5)), d)))
  spent <- 0
  repeated <- function(x, times) x[rep(seq_len(nrow(x)), each = times), , drop = FALSE]
  cell_logs <- function(centre, half) {
    m <- nrow(nodes)
    spent <<- spent + nrow(centre) * m
    parts <- split(seq_len(nrow(centre)), (seq_len(nrow(centre)) - 1) %/% max(1, 5e4 %/% m))
    unlist(lapply(parts, function(i) {
      x <- repeated(centre[i, , drop = FALSE], m) +
        repeated(half[i, , drop = FALSE], m) * nodes[rep(seq_len(m), length(i)), , drop = FALSE]
      value <- f(x)
      value[is.nan(value)] <- -Inf
      value <- matrix(value, m) + log_weights
      column_log_sum_exp(value) + rowSums(log(half[i, , drop = FALSE]))
    }), use.names = FALSE)
  }
  half <- (upper - lower) / 2 / first
  centre <- as.matrix(expand.grid(lapply(seq_len(d), function(j)
    lower[j] + half[j] * (2 * seq_len(first[j]) - 1))))
  half <- matrix(half, nrow(centre), d, byrow = TRUE)
  for (peak in peaks) repeat {
    near <- rowSums(abs(sweep(centre, 2, peak$centre)) >
                      half + rep(6 * peak$spread, each = nrow(centre))) == 0
    ratio <- sweep(half, 2, 2 * peak$sd, `/`)
    widest <- max.col(ratio, "first")
    wide <- which(near & ratio[cbind(seq_along(widest), widest)] > 1)
    if (!length(wide)) break
    if (nrow(centre) > most / nrow(nodes)) return(truth_of(NA_real_, Inf, "cubature without end"))
    at <- cbind(wide, widest[wide])
    half[at] <- half[at] / 2
    twin <- centre[wide, , drop = FALSE]
    twin[cbind(seq_along(wide), widest[wide])] <- centre[at] + half[at]
    centre[at] <- centre[at] - half[at]
    centre <- rbind(centre, twin)
    half <- rbind(half, half[wide, , drop = FALSE])
  }
  value <- cell_logs(centre, half)
  done <- -Inf
  changed <- -Inf
  while (nrow(centre)) {
    if (spent > most) return(truth_of(NA_real_, Inf, "cubature without end"))
    many <- nrow(corners)
    child_half <- repeated(half, many) / 2
    child <- repeated(centre, many) +
      2 * child_half * corners[rep(seq_len(many), nrow(centre)), , drop = FALSE]
    child_value <- cell_logs(child, child_half)
    sums <- column_log_sum_exp(matrix(child_value, many))
    total <- log_sum_exp(c(done, sums, -1e300))
    change <- abs(exp(sums - total) - exp(value - total))
    split <- change > share
    done <- log_sum_exp(c(done, sums[!split], -1e300))
    changed <- log_sum_exp(c(-1e300, changed, log(change[!split] + 1e-300) + total))
    keep <- rep(split, each = many)
    centre <- child[keep, , drop = FALSE]
    half <- child_half[keep, , drop = FALSE]
    value <- child_value[keep]
  }
  truth_of(done, exp(changed - done), sprintf("cubature in %d dimensions", d))
}

column_log_sum_exp <- function(x) {
  top <- apply(x, 2, max)
  safe <- ifelse(is.finite(top), top, 0)
  safe + log(colSums(exp(x - rep(safe, each = nrow(x)))))
}

# Peaks reached by climbs: their centres, conditional and marginal standard deviations.
peaks_of <- function(f, starts, worst = 40) {
  one <- function(x) {
    value <- f(matrix(x, 1))
    if (is.finite(value)) -value else 1e10
  }
  found <- list()
  for (start in starts) {
    climb <- tryCatch(optim(start, one, method = "BFGS",
                            control = list(maxit = 300, reltol = 1e-10)),
                      error = function(e) NULL)
    if (is.null(climb)) next
    # in steps of a conditional standard deviation, of which the size is found first
    unit <- rep(1e-3, length(start))
    for (turn in 1:12) {
      curvature <- vapply(seq_along(start), function(j) {
        step <- replace(numeric(length(start)), j, unit[j] / 10)
        (one(climb$par + step) + one(climb$par - step) - 2 * climb$value) / (unit[j] / 10)^2
      }, 0)
      new <- 1 / sqrt(pmax(curvature, 1e-4))
      settled <- all(abs(log(new / unit)) < 0.1)
      unit <- pmin(pmax(new, unit / 30), unit * 30)
      if (settled) break
    }
    sd <- unit
    spread <- tryCatch({
      scaled <- optimHess(climb$par, one,
                          control = list(parscale = sd, ndeps = rep(0.1, length(sd))))
      pmin(pmax(sqrt(diag(solve(scaled))), sd), 30 * sd)
    }, error = function(e) sd, warning = function(w) sd)
    new <- !any(vapply(found, function(p) all(abs(p$centre - climb$par) < 0.2 * p$sd), NA))
    if (new) found[[length(found) + 1]] <- list(centre = climb$par, sd = sd, spread = spread,
                                                height = -climb$value)
  }
  heights <- vapply(found, `[[`, 0, "height")
  found[heights > max(heights) - worst]
}
