/*
 * A private PostgreSQL server for tests: the programs of Debian's packages, a data folder that is
 * removed with the test, a Unix socket and no network. If the test runs as root, which the server
 * rejects, the server runs as user postgres.
 */
#ifndef MGL_TESTS_AUTOTUNE_STORE_POSTGRES_SERVER_H
#define MGL_TESTS_AUTOTUNE_STORE_POSTGRES_SERVER_H

#include <stdbool.h>

/* Starts the server. Returns false, with a line on standard error, if PostgreSQL, its user or libpq
 * is missing. Exits the process if the start fails. */
bool server_start(void);
const char *server_url(void); /* URL of its database */
/* Kill simulates a power loss; restart starts the server with the remaining data. */
void server_kill(void);
void server_restart(void);
/* Stops the server and removes its folder. */
void server_stop(void);

#endif
