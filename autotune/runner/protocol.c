/* Implements protocol.h: names of requests and faults, and non-blocking transfers on the socket. */
#include "autotune/runner/protocol.h"

#include "autotune/store/frozen.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { POLL_MS = 10 };

const char *mgl_request_name(mgl_request_kind kind)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_REQUESTS(MGL_X)
#undef MGL_X
    };
    return (unsigned)kind < MGL_REQUEST_COUNT ? names[kind] : "?";
}

bool mgl_fault_parse(const char *name, mgl_fault *out)
{
    static const char *const names[] = {
#define MGL_X(id, name) name,
        MGL_FAULTS(MGL_X)
#undef MGL_X
    };
    for (int i = 0; i < MGL_FAULT_COUNT; i++)
        if (!strcmp(name, names[i])) {
            *out = (mgl_fault)i;
            return true;
        }
    return false;
}

void mgl_wire_build(char out[128])
{
    memset(out, 0, 128);
    snprintf(out, 128, "megalith %.40s, frozen %s", mgl_version(), mgl_frozen_digest());
}

/* Waits until the socket is ready for `events`. False: the reason is in *end. */
static bool wait_for(const mgl_wire *wire, short events, mgl_wire_end *end)
{
    struct pollfd one = {.fd = wire->socket, .events = events};
    for (;;) {
        int ready = poll(&one, 1, wire->go ? POLL_MS : -1);
        if (ready > 0)
            return true;
        if (ready < 0 && errno != EINTR) {
            *end = MGL_WIRE_CLOSED;
            return false;
        }
        if (wire->go && !wire->go(wire->user)) {
            *end = MGL_WIRE_STOPPED;
            return false;
        }
    }
}

static bool may_come_back(void)
{
    return errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK;
}

mgl_wire_end mgl_wire_send(const mgl_wire *wire, const void *bytes, size_t length)
{
    const char *from = bytes;
    mgl_wire_end end = MGL_WIRE_DONE;
    while (length > 0 && wait_for(wire, POLLOUT, &end)) {
        ssize_t n = send(wire->socket, from, length, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && may_come_back())
            continue;
        if (n <= 0)
            return MGL_WIRE_CLOSED;
        from += n;
        length -= (size_t)n;
    }
    return end;
}

mgl_wire_end mgl_wire_receive(const mgl_wire *wire, void *bytes, size_t length)
{
    char *to = bytes;
    mgl_wire_end end = MGL_WIRE_DONE;
    while (length > 0 && wait_for(wire, POLLIN, &end)) {
        ssize_t n = recv(wire->socket, to, length, MSG_DONTWAIT);
        if (n < 0 && may_come_back())
            continue;
        if (n <= 0)
            return MGL_WIRE_CLOSED;
        to += n;
        length -= (size_t)n;
    }
    return end;
}
