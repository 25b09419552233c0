/* The engines that a pipeline (pipeline.c) combines, and the tables of their settings. */
#pragma once

#include "core/estimator.h"

extern const le_estimator_ops le_walk_estimator, le_nested_estimator;
extern const le_setting le_walk_table[], le_stage_table[], le_nested_table[];
