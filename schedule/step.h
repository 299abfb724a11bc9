/*
 * The epoch edge: the layout of the io buffers, how sampled tokens advance the sequences, and how
 * the next row table is built (continuous batching). The CPU VM, explore and the CUDA kernel share
 * this code.
 *
 * Plain C that NVRTC compiles too: no includes, 32-bit integers only, at most MGL_MAX_SECOND_ROWS
 * (128) rows. MGL_STEP_FN is `static inline` on the host and `__device__` in the kernel.
 *
 * A program has one task list for up to `few` rows, and may have a second list for up to `many`
 * rows. The list of an epoch is chosen one epoch ahead, so that each queue has it before the epoch
 * begins. The choice uses the rows that the epoch will have if no sequence ends before it.
 * Therefore an epoch of the first list has at most `few` rows; an epoch of the second list may have
 * fewer rows.
 */
#ifndef MGL_SCHEDULE_STEP_H
#define MGL_SCHEDULE_STEP_H

#ifndef MGL_STEP_FN
#define MGL_STEP_FN static inline
#endif

/* control (MGL_CONTROL_WORDS) i32 */
enum {
    MGL_CONTROL_ROWS,     /* rows of the next epoch */
    MGL_CONTROL_GO,       /* 1: there is a next epoch; 0: every queue leaves */
    MGL_CONTROL_EPOCH,    /* its number, from 0 */
    MGL_CONTROL_LIST,     /* its list: 0 the first, 1 the second */
    MGL_CONTROL_NEXT,     /* the list of the epoch after that */
    MGL_CONTROL_WORDS = 8 /* the other words are 0 */
};

/* table (rows, MGL_TABLE_WORDS) i32: one entry for each row of the epoch. Rows of one sequence
 * are adjacent and have consecutive positions. */
enum {
    MGL_TABLE_SEQUENCE,
    MGL_TABLE_POSITION, /* where its k and v are written */
    MGL_TABLE_TOKEN,    /* input token */
    MGL_TABLE_WANT,     /* MGL_WANT_... */
    MGL_TABLE_WORDS
};
enum { MGL_WANT_NOTHING, MGL_WANT_SAMPLE, MGL_WANT_SCORE };

/* sequence (sequences, MGL_SEQUENCE_WORDS) i32: the host writes it before the launch, then
 * sample updates it. Floats and the halves of the seed are stored as bits. */
enum {
    MGL_SEQUENCE_STATE,    /* MGL_STATE_... */
    MGL_SEQUENCE_MODE,     /* MGL_WANT_SAMPLE: generate; MGL_WANT_SCORE: score the prompt;
                              MGL_WANT_NOTHING: only read it */
    MGL_SEQUENCE_PROMPT,   /* tokens of the prompt */
    MGL_SEQUENCE_LENGTH,   /* positions written, including those of the current table */
    MGL_SEQUENCE_PRODUCED, /* tokens generated so far */
    MGL_SEQUENCE_MAX_NEW,  /* maximum of tokens to generate */
    MGL_SEQUENCE_SEED_LO,
    MGL_SEQUENCE_SEED_HI,
    MGL_SEQUENCE_TEMPERATURE, /* f32 bits; 0: greedy */
    MGL_SEQUENCE_TOP_K,       /* 0: off */
    MGL_SEQUENCE_TOP_P,       /* f32 bits; 0 or 1: off */
    MGL_SEQUENCE_ENDS,        /* number of end tokens */
    MGL_SEQUENCE_MIN_P,       /* f32 bits; 0: off */
    MGL_SEQUENCE_REPEAT,      /* f32 bits of the penalties (instructions/sample/penalties.h) */
    MGL_SEQUENCE_PRESENCE,
    MGL_SEQUENCE_FREQUENCY,
    MGL_SEQUENCE_END = 16, /* the first of up to MGL_MAX_ENDS end tokens */
    MGL_MAX_ENDS = 16,
    MGL_SEQUENCE_WORDS = 32
};
enum {
    MGL_STATE_UNUSED,
    MGL_STATE_RUNNING,
    MGL_STATE_EOS,          /* generated an end token */
    MGL_STATE_LENGTH,       /* generated max_new tokens, or the prompt is scored or read */
    MGL_STATE_ABORTED,      /* aborted by the host */
    MGL_STATE_NOT_A_NUMBER, /* a logit of its last row is NaN or infinite */
    MGL_STATE_STOPPED       /* the host found a stop string in the reply */
};
enum { MGL_NO_TOKEN = -1 }; /* the sampled token if the logits are not finite */

/* asked (MGL_ASKED_WORDS) i32: requests of the host to sample while the launch runs */
enum {
    MGL_ASKED_ABORT,      /* not 0: every sequence ends */
    MGL_ASKED_STOPPED,    /* bit s: sequence s of 0 to 31 ends */
    MGL_ASKED_STOPPED_32, /* bit s - 32: sequence s of 32 to 63 ends */
    MGL_ASKED_LIKELY,     /* number of most likely tokens to report with each sampled token; 0:
                             none */
    MGL_ASKED_WORDS
};

/* Report about a sampled token with the `likely` most likely tokens: (1 + 2 likely) i32, all
 * nonzero. Log-probabilities are f32 bits, with the sign bit of a zero set. */
enum {
    MGL_MOST_LIKELY = 20,
    MGL_LIKELY_OWN = 0, /* log-probability of the sampled token */
    MGL_LIKELY_IDS = 1  /* id + 1 of each token by descending probability, ties by ascending id;
                           then their log-probabilities. Fewer entries if the vocabulary is
                           smaller */
};

/* The end state that the host requests for sequence s; 0: none. */
MGL_STEP_FN int mgl_step_asked(const int *asked, int s)
{
    if (asked[MGL_ASKED_ABORT])
        return MGL_STATE_ABORTED;
    unsigned mask = (unsigned)asked[MGL_ASKED_STOPPED + s / 32];
    return mask >> s % 32 & 1 ? MGL_STATE_STOPPED : 0;
}

/* Handles the sampled token of row `row`: appends it to the output (capacity words a sequence),
 * and ends the sequence after an end token or the last allowed token. MGL_NO_TOKEN ends the
 * sequence without appending. */
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

/* Prompt tokens that are inputs. When scoring, the last prompt token is no input. */
MGL_STEP_FN int mgl_step_inputs(const int *sequence)
{
    return sequence[MGL_SEQUENCE_PROMPT] - (sequence[MGL_SEQUENCE_MODE] == MGL_WANT_SCORE ? 1 : 0);
}

/* The task list for an epoch of `rows` rows. many = 0: the program has one list. */
MGL_STEP_FN int mgl_step_list(int rows, int few, int many)
{
    return many > 0 && rows > few;
}

/* Writes the decision for the next epoch: its rows, its number, and to leave if rows is 0. */
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
    int inputs = mgl_step_inputs(sequence), mode = sequence[MGL_SEQUENCE_MODE];
    row[MGL_TABLE_SEQUENCE] = s;
    row[MGL_TABLE_POSITION] = position;
    row[MGL_TABLE_TOKEN] =
        position < inputs ? prompt[position] : output[sequence[MGL_SEQUENCE_PRODUCED] - 1];
    row[MGL_TABLE_WANT] =
        mode == MGL_WANT_SAMPLE && position < inputs - 1 ? MGL_WANT_NOTHING : mode;
}

/* Ends a running sequence that is complete or whose end the host requests (`asked`, see
 * mgl_step_asked). Returns whether the sequence still runs. */
MGL_STEP_FN int mgl_step_runs(int *sequence, int asked)
{
    if (sequence[MGL_SEQUENCE_STATE] != MGL_STATE_RUNNING)
        return 0;
    if (asked)
        sequence[MGL_SEQUENCE_STATE] = asked;
    else if (sequence[MGL_SEQUENCE_MODE] != MGL_WANT_SAMPLE &&
             sequence[MGL_SEQUENCE_LENGTH] >= mgl_step_inputs(sequence))
        sequence[MGL_SEQUENCE_STATE] = MGL_STATE_LENGTH;
    return sequence[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING;
}

/* Prompt tokens of a running sequence that could use rows beyond its first row. */
MGL_STEP_FN int mgl_step_more(const int *sequence)
{
    int left = mgl_step_inputs(sequence) - sequence[MGL_SEQUENCE_LENGTH];
    return left > 1 ? left - 1 : 0;
}

/* Extra rows of a sequence: it wants `more`, all sequences share `spare` rows in order, and the
 * sequences before it want `before` rows. */
MGL_STEP_FN int mgl_step_share(int more, int before, int spare)
{
    int left = before < spare ? spare - before : 0;
    return more < left ? more : left;
}

/* The rows of an epoch without a row limit: one for each running sequence, and one for each
 * further prompt token. */
MGL_STEP_FN int mgl_step_demand(const int *sequences, int sequence_count)
{
    int rows = 0;
    for (int s = 0; s < sequence_count; s++) {
        const int *q = sequences + s * MGL_SEQUENCE_WORDS;
        rows += q[MGL_SEQUENCE_STATE] == MGL_STATE_RUNNING ? 1 + mgl_step_more(q) : 0;
    }
    return rows;
}

/* Builds the next row table from the sequences, after mgl_step_take for every sampled row. Each
 * running sequence gets one row. Sequences with prompt tokens left share the remaining rows in
 * order, up to the row limit of the epoch's list. Writes control for the next epoch, whose list
 * was chosen one epoch earlier, and chooses the list of the epoch after it. `asked` ends
 * sequences. The sample task of the kernel does the same with one lane for each sequence. */
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

/* The first row in the table with the sequence of row `row`. The position of that first row is
 * the number of positions written in earlier epochs. */
MGL_STEP_FN int mgl_step_first_row(const int *table, int row)
{
    int s = table[row * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE];
    while (row > 0 && table[(row - 1) * MGL_TABLE_WORDS + MGL_TABLE_SEQUENCE] == s)
        row--;
    return row;
}

#endif
