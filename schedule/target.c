/*
 * Parses target names such as "sm_90a:132" or "cpu:1": an architecture and a number of queues. The
 * shared memory limit of a block is the "maximum amount of shared memory per thread block" of the
 * compute capability (CUDA C++ Programming Guide, technical specifications).
 */
#include "schedule/schedule.h"

#include <string.h>

#include "base/text.h"

/* X(name, shared memory limit of a block in KB; 0: no limit) */
#define ARCHITECTURES(X)                                                                           \
    X("cpu", 0)                                                                                    \
    X("sm_80", 163)                                                                                \
    X("sm_86", 99)                                                                                 \
    X("sm_89", 99)                                                                                 \
    X("sm_90a", 227)                                                                               \
    X("sm_100a", 227)                                                                              \
    X("sm_120a", 99)

static const struct {
    const char *name;
    int64_t shared_kb;
} architectures[] = {
#define X(name, shared_kb) {name, shared_kb},
    ARCHITECTURES(X)
#undef X
};

#define X(name, shared_kb) ", " name
static const char known[] = ARCHITECTURES(X); /* starts with ", " */
#undef X

/* Parses a number of 1 to 3 digits. -1: the text is anything else. */
static int parse_queues(const char *text)
{
    int number = 0;
    size_t length = strlen(text);
    if (length == 0 || length > 3)
        return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9')
            return -1;
        number = number * 10 + (*text - '0');
    }
    return number;
}

static int find_architecture(const char *name, size_t length)
{
    for (int i = 0; i < (int)(sizeof architectures / sizeof *architectures); i++)
        if (mgl_text_is(name, length, architectures[i].name))
            return i;
    return -1;
}

mgl_status mgl_target_parse(const char *text, mgl_target *out, mgl_error *err)
{
    const char *colon = strchr(text, ':');
    size_t length = colon ? (size_t)(colon - text) : strlen(text);
    int index = find_architecture(text, length);
    if (index < 0)
        return mgl_fail(err, MGL_BAD_INPUT, text,
                        "the target's architecture `%.*s` is not one of %s",
                        length > 40 ? 40 : (int)length, text, known + 2);
    const char *name = architectures[index].name;
    int queues = colon ? parse_queues(colon + 1) : -1;
    if (queues < 1 || queues > MGL_MAX_QUEUES)
        return mgl_fail(err, MGL_BAD_INPUT, text,
                        "the target must have 1 to %d queues after its architecture: %s",
                        MGL_MAX_QUEUES, index == 0 ? "cpu:1" : "sm_90a:132");
    *out = (mgl_target){.queues = queues, .shared_bytes = architectures[index].shared_kb * 1024};
    memcpy(out->arch, name, strlen(name) + 1);
    return MGL_OK;
}
