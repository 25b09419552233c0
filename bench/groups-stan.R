# Four problems of bench/groups.R by Stan and bridge sampling, which share no code with the package
# or with the references in plain R. Needs rstan and bridgesampling (packages r-cran-rstan,
# r-cran-bridgesampling); compiling takes a minute.
#
#   Rscript bench/groups-stan.R run      into bench/results/groups-stan.csv
#   Rscript bench/groups-stan.R report

suppressPackageStartupMessages(library(logevidence))
source("bench/zoo/groups-truths.R")
parts <- new.env()
for (one in parse("bench/groups.R")) # its problems and data, without its commands
  if (is.call(one) && identical(one[[1]], as.name("<-"))) eval(one, parts)


RESULTS <- "bench/results/groups-stan.csv"
NAMES <- c("gaussian_slope", "poisson", "logit", "negative_binomial")

# Priors as in groups-truths.R. `family` is 1 gaussian, 2 Poisson, 3 logit, 4 negative binomial.
PROGRAM <- "
data {
  int n; int groups; int q; int family; int further;
  vector[n] y; int count[n]; vector[n] x; int g[n]; matrix[n, q] z;
}
parameters {
  vector[2] beta; vector<lower=0>[further] a; vector<lower=0>[q] tau;
  cholesky_factor_corr[q] root; matrix[q, groups] v;
}
model {
  matrix[q, groups] u = diag_pre_multiply(tau, root) * v;
  vector[n] eta = beta[1] + beta[2] * x;
  for (i in 1:n) eta[i] += dot_product(z[i], u[, g[i]]);
  target += normal_lpdf(beta | 0, 2.5);
  target += student_t_lpdf(tau | 3, 0, 2.5) + q * log(2);
  target += lkj_corr_cholesky_lpdf(root | 1);
  target += std_normal_lpdf(to_vector(v));
  if (family == 1) target += student_t_lpdf(a | 3, 0, 2.5) + log(2) + normal_lpdf(y | eta, a[1]);
  if (family == 2) target += poisson_log_lpmf(count | eta);
  if (family == 3) target += bernoulli_logit_lpmf(count | eta);
  if (family == 4) target += exponential_lpdf(a | 1) + neg_binomial_2_log_lpmf(count | eta, a[1]);
}"

run <- function() {
  # Debian has the headers of Boost here, without those of BH
  if (!nzchar(system.file("include", package = "BH")))
    rstan::rstan_options(boost_lib = "/usr/include")
  program <- rstan::stan_model(model_code = PROGRAM)
  families <- c("gaussian", "poisson", "logit", "negative_binomial")
  for (name in NAMES) {
    p <- parts$PROBLEMS[[name]]
    d <- parts$make_data(name)
    g <- match(d$g, unique(d$g))
    further <- as.integer(p$family %in% HAS_FURTHER)
    z <- as.matrix(d[p$terms[[1]]$effects])
    data <- list(n = nrow(d), groups = max(g), q = ncol(z), family = match(p$family, families),
                 further = further, y = d$y, x = d$x, g = g, z = z,
                 count = if (p$family == "gaussian") rep(0L, nrow(d)) else as.integer(d$y))
    seconds <- system.time({
      fit <- rstan::sampling(program, data, chains = 4, iter = 11000, warmup = 1000, seed = 1,
                             cores = 2, refresh = 0, control = list(adapt_delta = 0.95))
      found <- bridgesampling::bridge_sampler(fit, silent = TRUE)
    })[["elapsed"]]
    row <- data.frame(problem = name, log_evidence = found$logml,
                      se = bridgesampling::error_measures(found)$cv, seconds = seconds)
    write.table(row, RESULTS, append = file.exists(RESULTS), col.names = !file.exists(RESULTS),
                row.names = FALSE, sep = ",", quote = FALSE)
    print(row)
  }
}

report <- function() {
  stan <- read.csv(RESULTS)
  plain <- read.csv("bench/results/groups-references.csv", strip.white = TRUE)
  cat("| problem | Stan, bridge sampling | plain R | seconds of Stan |\n|---|---|---|---|\n")
  for (k in seq_len(nrow(stan))) {
    own <- plain[plain$problem == stan$problem[k], ]
    cat(sprintf("| %s | %.3f (%.3f) | %.3f (%.3f) | %.0f |\n", stan$problem[k],
                stan$log_evidence[k], stan$se[k], own$truth, own$truth_se, stan$seconds[k]))
  }
}

verb <- c(commandArgs(TRUE), "report")[1]
if (verb == "run") run() else if (verb == "report") report() else
  stop("`", verb, "` must be `run` or `report`.")
