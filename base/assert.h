/*
 * MGL_ASSERT(condition): checks an invariant of the code. If the condition is false, the process
 * prints the condition with its file and line, and ends. Use an assertion for what only a mistake
 * in the code can break. Use an error (base/error.h) for what a file, a caller or the system can
 * break.
 *
 * Conditions are evaluated in builds that define MGL_ASSERTS (CMake defines it for debugging, for
 * sanitizers and for fuzzing). In other builds they are compiled but not evaluated, and cost
 * nothing.
 */
#ifndef MGL_BASE_ASSERT_H
#define MGL_BASE_ASSERT_H

#include <stdbool.h>

#ifdef MGL_ASSERTS
#define MGL_ASSERT(condition)                                                                      \
    ((condition) ? (void)0 : mgl_assert_failed(#condition, __FILE__, __LINE__))
#else
#define MGL_ASSERT(condition) ((void)(false && (condition)))
#endif

_Noreturn void mgl_assert_failed(const char *condition, const char *file, int line);

#endif
