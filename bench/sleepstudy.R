# One model of the data sleepstudy (lme4) by four ways that share no code: tmb_model(),
# stanfit_model(), bridge sampling of a Stan fit by the package bridgesampling, and importance
# sampling with the random effects integrated out in closed form. Needs TMB, rstan, lme4 and
# bridgesampling; compiling takes two minutes. Results are in bench/README.md.

library(logevidence)

folder <- file.path(tempdir(), "sleepstudy")
dir.create(folder, showWarnings = FALSE)
sleep <- lme4::sleepstudy
subject <- as.integer(sleep$Subject)

# reaction times around a line of each subject; intercepts and slopes have standard deviations tau
# and correlation tanh(z)
tmb_program <- "
#include <TMB.hpp>
template<class Type>
Type objective_function<Type>::operator() ()
{
  DATA_VECTOR(y); DATA_VECTOR(days); DATA_IVECTOR(subject);
  PARAMETER_VECTOR(beta); PARAMETER_VECTOR(log_tau); PARAMETER(log_sigma); PARAMETER(z);
  PARAMETER_MATRIX(u);
  Type rho = tanh(z), sigma = exp(log_sigma), value = 0;
  vector<Type> tau = exp(log_tau);
  for (int k = 0; k < u.cols(); k++)
    for (int j = 0; j < 2; j++) value -= dnorm(u(j, k), Type(0), Type(1), true);
  for (int i = 0; i < y.size(); i++) {
    int s = subject(i);
    Type intercept = beta(0) + tau(0) * u(0, s);
    Type slope = beta(1) + tau(1) * (rho * u(0, s) + sqrt(1 - rho * rho) * u(1, s));
    value -= dnorm(y(i), intercept + slope * days(i), sigma, true);
  }
  return value;
}"

stan_program <- "
data {
  int n; int subjects; vector[n] y; vector[n] days; int subject[n];
  int<lower=0, upper=1> prior_only;
}
parameters {
  vector[2] beta; vector<lower=0>[2] tau; real<lower=0> sigma; real z; matrix[2, subjects] u;
}
model {
  target += normal_lpdf(beta[1] | 250, 50) + normal_lpdf(beta[2] | 10, 10);
  target += normal_lpdf(tau[1] | 0, 50) + normal_lpdf(tau[2] | 0, 20) + 2 * log(2);
  target += normal_lpdf(sigma | 0, 50) + log(2);
  target += normal_lpdf(z | 0, 1) + std_normal_lpdf(to_vector(u));
  if (!prior_only) {
    real rho = tanh(z);
    for (i in 1:n) {
      int s = subject[i];
      target += normal_lpdf(y[i] | beta[1] + tau[1] * u[1, s] + days[i] *
        (beta[2] + tau[2] * (rho * u[1, s] + sqrt(1 - rho^2) * u[2, s])), sigma);
    }
  }
}"

say <- function(way, log_evidence, se, seconds)
  cat(sprintf("%-44s %10.3f %8.3f %8.0f s\n", way, log_evidence, se, seconds))

report <- function(way, model, method, seed = 1) {
  seconds <- system.time(fit <- evidence(model, method = method, seed = seed))[["elapsed"]]
  say(way, fit$log_evidence, fit$se, seconds)
  if (length(fit$warnings)) cat(strwrap(fit$warnings, 96, prefix = "    "), sep = "\n")
}

# TMB ---------------------------------------------------------------------------------------------

tmb <- function() {
  file <- file.path(folder, "sleep.cpp")
  writeLines(tmb_program, file)
  TMB::compile(file)
  dyn.load(TMB::dynlib(sub(".cpp$", "", file)))
  TMB::MakeADFun(
    list(y = sleep$Reaction, days = sleep$Days, subject = subject - 1L),
    list(beta = c(250, 10), log_tau = c(3, 2), log_sigma = 3, z = 0, u = matrix(0, 2, 18)),
    random = "u", DLL = "sleep", silent = TRUE
  )
}
priors <- list("beta[1]" = prior_normal(250, 50), "beta[2]" = prior_normal(10, 10),
               "log_tau[1]" = prior_half_normal(50), "log_tau[2]" = prior_half_normal(20),
               log_sigma = prior_half_normal(50), z = prior_normal(0, 1))
by_tmb <- tmb_model(tmb(), priors, logs = c("log_tau", "log_sigma"), observed = sleep$Reaction)

# Closed form -------------------------------------------------------------------------------------

#' The log-likelihood with the random effects integrated out, by the covariance of each subject's
#' ten reaction times
closed_form <- function(theta) {
  tau <- exp(theta[3:4])
  rho <- tanh(theta[6])
  each <- cbind(1, 0:9)
  variance <- diag(tau) %*% matrix(c(1, rho, rho, 1), 2) %*% diag(tau)
  covariance <- each %*% variance %*% t(each) + exp(2 * theta[5]) * diag(10)
  root <- tryCatch(chol(covariance), error = function(e) NULL)
  if (is.null(root)) return(-Inf)
  residual <- matrix(sleep$Reaction - theta[1] - theta[2] * sleep$Days, 10)
  -sum(backsolve(root, residual, transpose = TRUE)^2) / 2 - 18 * sum(log(diag(root))) -
    90 * log(2 * pi)
}
by_hand <- custom_model(by_tmb$parameters, closed_form, by_tmb$log_prior, by_tmb$draw_prior)

# Stan --------------------------------------------------------------------------------------------

data <- list(n = nrow(sleep), subjects = 18, y = sleep$Reaction, days = sleep$Days,
             subject = subject, prior_only = 0)
# Debian has the headers of Boost there
if (!nzchar(system.file("include", package = "BH")))
  rstan::rstan_options(boost_lib = "/usr/include")
program <- rstan::stan_model(model_code = stan_program)
draws <- rstan::sampling(program, data, iter = 12000, warmup = 2000, seed = 1, refresh = 0,
                         control = list(adapt_delta = 0.95))
prior_draws <- rstan::sampling(program, replace(data, "prior_only", 1), iter = 3000, seed = 1,
                               refresh = 0)
by_stan <- stanfit_model(draws, prior_draws, observed = sleep$Reaction)

report("closed form, laplace(importance = 50000)", by_hand, method_laplace(importance = 50000))
for (seed in 1:3) report(paste("tmb_model(), sgais(), seed", seed), by_tmb, sgais(), seed)
report("tmb_model(), laplace(importance = 2000)", by_tmb, method_laplace(importance = 2000))
set.seed(1)
seconds <- system.time(bridge <- bridgesampling::bridge_sampler(draws, silent = TRUE))[["elapsed"]]
say("Stan and bridgesampling", bridge$logml, bridgesampling::error_measures(bridge)$cv, seconds)
for (seed in 1:2) report(paste("stanfit_model(), smc(), seed", seed), by_stan, method_smc(), seed)
