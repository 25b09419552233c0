/* Ends one variant: see base/variants.h. */
#undef V_SUFFIX
#undef V_VARIANT
#undef V_LANES
#undef V_EACH_LANE
#undef V_INLINE
#undef V_KERNEL
#undef V_GNU
#undef V_REGISTERS
