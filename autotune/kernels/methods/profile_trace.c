/* Implements mgl_profile_read_trace of profile.h: the shares of an op's time in a launch trace. */
#include "autotune/kernels/methods/profile.h"

#include "base/json_fields.h"

#include <string.h>

/* Parts of a task's time. The parts that are not `within` add up to the time of the task. The time
 * for the ring ("starved") is included in "products". */
static const struct {
    const char *key;
    bool within;
    mgl_metric metric; /* MGL_METRIC_COUNT: none */
} parts[] = {{"wait", false, MGL_METRIC_EDGE},
             {"input", false, MGL_METRIC_INPUT},
             {"products", false, MGL_METRIC_COUNT},
             {"output", false, MGL_METRIC_EPILOGUE},
             {"starved", true, MGL_METRIC_STARVED}};
enum { PARTS = sizeof parts / sizeof *parts };

/* Whether a step such as "linear_add down" belongs to the op. */
static bool is_of(const char *step, const char *op)
{
    size_t length = strlen(op);
    return !strncmp(step, op, length) && (!step[length] || step[length] == ' ');
}

/* Adds the times of a step's tasks, if the step belongs to the op. */
static mgl_status add_step(const mgl_json *json, const cJSON *step, const char *op,
                           double us[PARTS], mgl_error *err)
{
    const char *name = NULL;
    int64_t tasks = 0;
    const mgl_json_field fields[] = {MGL_JSON_STRING("step", &name),
                                     MGL_JSON_INT("tasks", 0, 1 << 30, &tasks)};
    mgl_status status = MGL_JSON_GET(json, step, fields, err);
    for (int i = 0; i < PARTS && !status && is_of(name, op); i++) {
        const cJSON *part = NULL;
        double mean = 0;
        status = mgl_json_get_object(json, step, parts[i].key, true, &part, err);
        if (!status)
            status = mgl_json_get_double(json, part, "mean", false, &mean, err);
        us[i] += (double)tasks * mean;
    }
    return status;
}

mgl_status mgl_profile_read_trace(const mgl_json *json, const char *op, mgl_profile *profile,
                                  int *found, mgl_error *err)
{
    const cJSON *steps = NULL;
    double us[PARTS] = {0}, all = 0;
    *found = 0;
    mgl_status status = mgl_json_check_schema(json, "megalith.trace/1", err);
    if (!status)
        status = mgl_json_get_array(json, json->root, "steps", true, &steps, err);
    for (const cJSON *step = status ? NULL : steps->child; step && !status; step = step->next)
        status = add_step(json, step, op, us, err);
    for (int i = 0; i < PARTS; i++)
        all += parts[i].within ? 0 : us[i];
    for (int i = 0; i < PARTS && !status && all > 0; i++)
        if (parts[i].metric != MGL_METRIC_COUNT) {
            profile->values[parts[i].metric] = 100 * us[i] / all;
            ++*found;
        }
    return status;
}
