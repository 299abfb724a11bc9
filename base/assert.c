/* Prints the message of a failed assertion and ends the process. See assert.h. */
#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void mgl_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "%s:%d: does not hold: %s\n", file, line, condition);
    abort();
}
