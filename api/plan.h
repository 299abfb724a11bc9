/*
 * Declares what is inside the plans (mgl_plan) and planners (mgl_planner) of the public header.
 * api/schedule.c makes them. The runner of a campaign uses this header to execute a program that a
 * planner made.
 */
#ifndef MGL_API_PLAN_H
#define MGL_API_PLAN_H

#include "schedule/program.h"

struct mgl_plan {
    mgl_program *program;
    bool safe; /* the validator accepted it */
};

/* The graph from which the planner lowers. */
const mgl_graph *mgl_planner_graph(const mgl_planner *planner);

#endif
