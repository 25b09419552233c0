/* Instances of regressions: their settings. */
#include "models/glm/instance.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* The table at the end of the file of each family. */
#define FAMILIES(TABLE)                                                                            \
  TABLE(le_glm_poisson) TABLE(le_glm_binomial) TABLE(le_glm_probit) TABLE(le_glm_gaussian)         \
  TABLE(le_glm_gaussian_known) TABLE(le_glm_negative_binomial) TABLE(le_glm_gamma)                 \
  TABLE(le_glm_student) TABLE(le_glm_student_fixed) TABLE(le_glm_weibull)
#define DECLARE(table) extern const glm_family table;
#define ADDRESS(table) &table,
FAMILIES(DECLARE)
static const glm_family *const families[] = {FAMILIES(ADDRESS)};

static const glm_family *family_named(const char *name)
{
  for (size_t k = 0; k < sizeof families / sizeof *families; k++)
    if (strcmp(families[k]->name, name) == 0) return families[k];
  return NULL;
}

static int read_flag(const le_args *args, const char *name)
{
  return le_args_number(args, name, 0) != 0;
}

/* For families whose last further parameter is a known number. */
static int read_known(const le_args *args, glm *model, char *message)
{
  const glm_family *family = model->family;
  if (!family->known) return 1;
  if (!le_read_numbers(args, family->known, 1, 0, 1, &model->known, message)) return 0;
  if (!family->further) family->point(&model->known, 1, &model->point);
  return 1;
}

/* Number of columns and the offset of each further parameter; no columns if it has no formula.
 * Returns 0 if a setting is invalid. */
static int read_parts(const le_args *args, const glm_family *family, glm_part *part, char *message)
{
  double columns[GLM_FURTHER] = {0}, offset[GLM_FURTHER] = {0};
  if (family->further && (!le_read_numbers(args, "further_columns", 0, -1, family->further,
                                           columns, message) ||
                          !le_read_numbers(args, "further_offset", 0, -1, family->further, offset,
                                           message)))
    return 0;
  for (size_t a = 0; a < family->further; a++) {
    if (columns[a] > MOST_COVARIATES || columns[a] != floor(columns[a])) {
      snprintf(message, LE_MESSAGE_SIZE,
               "`further_columns` must be whole numbers up to %d, not %g.", MOST_COVARIATES,
               columns[a]);
      return 0;
    }
    part[a] = (glm_part){.formula = columns[a] > 0, .offset = columns[a] > 0 && offset[a] > 0};
    part[a].columns = part[a].formula ? (size_t)columns[a] : 1;
    part[a].terms = part[a].columns + (size_t)part[a].offset;
  }
  return 1;
}

/* Where each part is in theta and in a row, from the `covariates` and the offset on. Coefficients
 * become `real`. */
static void place_parts(glm *model, unsigned char *real)
{
  size_t first = model->covariates, at = model->terms;
  memset(real, 1, model->covariates);
  model->most_terms = model->terms;
  for (size_t a = 0; a < model->family->further; a++) {
    glm_part *part = &model->part[a];
    part->first = first;
    part->at = at;
    first += part->columns;
    if (!part->formula) continue;
    model->by_row = 1;
    memset(real + part->first, 1, part->columns);
    at += part->terms;
    if (part->terms > model->most_terms) model->most_terms = part->terms;
  }
  model->columns = at + (size_t)model->extra + 1;
  model->width = model->columns - (size_t)model->implicit;
}

void le_glm_destroy(void *self)
{
  glm *model = self;
  if (!model) return;
  free(model->priors.user);
  free(model->priors.of);
  free(model);
}

/* The settings that need room of their own; `real` is room for d. */
static le_status read_priors(const le_args *args, glm *model, unsigned char *real, char *message)
{
  const size_t d = model->priors.d;
  if (!model->priors.of || !real) return LE_NO_MEMORY;
  place_parts(model, real);
  if (!read_known(args, model, message) ||
      !le_priors_read(args, d, real, model->priors.of, message))
    return LE_BAD_ARGUMENT;
  return le_user_read(args, d, &model->priors.user, message);
}

/* `implicit`: the only covariate is one, and rows do not have it. */
static le_status create(const le_args *args, const glm_family *family, int implicit, void **self,
                        char *message)
{
  *self = NULL;
  size_t p = 1;
  glm_part part[GLM_FURTHER] = {{0}};
  if ((!implicit && !le_read_count(args, "covariates", family->further == 0, MOST_COVARIATES, &p,
                                   message)) ||
      !read_parts(args, family, part, message))
    return LE_BAD_ARGUMENT;
  size_t d = p;
  for (size_t a = 0; a < family->further; a++) d += part[a].columns;
  glm *model = malloc(sizeof *model);
  if (!model) return LE_NO_MEMORY;
  *model = (glm){.priors = {.d = d, .of = calloc(d + 1, sizeof(le_prior))},
                 .family = family,
                 .simd = le_simd_for(args),
                 .covariates = p,
                 .implicit = implicit,
                 .offset = read_flag(args, "offset"),
                 .extra = read_flag(args, "extra") && family->extra};
  model->products = le_products_for(model->simd);
  model->terms = p + (size_t)model->offset;
  for (size_t r = 0; r < TILE; r++) model->ones[r] = 1;
  memcpy(model->part, part, sizeof part);
  unsigned char *real = calloc(d + 1, 1);
  const le_status status = read_priors(args, model, real, message);
  free(real);
  if (status == LE_OK) *self = model;
  else le_glm_destroy(model);
  return status;
}

le_status le_glm_create(const le_args *args, void **self, char *message)
{
  const char *word = le_args_word(args, "family", "");
  const glm_family *family = family_named(word);
  *self = NULL;
  if (family) return create(args, family, 0, self, message);
  snprintf(message, LE_MESSAGE_SIZE, "`family` must be a known family, not \"%s\".", word);
  return LE_BAD_ARGUMENT;
}

le_status le_glm_create_linear(const le_args *args, void **self, char *message)
{
  return create(args, &le_glm_gaussian_known, 0, self, message);
}

le_status le_glm_create_mean(const le_args *args, void **self, char *message)
{
  return create(args, &le_glm_gaussian_known, 1, self, message);
}
