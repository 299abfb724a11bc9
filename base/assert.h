/*
 * What the code relies on, said where it relies on it: MGL_ASSERT(condition) ends the process with
 * the place and the condition where the condition does not hold. It is for what a mistake in the
 * code alone can break; what a file, a caller or the system can break is an error (base/error.h).
 *
 * Conditions are looked at in builds for debugging, for sanitizers and for fuzzing (MGL_ASSERTS,
 * which CMake defines there). Elsewhere they cost nothing: they are compiled and not evaluated.
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
