/* A PostgreSQL server of the test's own: Debian's programs, a data folder that goes with the test,
 * a Unix socket and no network. As user postgres where the test runs as root, which the server
 * refuses. */
#ifndef MGL_TESTS_AUTOTUNE_STORE_POSTGRES_SERVER_H
#define MGL_TESTS_AUTOTUNE_STORE_POSTGRES_SERVER_H

#include <stdbool.h>

/* False: there is no server's program, no user for it or no libpq; says so on standard error. Ends
 * the process where it should start and does not. */
bool server_start(void);
const char *server_url(void); /* of its database */
/* As when the machine loses power; and anew, with what it kept. */
void server_kill(void);
void server_restart(void);
/* Ends it and removes its folder. */
void server_stop(void);

#endif
