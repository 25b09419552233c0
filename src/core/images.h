/* Points that may lie near another mode, given the modes that are known.
 *
 * Posteriors with many modes often have them for one of a few reasons: the density is the same when
 * a coordinate or two change their sign, when all do, or when two coordinates change places; it is
 * periodic, so that the step from a mode to its neighbour leads on to further modes; or coordinates
 * have several modes each, independently of the others, so that a mode with one coordinate of
 * another mode is near a third one. None of this needs to hold exactly: images are starts of
 * climbs, and a climb finds the mode itself. */
#ifndef LE_CORE_IMAGES_H
#define LE_CORE_IMAGES_H

#include "core/mode.h"

/* The number of images of one of n modes. */
size_t le_images_count(size_t n, size_t d);
/* Writes image number `image` of mode number k of n to `theta`. Returns 0 if it is the mode
 * itself. */
int le_images_make(const le_mode *mode, size_t n, size_t d, size_t k, size_t image, double *theta);

#endif
