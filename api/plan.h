/*
 * What is inside the plans and planners of the public header, for those parts of the library that
 * have to run a program which somebody made by it: the lab of a campaign.
 */
#ifndef MGL_API_PLAN_H
#define MGL_API_PLAN_H

#include "api/pipeline.h"

struct mgl_plan {
    mgl_program *program;
    bool safe; /* the validator accepted it */
};

/* What a planner's plans are lowered from. */
const mgl_graph *mgl_planner_graph(const mgl_planner *planner);

#endif
