/* Compiles the bodies for V_VARIANT; see base/variants.h. */
#include "base/vector.h"
#include VECTOR_BODY
#include "base/vector_end.h"
#ifdef VECTOR_SINGLE_BODY
#define V_SINGLE
#include "base/vector.h"
#include VECTOR_SINGLE_BODY
#include "base/vector_end.h"
#endif
#undef V_VARIANT
