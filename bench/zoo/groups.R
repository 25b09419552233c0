# Regressions with group-level effects, on real data: few groups, many, nested ones, standard
# deviations far above their prior's scale and near zero, effects that contradict the prior of the
# intercept. Priors are those of bench/groups.R, references by its code (groups-truths.R).

group_problem <- local({
  # the zoo has functions of the same names
  here <- new.env(parent = as.environment("package:logevidence"))
  sys.source(file.path(ZOO, "groups-truths.R"), here)
  function(name, family, formula, data, terms, fixed = character(), ...) {
    p <- here$problem(family, formula, lapply(terms, function(one) do.call(here$term, one)), 0,
                      fixed = fixed)
    add(name, "groups", here$group_model(p), data, function() {
      found <- here$group_reference(p, data, 1)
      truth_of(found$truth, found$truth_se, "importance sampling, effects integrated out")
    }, ...)
  }
})

with_one <- function(data) transform(as.data.frame(data), one = 1)

orthodont <- with_one(with(nlme::Orthodont, data.frame(y = distance, g = as.character(Subject),
                                                      x = (age - 11) / 2)))
group_problem("teeth-slopes", "gaussian", y ~ x + (x | g), orthodont,
              list(list("g", c("one", "x"))), "x")
group_problem("teeth-centred", "gaussian", y ~ x + (1 | g), transform(orthodont, y = (y - 24) / 2),
              list(list("g")), "x", benign = TRUE)
group_problem("rails", "gaussian", y ~ 1 + (1 | g),
              with_one(with(nlme::Rail, data.frame(y = travel, g = as.character(Rail)))),
              list(list("g")))
group_problem("oats-nested", "gaussian", y ~ x + (1 | g / h),
              with_one(with(nlme::Oats, data.frame(
                y = (yield - 100) / 20, x = nitro, g = as.character(Block),
                h = as.character(Variety), gh = paste(Block, Variety)))),
              list(list("g"), list("gh")), "x")
group_problem("machines-nested", "gaussian", y ~ x + z + (1 | g / h),
              with_one(with(nlme::Machines, data.frame(
                y = (score - 60) / 5, x = 1 * (Machine == "B"), z = 1 * (Machine == "C"),
                g = as.character(Worker), h = as.character(Machine),
                gh = paste(Worker, Machine)))),
              list(list("g"), list("gh")), c("x", "z"))
group_problem("sleep-pairs", "gaussian", y ~ x + (1 | g),
              with_one(with(sleep, data.frame(y = extra, x = 1 * (group == 2),
                                              g = as.character(ID)))),
              list(list("g")), "x", benign = TRUE)
group_problem("plants-three", "gaussian", y ~ 1 + (1 | g),
              with_one(with(PlantGrowth, data.frame(y = weight - 5, g = as.character(group)))),
              list(list("g")))
epil <- with_one(with(MASS::epil, data.frame(
  y = y, x = lbase, z = 1 * (trt == "progabide"), w = lage, v = V4, g = subject)))
group_problem("seizures", "poisson", y ~ x + z + w + v + (1 | g), epil, list(list("g")),
              c("x", "z", "w", "v"), benign = TRUE)
bacteria <- with_one(with(MASS::bacteria, data.frame(
  y = 1 * (y == "y"), x = 1 * (trt == "drug"), z = 1 * (trt == "drug+"), w = 1 * (week > 2),
  g = as.character(ID))))
group_problem("bacteria", "logit", y ~ x + z + w + (1 | g), bacteria, list(list("g")),
              c("x", "z", "w"), benign = TRUE)
group_problem("sprays", "poisson", y ~ 1 + (1 | g),
              with_one(with(InsectSprays, data.frame(y = count, g = as.character(spray)))),
              list(list("g")))
group_problem("breaks-three", "negative_binomial", y ~ x + (1 | g),
              with_one(with(warpbreaks, data.frame(y = breaks, x = 1 * (wool == "B"),
                                                   g = as.character(tension)))),
              list(list("g")), "x")
group_problem("chicks-noise", "gaussian", y ~ x + (1 | g),
              with_one(with(as.data.frame(ChickWeight), data.frame(
                y = log(weight) - 4.5, x = Time / 10 - 1, g = as.character(Chick)))),
              list(list("g")), "x")
