/*
 * Shorter tests under sanitizers. A sanitizer slows a test down by a factor of five or more. In a
 * build with sanitizers, a long test runs fewer iterations or fewer cases. Other builds run all of
 * them.
 */
#ifndef MGL_TESTS_SANITIZED_H
#define MGL_TESTS_SANITIZED_H

/* The bound of a loop in a normal build, and with sanitizers. MGL_SANITIZED is 0 or 1
 * (tests/CMakeLists.txt). */
#define BY_SANITIZER(normal, sanitized) (MGL_SANITIZED ? (sanitized) : (normal))

#endif
