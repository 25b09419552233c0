/* Points that may lie near another mode, given the modes that are known.
 *
 * Posteriors with many modes often have them for one of a few reasons: the density is the same when
 * a coordinate or two change their sign, when all do, or when two coordinates change places; it is
 * periodic, so that the step from a mode to its neighbour leads on to further modes; or coordinates
 * have several modes each, independently of the others, so that a mode with one coordinate of
 * another mode is near a third one. None of this needs to hold exactly: images are starts of
 * climbs, and a climb finds the mode itself. */
#include "core/audit/parts.h"

#include <math.h>
#include <string.h>

/* Modes whose coordinates are taken over, and whose distances are steps: the first ones found,
 * and the last one. Two coordinates are the same if they differ by less than APART of the smaller
 * standard deviation. */
enum { OTHERS_MOST = 12 };
static const double APART = 2;

static size_t others(size_t n) { return n < OTHERS_MOST ? n : OTHERS_MOST; }

size_t le_audit_images_count(size_t n, size_t d)
{
  const size_t pairs = d * (d - 1) / 2;
  return d + 2 * pairs + 1 + others(n) * (d > 1 ? d : 0) + 2 * (others(n) > 0 ? others(n) - 1 : 0);
}

/* The pair of coordinates with this number. */
static void pair_of(size_t number, size_t d, size_t *i, size_t *j)
{
  for (*i = 0; number >= d - 1 - *i; ++*i) number -= d - 1 - *i;
  *j = *i + 1 + number;
}

/* Number o of the other modes: the first ones, but the last one instead of the last of these. */
static const le_mode *other(const le_mode *mode, size_t n, size_t o)
{
  return &mode[o + 1 == others(n) ? n - 1 : o];
}

static int exchange(size_t d, size_t image, const le_mode *from, double *theta)
{
  size_t i, j;
  pair_of(image, d, &i, &j);
  theta[i] = from->theta[j];
  theta[j] = from->theta[i];
  return theta[i] != theta[j];
}

int le_audit_make_image(const le_mode *mode, size_t n, size_t d, size_t k, size_t image,
                        double *theta)
{
  const le_mode *from = &mode[k];
  const size_t pairs = d * (d - 1) / 2, all = others(n);
  size_t i, j;
  memcpy(theta, from->theta, d * sizeof(double));
  if (image < d) {
    theta[image] = -theta[image];
    return 1;
  }
  image -= d;
  if (image < pairs) {
    pair_of(image, d, &i, &j);
    theta[i] = -theta[i];
    theta[j] = -theta[j];
    return 1;
  }
  image -= pairs;
  if (image < pairs) return exchange(d, image, from, theta);
  image -= pairs;
  if (image == 0) {
    for (j = 0; j < d; j++) theta[j] = -theta[j];
    return d > 2;
  }
  image--;
  if (d > 1 && image < all * d) {
    const le_mode *b = other(mode, n, image / d);
    j = image % d;
    theta[j] = b->theta[j];
    return fabs(from->theta[j] - b->theta[j]) > APART * fmin(from->scale[j], b->scale[j]);
  }
  if (d > 1) image -= all * d;
  /* the step between two modes found in succession, there and back */
  const le_mode *a = other(mode, n, image / 2), *b = other(mode, n, image / 2 + 1);
  const double sign = image % 2 ? -1 : 1;
  if (a == b) return 0;
  for (j = 0; j < d; j++) theta[j] += sign * (b->theta[j] - a->theta[j]);
  return 1;
}
