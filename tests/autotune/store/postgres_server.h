/*
 * A private PostgreSQL server for tests: the programs of Debian's packages, a data folder that is
 * removed with the test, a Unix socket and no network. If the test runs as root, which the server
 * rejects, the server runs as user postgres.
 */
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
