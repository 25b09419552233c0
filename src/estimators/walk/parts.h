/* What the files of the walk share: walk.c says what it is. */
#ifndef LE_ESTIMATORS_WALK_PARTS_H
#define LE_ESTIMATORS_WALK_PARTS_H

#include "core/bridging.h"
#include "core/genealogy.h"
#include "core/machine.h"
#include "core/path.h"
#include "core/renewal.h"
#include "core/schedule.h"
#include "core/search.h"
#include "core/trace.h"
#include "estimators/parts.h"
#include "estimators/walk/settings.h"

typedef enum walk_phase {
  OPEN_CHUNK,  /* choose the next rows, or end the walk */
  REWEIGHT,    /* choose lambda, weigh, resample, prepare the kernel */
  MOVE,        /* one kernel move of all particles */
  CLOSE_CHUNK, /* the chunk joins the rows seen */
  STEP_BACK,   /* in reverse: weigh by what the distribution before this one leaves away */
  COLLECT,     /* posterior draws and their likelihoods */
  BRIDGE,
  SEARCH,      /* for modes that the particles have missed */
  AUDIT,
  FINISHED
} walk_phase;

enum { MOMENT_COLUMNS = 5 };
enum { TRACE_COLUMNS = 18 };

/* Search and importance sampling before the end of the rows: before any particle has moved, or when they are on their way. */
typedef enum walk_look { LOOK_NOT, LOOK_FIRST, LOOK_AGAIN } walk_look;

typedef struct walk {
  le_machine machine; /* streams 1..most: particles */
  le_walk_settings settings;
  const le_model_ops *model;
  size_t d, most; /* dimension, most particles of any stage */
  size_t total;   /* rows expected, 0 unknown */
  uint64_t seed;
  uint32_t replicate;
  le_arena arena;
  le_target target;
  le_gradient gradient[LE_STAGES_MOST];
  le_expansion expansion;
  le_metric metric[LE_STAGES_MOST][2]; /* of each half of the particles */
  void *kernel[LE_STAGES_MOST];
  le_genealogy genealogy;
  le_audit audit;
  le_search search;
  le_bridging bridging;
  le_renewal renewal;

  size_t stage, m;
  int skip_moves;    /* at this distribution */
  size_t step;       /* moves made at this distribution, or rounds collected */
  size_t chunk_steps; /* distributions of this chunk */
  size_t fixed;      /* next entry of a fixed schedule */
  double chunk_ess;  /* smallest effective size in this chunk, as a share of the particles */
  size_t regained;   /* rows seen when the walk last started again: until it is there it leaves no trace */
  double restarts;
  double drift;      /* squared distance of the particles from the anchor at its beginning, in posterior variances per dimension */
  double shortest;   /* annealing step of this chunk */
  size_t noised;     /* rows seen when the gradients' noise was last measured */
  size_t refuge;     /* rows at which control variates get another chance, 0 while they have not failed */
  size_t looked;     /* rows seen when search and audit last looked around */
  int looking;       /* a walk_look */
  int first_looked;
  int uneven;        /* the first look's weights were: the posterior is far from normal around its peaks */
  int checked;       /* particles are importance sampling's, of all rows seen */
  size_t moves;      /* planned at this distribution, 0 before the first where they follow the renewal */
  size_t tried;      /* of them, when the renewal was first found too small, and that renewal */
  double tried_renewal, renewed;
  int settled;       /* distributions to come at which no second measurement is worth its moves */
  int resting;       /* distributions to come at which the renewal, last more than enough, is not measured */
  double heat;       /* temperature of particles whose kernel rejects nothing */
  double lost, lost_variance;     /* what it costs log Z while rows or lambda grow by a factor e */
  double heated, heated_variance; /* what it has cost so far */
  double eager;      /* what choosing steps by the particles that they weigh adds to log Z */
  double banked;     /* log Z of finished chunks, when weights are replaced by their mean */
  double banked_variance;
  double *twin; /* most x d */
  double *theta, *log_weight, *chunk_value, *weight, *swap, *work, *prior_variance;
  double *anchor_info, *chunk_info; /* information at the anchor, over rows seen and chunk */
  double *precision, *centre, *labels;
  size_t *ancestor;

  double *draw_theta, *draw_value; /* rounds x m draws */

  le_path path;      /* to follow; no points: none */
  size_t at;         /* points of it that are behind us; in reverse, left, the present one among them */

  le_trace trace, moments, recorded;
  double lambda_steps;
  double summary[14];
} walk;

static inline const le_stage *stage_of(const walk *w)
{
  return &w->settings.stage[w->stage];
}

static inline int follows(const walk *w)
{
  return w->path.points > 0;
}

/* ---- stage.c ---- */

size_t le_walk_particle_climbs(const walk *w);
int le_walk_samples_importance(const walk *w);
int le_walk_renews(const walk *w);
void le_walk_enter_stage(walk *w, size_t s);
void le_walk_take_place(walk *w, size_t points);

/* ---- curvature.c ---- */

void le_walk_observed_precision(const walk *w, double *precision);
le_status le_walk_anchored_precision(walk *w, double *precision);

/* ---- trace.c ---- */

double le_walk_unseen(const walk *w);
double le_walk_current_variance(const walk *w);
double le_walk_current_log_evidence(const walk *w);
double le_walk_temperature(const walk *w);
le_status le_walk_add_trace(walk *w, double n, double lambda, double steps);

/* ---- population.c ---- */

void le_walk_spread_out(walk *w);
size_t le_walk_heaviest(const walk *w);
void le_walk_relabel_to(walk *w, const double *reference);
void le_walk_relabel_to_heaviest(walk *w);
void le_walk_weighted_mean(const walk *w, double *mean);
void le_walk_resample(walk *w, size_t m);
void le_walk_begin_from(walk *w, double log_evidence, double variance);
void le_walk_draw_particles(walk *w);

/* ---- chunk.c ---- */

le_status le_walk_open_chunk(void *self, le_progress *progress);
le_status le_walk_close_chunk(void *self, le_progress *progress);

/* ---- control.c ---- */

le_status le_walk_open_controlled_chunk(walk *w);

/* ---- increment.c ---- */

le_status le_walk_choose_increment(walk *w, double *increment);
int le_walk_law_has_changed(const walk *w, double increment);
le_status le_walk_start_again(walk *w);

/* ---- weigh.c ---- */

le_status le_walk_add_moments(walk *w, double increment);
le_status le_walk_reweight(void *self, le_progress *progress);
le_status le_walk_step_back(void *self, le_progress *progress);

/* ---- tuning.c ---- */

le_status le_walk_tune_as_recorded(walk *w, const le_path_point *point);
le_status le_walk_update_metric(walk *w);

/* ---- moves.c ---- */

le_status le_walk_begin_moves(walk *w, int resampled);
void le_walk_add_lost(walk *w, double increment);
le_status le_walk_move(void *self, le_progress *progress);

/* ---- look.c ---- */

double le_walk_chance_of(size_t d);
int le_walk_may_look(const walk *w);
int le_walk_may_look_first(const walk *w);
le_status le_walk_look_around(walk *w, walk_look kind);
le_status le_walk_search(void *self, le_progress *progress);
le_status le_walk_audit(void *self, le_progress *progress);

/* ---- collect.c ---- */

le_status le_walk_collect(void *self, le_progress *progress);
le_status le_walk_bridge(void *self, le_progress *progress);

/* ---- result.c ---- */

le_status le_walk_result(void *self, le_result *result);

/* ---- archive.c ---- */

void le_walk_archive(void *self, le_archive *archive);

#endif
