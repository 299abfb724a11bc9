/*
 * Long tests under sanitizers. A sanitizer looks for errors of memory, threads and undefined
 * behavior, and makes a test up to ten times slower. So a long loop runs few of its iterations
 * there; the release build runs all.
 */
#ifndef MGL_TESTS_SANITIZED_H
#define MGL_TESTS_SANITIZED_H

/* MGL_SANITIZED: 1 in a build with sanitizers, else 0 (tests/CMakeLists.txt). */
#define FEW_IF_SANITIZED(all, few) (MGL_SANITIZED ? (few) : (all))

#endif
