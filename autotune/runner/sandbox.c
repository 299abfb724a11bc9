/* Implements sandbox.h: enters both mechanisms and describes the result. sandbox_calls.c and
 * sandbox_files.c contain the rules. */
#include "autotune/runner/sandbox_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

static const char *reason_of(int error)
{
    switch (error) {
    case ENOSYS:
        return "this kernel has none, or a container hides it";
    case EOPNOTSUPP:
        return "it is switched off when this kernel starts";
    case EPERM:
    case EACCES:
        return "the system denies it, as in some containers";
    default:
        return strerror(error);
    }
}

/* `calls`, `files`: error numbers of the two mechanisms. */
static void describe(int calls, int files, int abi, mgl_sandbox *out)
{
    *out = (mgl_sandbox){.seccomp = !calls, .landlock = files ? 0 : abi};
    snprintf(out->missing, sizeof out->missing, "%s%s%s%s%s", calls ? "no seccomp: " : "",
             calls ? reason_of(calls) : "", calls && files ? "; " : "",
             files ? "no Landlock: " : "", files ? reason_of(files) : "");
}

/* Landlock first: it makes system calls, and the seccomp filter rejects none that Landlock
 * needs. */
void mgl_sandbox_enter(const mgl_sandbox_options *options, mgl_sandbox *out)
{
    int abi = 0;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* both mechanisms require it without root */
    mgl_sandbox_drop_rights();
    int files = mgl_sandbox_refuse_files(options, &abi);
    int calls = mgl_sandbox_refuse_calls();
    describe(calls, files, abi, out);
}

void mgl_sandbox_look(mgl_sandbox *out)
{
    int abi = 0, files = mgl_sandbox_look_files(&abi);
    describe(mgl_sandbox_look_calls(), files, abi, out);
}
