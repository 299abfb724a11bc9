/*
 * The commit of this build: 12 digits, and "+" if sources were changed; "" if unknown.
 * cmake/commit.cmake generates the definition. `bench` and campaigns record it.
 */
#ifndef MGL_CLI_COMMIT_H
#define MGL_CLI_COMMIT_H

extern const char mgl_commit[];

#endif
