/* Removes the macros of one variant; see base/variants.h. */
#undef V_SUFFIX
#undef V_VARIANT
#undef V_SINGLE
#undef V_BYTES
#undef V_LANES
#undef V_SMALLEST
#undef V_LARGEST
#undef V_MOST
#undef V_SQUARE
#undef V_EACH_COLUMN
#undef V_INLINE
#undef V_KERNEL
#undef V_TARGET
#undef V_GNU
#undef V_REGISTERS
