/*
 * MG124 to MG129: the kernel variant that each task names. A variant is code for some shapes, and
 * the kernel runs the variant that the program names. This pass decides from the program and its
 * target alone whether the variant supports the task. A variant does not change the meaning of a
 * task, so no other pass looks at variants.
 *
 * The table of variants and the evaluator of its conditions are schedule/variants.def and
 * schedule/variants.c. They belong to the trusted base like ops.def, and all callers use the same
 * evaluator.
 */
#include "validator/check.h"

#include "schedule/variants.h"

static const int codes[] = {
    [MGL_FAULT_OP] = 124,   [MGL_FAULT_ROWS] = 125, [MGL_FAULT_FORMAT] = 126,
    [MGL_FAULT_EDGE] = 127, [MGL_FAULT_ARCH] = 128, [MGL_FAULT_NEED] = 129,
};

void mgl_check_variants(mgl_check *check)
{
    const mgl_program *p = check->program;
    mgl_dimensions dimensions;
    mgl_variant_met met = {0};
    mgl_variant_fault fault;
    char name[MGL_NAME_TEXT];
    mgl_dimensions_of_program(p, &dimensions);
    for (int t = 0; t < p->task_count; t++) {
        const mgl_task *task = &p->tasks[t];
        if (task->variant == MGL_VARIANT_GENERAL ||
            mgl_variant_takes_next(p, task, task->variant, &dimensions, &met, &fault))
            continue;
        mgl_check_report(check, codes[fault.kind], t, 0, "%s: %s %s",
                         mgl_check_task(check, t, name), mgl_variant_get(task->variant)->name,
                         fault.text);
    }
}
