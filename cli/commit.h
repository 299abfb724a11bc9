/* The commit that this was built from, 12 digits, with a "+" where sources were changed; "" where
 * it is not known. Made by cmake/commit.cmake. */
#ifndef MGL_CLI_COMMIT_H
#define MGL_CLI_COMMIT_H

extern const char mgl_commit[];

#endif
