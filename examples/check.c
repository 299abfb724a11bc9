/* Prints whether the schedule of a model is safe and computes the model. Uses only the public
 * header.
 *     cc check.c $(pkg-config --cflags --libs megalith) -o check
 *     ./check tests/models/tales-5m sm_90a:132 */
#include <megalith.h>
#include <stdio.h>

static void print(const mgl_plan_verdict *verdict)
{
    for (size_t i = 0; i < verdict->count; i++)
        printf("MG%03d: %s\n", (int)verdict->diagnostics[i].code, verdict->diagnostics[i].message);
    printf("%s, %d tasks\n", verdict->accepted ? "accepted" : "rejected", (int)verdict->tasks);
}

int main(int argc, char **argv)
{
    mgl_plan_options options = {.size = sizeof options,
                                .model = argc > 1 ? argv[1] : ".",
                                .target = argc > 2 ? argv[2] : NULL};
    mgl_plan_verdict verdict = {.size = sizeof verdict};
    mgl_error err = {0};
    mgl_plan *plan = NULL;
    mgl_status status = mgl_plan_lower(&options, &plan, &err);
    if (!status)
        status = mgl_plan_check(plan, options.model, NULL, &verdict, &err);
    if (!status)
        print(&verdict);
    else
        fprintf(stderr, "%s%s%s\n", err.where, err.where[0] ? ": " : "", err.message);
    if (!status && !verdict.accepted)
        status = MGL_REJECTED;
    mgl_plan_verdict_clear(&verdict);
    mgl_plan_close(plan);
    return (int)status;
}
