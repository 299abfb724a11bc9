/* Starts and stops the PostgreSQL server of a test. See postgres_server.h. */
#include "tests/autotune/store/postgres_server.h"

#include "autotune/store/libpq.h"
#include "tests/time_limit.h"

#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_SOCKET = 80, MOST_STEPS = 600, STEP_MS = 50 };

static char programs[200], folder[200], data[220], log_path[220], url[320];
static uid_t user;
static gid_t group;
static pid_t server;

static void fail(const char *what)
{
    fprintf(stderr, "postgres_server: %s; see %s\n", what, log_path);
    abort();
}

static bool skip(const char *what)
{
    fprintf(stderr, "SKIPPED: %s; install postgresql-15 (or later) and libpq5 to run this test\n",
            what);
    return false;
}

/* Finds the newest server that a Debian package has installed. */
static bool find_programs(void)
{
    glob_t found = {0};
    bool any = !glob("/usr/lib/postgresql/*/bin/postgres", 0, NULL, &found) && found.gl_pathc;
    if (any) {
        snprintf(programs, sizeof programs, "%s", found.gl_pathv[found.gl_pathc - 1]);
        *strrchr(programs, '/') = 0;
    }
    globfree(&found);
    return any;
}

static bool find_user(void)
{
    const struct passwd *postgres = geteuid() ? getpwuid(geteuid()) : getpwnam("postgres");
    if (!postgres)
        return false;
    user = postgres->pw_uid;
    group = postgres->pw_gid;
    return true;
}

/* Creates the server's folder in the build folder, or in /tmp if the socket's path would be too
 * long or the test runs as root. */
static void make_folder(void)
{
    snprintf(folder, sizeof folder, "%s/pg-XXXXXX", MGL_BINARY_DIR);
    if (strlen(folder) > LONGEST_SOCKET || !geteuid())
        snprintf(folder, sizeof folder, "/tmp/megalith-pg-XXXXXX");
    if (!mkdtemp(folder) || (!geteuid() && chown(folder, user, group)))
        fail("no folder");
    snprintf(data, sizeof data, "%s/data", folder);
    snprintf(log_path, sizeof log_path, "%s/log", folder);
    snprintf(url, sizeof url, "postgresql://postgres@/postgres?host=%s", folder);
}

/* words[0] becomes the full path of the program, because initdb searches for other programs beside
 * it. */
static pid_t start_program(const char *name, const char **words)
{
    char path[260];
    snprintf(path, sizeof path, "%s/%s", programs, name);
    words[0] = path;
    pid_t child = fork();
    if (child)
        return child;
    if (!geteuid() && (setgid(group) || setuid(user)))
        _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT); /* the server ends with the test */
    int out = open(log_path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (chdir(folder) || out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
        _exit(126);
    char *const environment[] = {(char *)"LC_ALL=C", (char *)"PATH=/usr/bin:/bin", NULL};
    execve(path, (char *const *)(uintptr_t)words, environment);
    _exit(127);
}

static void make_data(void)
{
    int status = -1;
    const char *words[] = {NULL,       "-D",        data, "-A",   "trust",      "-U",
                           "postgres", "--no-sync", "-E", "UTF8", "--locale=C", NULL};
    pid_t child = start_program("initdb", words);
    if (child < 0 || waitpid(child, &status, 0) != child || status)
        fail("initdb failed");
}

static bool answers(const mgl_libpq *api)
{
    const char *const keywords[] = {"dbname", NULL}, *const values[] = {url, NULL};
    void *connection = api->connect(keywords, values, 1);
    bool good = connection && api->status(connection) == MGL_LIBPQ_CONNECTED;
    api->finish(connection);
    return good;
}

void server_restart(void)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};
    const char *words[] = {NULL,
                           "-D",
                           data,
                           "-k",
                           folder,
                           "-c",
                           "listen_addresses=",
                           "-c",
                           "fsync=off",
                           "-c",
                           "max_connections=20",
                           "-c",
                           "shared_buffers=8MB",
                           NULL};
    const mgl_libpq *api;
    int status;
    if (mgl_libpq_open(&api, NULL))
        fail("no libpq");
    server = start_program("postgres", words);
    for (int i = 0; i < time_limit(MOST_STEPS); i++) {
        if (waitpid(server, &status, WNOHANG) != 0)
            break;
        if (answers(api))
            return;
        nanosleep(&step, NULL);
    }
    fail("the server does not start");
}

bool server_start(void)
{
    const mgl_libpq *api;
    mgl_error err = {0};
    if (!find_programs())
        return skip("/usr/lib/postgresql/*/bin/postgres is missing");
    if (!find_user())
        return skip("there is no user postgres, and the server does not run as root");
    if (mgl_libpq_open(&api, &err))
        return skip(err.message);
    make_folder();
    make_data();
    server_restart();
    return true;
}

const char *server_url(void)
{
    return url;
}

static void end(int signal_number)
{
    int status;
    if (server > 0 && (kill(server, signal_number) || waitpid(server, &status, 0) != server))
        fail("the server does not end");
    server = 0;
}

void server_kill(void)
{
    end(SIGQUIT); /* at once, without a checkpoint */
}

static int remove_one(const char *path, const struct stat *facts, int flag, struct FTW *place)
{
    (void)facts, (void)flag, (void)place;
    return remove(path);
}

void server_stop(void)
{
    end(SIGINT);
    nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
