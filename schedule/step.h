/*
 * The step between epochs, shared word for word by the CPU VM, explore and the CUDA kernel: what
 * the io buffers hold, how the chosen tokens move the sequences on, and the next row table.
 *
 * Plain C that NVRTC compiles too: no includes, 32-bit integers only. There are
 * at most MGL_MAX_SECOND_ROWS (128) rows. MGL_STEP_FN is `static inline` on the host, `__device__`
 * there.
 *
 * A program has one task list, for up to `few` rows, or a second one for up to `many`. The list of
 * an epoch is chosen one epoch ahead, so that a queue knows it before the epoch begins: by the rows
 * that the epoch has if no sequence ends before it. An epoch of the first list can then have no
 * more than `few` rows; one of the second may have fewer.
 */
#ifndef MGL_SCHEDULE_STEP_H
#define MGL_SCHEDULE_STEP_H

#ifndef MGL_STEP_FN
#define MGL_STEP_FN static inline
#endif

/* control (MGL_CONTROL_WORDS) i32 */
enum {
    MGL_CONTROL_ROWS,     /* rows of the epoch that enters next */
    MGL_CONTROL_GO,       /* 1: there is such an epoch; 0: every queue leaves */
    MGL_CONTROL_EPOCH,    /* its number, from 0 */
    MGL_CONTROL_LIST,     /* its list: 0 the first, 1 the second */
    MGL_CONTROL_NEXT,     /* the list of the epoch behind it */
    MGL_CONTROL_WORDS = 8 /* the rest is 0 */
};

/* table (rows, MGL_TABLE_WORDS) i32: one row of the epoch each; rows of one sequence stand together
 * with consecutive positions */
enum {
    MGL_TABLE_SEQUENCE,
    MGL_TABLE_POSITION, /* where its k and v go */
    MGL_TABLE_TOKEN,    /* its input */
    MGL_TABLE_WANT,     /* MGL_WANT_... */
    MGL_TABLE_WORDS
};
enum { MGL_WANT_NOTHING, MGL_WANT_SAMPLE, MGL_WANT_SCORE };

/* sequence (sequences, MGL_SEQUENCE_WORDS) i32: written by the host before the launch, then by
 * sample. Floats and the halves of the seed are stored as bits. */
enum {
    MGL_SEQUENCE_STATE,    /* MGL_STATE_... */
    MGL_SEQUENCE_MODE,     /* MGL_WANT_SAMPLE: generate; MGL_WANT_SCORE: score the prompt */
    MGL_SEQUENCE_PROMPT,   /* tokens of the prompt */
    MGL_SEQUENCE_LENGTH,   /* positions written, those of the current table included */
    MGL_SEQUENCE_PRODUCED, /* new tokens so far */
    MGL_SEQUENCE_MAX_NEW,  /* and at most */
    MGL_SEQUENCE_SEED_LO,
    MGL_SEQUENCE_SEED_HI,
    MGL_SEQUENCE_TEMPERATURE, /* f32 bits; 0: greedy */
    MGL_SEQUENCE_TOP_K,       /* 0: off */
    MGL_SEQUENCE_TOP_P,       /* f32 bits; 0 or 1: off */
    MGL_SEQUENCE_ENDS,        /* end tokens in use */
    MGL_SEQUENCE_MIN_P,       /* f32 bits; 0: off */
    MGL_SEQUENCE_REPEAT,      /* f32 bits of penalties (instructions/sample/penalties.h) */
    MGL_SEQUENCE_PRESENCE,
    MGL_SEQUENCE_FREQUENCY,
    MGL_SEQUENCE_END = 16, /* the first of up to MGL_MAX_ENDS end tokens */
    MGL_MAX_ENDS = 16,
    MGL_SEQUENCE_WORDS = 32
};
enum {
    MGL_STATE_UNUSED,
    MGL_STATE_RUNNING,
    MGL_STATE_EOS,          /* produced an end token */
    MGL_STATE_LENGTH,       /* produced max_new tokens, or its prompt is scored */
    MGL_STATE_ABORTED,      /* the host asked */
    MGL_STATE_NOT_A_NUMBER, /* the logits of its last row are no numbers to choose by */
    MGL_STATE_STOPPED       /* the host found a stop text in its reply */
};
enum { MGL_NO_TOKEN = -1 }; /* what such logits give */

/* asked (MGL_ASKED_WORDS) i32: what the host asks of sample while the launch runs */
enum {
    MGL_ASKED_ABORT,      /* not 0: every sequence ends */
    MGL_ASKED_STOPPED,    /* sequence s ends, of 0 to 31: bit s */
    MGL_ASKED_STOPPED_32, /* of 32 to 63: bit s - 32 */
    MGL_ASKED_LIKELY,     /* tell so many of the likeliest tokens of each that is chosen; 0: none */
    MGL_ASKED_WORDS
};

/* What is told of a chosen token, where the host asks for the `likely` likeliest: (1 + 2 likely)
 * i32, none of them 0. Log-probabilities are f32 bits, with the sign of 0 set. */
enum {
    MGL_MOST_LIKELY = 20,
    MGL_LIKELY_OWN = 0, /* log-probability of the token itself */
    MGL_LIKELY_IDS = 1  /* id + 1 of each, the likeliest first, of equal ones the lowest id; then as
                           many log-probabilities. Without those that the vocabulary does not have */
};

/* The state that the host has sequence s end with; 0: none. */
MGL_STEP_FN int mgl_step_asked(const int *asked, int s)
{
    if (asked[MGL_ASKED_ABORT])
        return MGL_STATE_ABORTED;
    unsigned mask = (unsigned)asked[MGL_ASKED_STOPPED + s / 32];
    return mask >> s % 32 & 1 ? MGL_STATE_STOPPED : 0;
}

/* Takes the token of row `row` (which wanted a sample): appends it to the output (capacity words a
 * sequence) and ends the sequence when it is an end token or the last allowed one. MGL_NO_TOKEN
 * ends it as well, and nothing is appended. */
MGL_STEP_FN void mgl_step_take(const int *table, int *sequences, int *output, int capacity, int row,
                               int token)
{
    int s = table[row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    int *q = sequences + s * MGL_SEQUENCE_WORDS;
    if (token == MGL_NO_TOKEN) {
        q[MGL_SEQUENCE_STATE] = MGL_STATE_NOT_A_NUMBER;
        return;
    }
    output[s * capacity + q[MGL_SEQUENCE_PRODUCED]] = token;
    q[MGL_SEQUENCE_PRODUCED]++;
    if (q[MGL_SEQUENCE_PRODUCED] >= q[MGL_SEQUENCE_MAX_NEW])
        q[MGL_SEQUENCE_STATE] = MGL_STATE_LENGTH;
    for (int i = 0; i < q[MGL_SEQUENCE_ENDS]; i++)
        if (token == q[MGL_SEQUENCE_END + i])
            q[MGL_SEQUENCE_STATE] = MGL_STATE_EOS;
}

/* Tokens of the prompt that are inputs: all of it, but the last one has nothing to score. */
MGL_STEP_FN int mgl_step_inputs(const int *sequence)
{
    return sequence[MGL_SEQUENCE_PROMPT] - (sequence[MGL_SEQUENCE_MODE] == MGL_WANT_SCORE ? 1 : 0);
}

/* The list of an epoch of so many rows; many: 0 where there is no second one. */
MGL_STEP_FN int mgl_step_list(int rows, int few, int many)
{
    return many > 0 && rows > few;
}

/* What the next epoch is told: of as many rows, and to leave if there are none. */
MGL_STEP_FN void mgl_step_enter(int *control, int rows, int epoch)
{
    control[MGL_CONTROL_ROWS] = rows;
    control[MGL_CONTROL_GO] = rows > 0;
    control[MGL_CONTROL_EPOCH] = epoch;
}

/* Fills one row of the table with the next position of sequence s. */
MGL_STEP_FN void mgl_step_row(int *row, int *sequence, int s, const int *prompt, const int *output)
{
    int position = sequence[MGL_SEQUENCE_LENGTH]++;
    int inputs = mgl_step_inputs(sequence), score = sequence[MGL_SEQUENCE_MODE] == MGL_WANT_SCORE;
    row[MGL_TABLE_SEQUENCE] = s;
    row[MGL_TABLE_POSITION] = position;
    row[MGL_TABLE_TOKEN] =
        position < inputs ? prompt[position] : output[sequence[MGL_SEQUENCE_PRODUCED] - 1];
    row[MGL_TABLE_WANT] = score                    ? MGL_WANT_SCORE
                          : position >= inputs - 1 ? MGL_WANT_SAMPLE
                                                   : MGL_WANT_NOTHING;
}

/* Ends a running sequence that is done, or that the host asks to end (mgl_step_asked); whether it
 * still runs. */
MGL_STEP_FN int mgl_step_runs(int *sequence, int asked)
{
    if (sequence[MGL_SEQUENCE_STATE] != MGL_STATE_RUNNING)
        return 0;
    if (asked)
        sequence[MGL_SEQUENCE_STATE] = asked;
    else if (sequence[MGL_SEQUENCE_MODE] == MGL_WANT_SCORE &&
             sequence[MGL_SEQUENCE_LENGTH] >= mgl_step_inputs(sequence))
        sequence[MGL_SEQUENCE_STATE] = MGL_STATE_LENGTH;
    return sequence[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING;
}

/* Rows beyond the first that a running sequence has tokens of its prompt for. */
MGL_STEP_FN int mgl_step_more(const int *sequence)
{
    int left = mgl_step_inputs(sequence) - sequence[MGL_SEQUENCE_LENGTH];
    return left > 1 ? left - 1 : 0;
}

/* How many of them it gets of `spare` rows, when the sequences in front of it have tokens for
 * `before`. */
MGL_STEP_FN int mgl_step_share(int more, int before, int spare)
{
    int left = before < spare ? spare - before : 0;
    return more < left ? more : left;
}

/* The rows that an epoch would have if there were no limit: one a running sequence, and those that
 * have prompt left. */
MGL_STEP_FN int mgl_step_demand(const int *sequences, int sequence_count)
{
    int rows = 0;
    for (int s = 0; s < sequence_count; s++) {
        const int *q = sequences + s * MGL_SEQUENCE_WORDS;
        rows += q[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING ? 1 + mgl_step_more(q) : 0;
    }
    return rows;
}

/* Makes the next row table from the sequences (after mgl_step_take of every sampled row): each
 * running sequence gets one row, those with prompt left share the other rows in order, up to what
 * the list of the epoch (control) has. Writes control for the epoch to come; its list was chosen
 * before, the list behind it is chosen now. `asked` ends sequences. The kernel's sample does the
 * same, with a lane for each sequence. */
MGL_STEP_FN void mgl_step_next(int *control, int *table, int *sequences, const int *prompt,
                               const int *output, int sequence_count, int few, int many,
                               int capacity, int epoch, const int *asked)
{
    int running = 0, rows = 0, before = 0, list = control[MGL_CONTROL_NEXT];
    int max_rows = list ? many : few;
    for (int s = 0; s < sequence_count; s++)
        running += mgl_step_runs(sequences + s * MGL_SEQUENCE_WORDS, mgl_step_asked(asked, s));
    for (int s = 0; s < sequence_count; s++) {
        int *q = sequences + s * MGL_SEQUENCE_WORDS;
        if (q[MGL_SEQUENCE_STATE] != MGL_STATE_RUNNING)
            continue;
        int more = mgl_step_more(q);
        for (int n = mgl_step_share(more, before, max_rows - running); n >= 0; n--, rows++)
            mgl_step_row(table + rows * MGL_TABLE_WORDS, q, s, prompt + s * capacity,
                         output + s * capacity);
        before += more;
    }
    mgl_step_enter(control, rows, epoch);
    control[MGL_CONTROL_LIST] = list;
    control[MGL_CONTROL_NEXT] =
        mgl_step_list(mgl_step_demand(sequences, sequence_count), few, many);
}

/* The first row of the table that belongs to the sequence of row `row`; its position is the number
 * of positions written in earlier epochs. */
MGL_STEP_FN int mgl_step_first_row(const int *table, int row)
{
    int s = table[row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    while (row > 0 && table[(row - 1) * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE] == s)
        row--;
    return row;
}

#endif
