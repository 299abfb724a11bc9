/*
 * Fuzz target of proposals, search spaces and tuned entries. The bytes must be rejected with a
 * reason, or give a value that is equal after printing and reading, with the same print.
 */
#include "autotune/candidates/gate.h"
#include "autotune/candidates/space.h"
#include "schedule/tuned/tuned.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void require_same(mgl_text *a, mgl_text *b)
{
    require(!a->failed && !b->failed && a->length == b->length);
    require(!memcmp(a->bytes, b->bytes, a->length));
    mgl_text_clear(a);
    mgl_text_clear(b);
}

static void read_proposal(const char *text, size_t size)
{
    mgl_proposal proposal, again;
    mgl_schedule_config start;
    mgl_error err = {0};
    mgl_text first = {0}, second = {0};
    mgl_schedule_config_default(&start);
    if (mgl_proposal_parse(text, size, "fuzz", &start, &proposal, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0]);
        return;
    }
    if (proposal.schedule && (memchr(text, 0, size) || text[0] != '{')) {
        mgl_proposal_clear(&proposal); /* a schedule text is not read here */
        return;
    }
    mgl_proposal_print(&proposal, &first);
    require(!mgl_proposal_parse(first.bytes, first.length, "again", &start, &again, &err));
    mgl_proposal_print(&again, &second);
    require_same(&first, &second);
    mgl_proposal_clear(&proposal);
    mgl_proposal_clear(&again);
}

static void read_space(const char *text, size_t size)
{
    mgl_target target;
    mgl_search_space space, again;
    mgl_error err = {0};
    mgl_text first = {0}, second = {0};
    require(!mgl_target_parse("sm_90a:132", &target, &err));
    if (mgl_search_space_parse(text, size, "fuzz", &target, true, &space, &err))
        return;
    mgl_search_space_print(&space, &first);
    require(
        !mgl_search_space_parse(first.bytes, first.length, "again", &target, true, &again, &err));
    mgl_search_space_print(&again, &second);
    require_same(&first, &second);
}

static void read_tuned(const char *text, size_t size)
{
    mgl_tuned entry, again;
    mgl_error err = {0};
    mgl_text first = {0}, second = {0};
    if (mgl_tuned_parse(text, size, "fuzz", &entry, &err)) {
        require(err.code == MGL_BAD_INPUT && err.message[0]);
        return;
    }
    mgl_tuned_print(&entry, &first);
    require(!mgl_tuned_parse(first.bytes, first.length, "again", &again, &err));
    mgl_tuned_print(&again, &second);
    require_same(&first, &second);
    mgl_tuned_clear(&entry);
    mgl_tuned_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = size ? (const char *)data : "";
    read_proposal(text, size);
    read_space(text, size);
    read_tuned(text, size);
    return 0;
}
