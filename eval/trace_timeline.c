/*
 * Prints the timeline of a trace (trace.h) in Chrome's trace event format, which Perfetto also
 * reads ("Trace Event Format", the array of "traceEvents"): complete events ("X") with times in us,
 * and metadata events ("M") that name the threads. Names come from the program's text and need no
 * escaping.
 */
#include "eval/trace.h"

enum { PROCESS = 1, CHAIN_THREAD = 1, FIRST_QUEUE_THREAD = 2 };

static double us(int64_t ns)
{
    return 1e-3 * (double)ns;
}

static void print_name(int thread, const char *name, int number, mgl_text *out)
{
    mgl_text_format(out, "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,\"args\":{",
                    PROCESS, thread);
    if (number < 0)
        mgl_text_format(out, "\"name\":\"%s\"}},\n", name);
    else
        mgl_text_format(out, "\"name\":\"%s %d\"}},\n", name, number);
    mgl_text_format(out,
                    "{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":%d,\"tid\":%d,"
                    "\"args\":{\"sort_index\":%d}},\n",
                    PROCESS, thread, thread);
}

/* Prints the start of a slice, without its arguments and closing brace. */
static void print_slice(int thread, const char *name, int64_t from, int64_t to, mgl_text *out)
{
    mgl_text_format(out,
                    ",\n{\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"name\":\"%s\",\"ts\":%.3f,"
                    "\"dur\":%.3f",
                    PROCESS, thread, name, us(from), us(to - from));
}

static void print_part(int thread, const char *name, int64_t from, int64_t to, mgl_text *out)
{
    if (to <= from)
        return;
    print_slice(thread, name, from, to, out);
    mgl_text_put(out, "}");
}

/* "l0.o>=3, head>=2" */
static void print_waits(const mgl_program *p, const mgl_task *task, mgl_text *out)
{
    for (int i = 0; i < task->waits.count; i++) {
        const mgl_wait *wait = &p->waits[task->waits.first + i];
        mgl_text_format(out, "%s%s>=%lld", i ? ", " : "", p->counters[wait->counter].name,
                        (long long)wait->threshold);
    }
}

/* With two lists, prints the list of a task: as category, by which viewers filter, and as
 * argument. */
static void print_category(const mgl_trace *trace, int task, mgl_text *out)
{
    if (trace->lists > 1)
        mgl_text_format(out, ",\"cat\":\"%s\"",
                        mgl_trace_list_name(mgl_trace_list_of(trace, task)));
}

static void print_list(const mgl_trace *trace, int task, mgl_text *out)
{
    if (trace->lists > 1)
        mgl_text_format(out, "\"list\":\"%s\",",
                        mgl_trace_list_name(mgl_trace_list_of(trace, task)));
}

/* Index of a task in its list. */
static int number_in_list(const mgl_trace *trace, int task)
{
    return mgl_trace_list_of(trace, task) ? task - trace->first_tasks : task;
}

static void print_task(const mgl_trace *trace, int row, int task, mgl_text *out)
{
    const mgl_trace_time *t = mgl_trace_at(trace, row, task);
    int thread = FIRST_QUEUE_THREAD + trace->queue_of[task];
    char name[MGL_TRACE_NAME];
    if (!t->known)
        return;
    mgl_trace_task_name(trace, task, name);
    print_slice(thread, name, t->begin, t->end, out);
    print_category(trace, task, out);
    mgl_text_put(out, ",\"args\":{");
    print_list(trace, task, out);
    mgl_text_format(out, "\"task\":%d,\"epoch\":%lld,\"waits\":\"", number_in_list(trace, task),
                    (long long)trace->epochs[row]);
    print_waits(trace->program, &trace->program->tasks[task], out);
    mgl_text_format(out,
                    "\",\"wait_us\":%.3f,\"input_us\":%.3f,\"products_us\":%.3f,"
                    "\"output_us\":%.3f,\"starved_us\":%.3f,\"trays_us\":%.3f",
                    us(t->go - t->begin), us(t->input - t->go), us(t->products - t->input),
                    us(t->end - t->products), us(t->starved), us(t->act_tiles));
    if (t->tape)
        mgl_text_format(out, ",\"pages_ahead\":%d", t->ahead);
    mgl_text_put(out, "}}");
    print_part(thread, "wait", t->begin, t->go, out);
    print_part(thread, "input", t->go, t->input, out);
    print_part(thread, "products", t->input, t->products, out);
    print_part(thread, "output", t->products, t->end, out);
}

static void print_link(const mgl_trace *trace, const mgl_trace_link *link, mgl_text *out)
{
    char name[MGL_TRACE_NAME];
    mgl_trace_task_name(trace, link->task, name);
    print_slice(CHAIN_THREAD, name, link->from, link->end, out);
    print_category(trace, link->task, out);
    mgl_text_put(out, ",\"args\":{");
    print_list(trace, link->task, out);
    mgl_text_format(out, "\"task\":%d,\"queue\":%d", number_in_list(trace, link->task),
                    trace->queue_of[link->task]);
    for (int k = 0; k < MGL_TRACE_KIND_COUNT; k++)
        mgl_text_format(out, ",\"%s_us\":%.3f", mgl_trace_kind_name((mgl_trace_kind)k),
                        us(link->ns[k]));
    mgl_text_put(out, "}}");
}

static void print_chain(const mgl_trace *trace, const mgl_trace_chain *chain, mgl_text *out)
{
    for (int i = chain->count - 1; i >= 0; i--)
        print_link(trace, &chain->links[i], out);
}

void mgl_trace_print_timeline(const mgl_trace *trace, mgl_text *out)
{
    mgl_text_put(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
    print_name(CHAIN_THREAD, "longest chain", -1, out);
    for (int q = 0; q < trace->program->queue_count; q++)
        print_name(FIRST_QUEUE_THREAD + q, "queue", q, out);
    mgl_text_format(out,
                    "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,\"tid\":0,"
                    "\"args\":{\"name\":\"megalith\"}}",
                    PROCESS);
    for (int row = 0; row < trace->rows; row++)
        for (int t = 0; t < trace->program->task_count; t++)
            print_task(trace, row, t, out);
    const bool swapped = trace->chains[0].row > trace->chains[1].row; /* older chain first */
    for (int i = 0; i < MGL_TRACE_LISTS; i++)
        print_chain(trace, &trace->chains[i ^ swapped], out);
    mgl_text_put(out, "\n]}\n");
}
