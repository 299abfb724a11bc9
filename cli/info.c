/* megalith info MODEL: what a checkpoint is, how large, and whether Megalith can run it, and if
 * not, all the reasons why. */
#include "cli/cli.h"

#include "base/json_out.h"

#include "importer/checkpoint.h"
#include "vm/image.h"

#include <inttypes.h>

#define INFO_OPTIONS(X) MGL_CLI_JSON_OPTION(X)
MGL_CLI_OPTIONS(INFO_OPTIONS)

/* The numbers of the geometry, in the order in which they are shown. */
#define GEOMETRY(X)                                                                                \
    X(hidden)                                                                                      \
    X(layers)                                                                                      \
    X(heads)                                                                                       \
    X(kv_heads)                                                                                    \
    X(head_dim)                                                                                    \
    X(ffn)                                                                                         \
    X(vocab)

static const char *architecture(const mgl_checkpoint *checkpoint)
{
    return checkpoint->architecture[0] ? checkpoint->architecture : "not named";
}

static void print_graph(const mgl_checkpoint *checkpoint)
{
    const mgl_graph *graph = checkpoint->graph;
    const mgl_geometry *geometry = &graph->geometry;
#define MGL_X(field) mgl_cli_printf("%-14s%d\n", #field, (int)geometry->field);
    GEOMETRY(MGL_X)
#undef MGL_X
    mgl_cli_printf("%-14s%d\n", "positions", (int)graph->max_positions);
    mgl_cli_printf("%-14s%s\n", "dtype", mgl_dtype_name(graph->dtype));
    if (graph->tied)
        mgl_cli_printf("%-14s%s\n", "head",
                       "tied to the embedding; the table stands twice on the device: streamed for "
                       "the head, gathered for the embedding");
    else
        mgl_cli_printf("%-14s%s\n", "head", "untied");
    mgl_cli_printf("%-14s", "end tokens");
    for (size_t i = 0; i < checkpoint->generation.end_count; i++)
        mgl_cli_printf("%s%d", i ? ", " : "", (int)checkpoint->generation.end_tokens[i]);
    mgl_cli_put(checkpoint->generation.end_count ? "\n" : "none\n");
}

/* What is fixed in a compiled model. */
static void print_image(const mgl_image *image)
{
    const mgl_program *program = image->program;
    mgl_cli_printf("%-14sfor %s:%d, %s, %d positions; kernels:", "compiled", program->target.arch,
                   program->target.queues, mgl_dtype_name(program->dtype),
                   program->limits.capacity);
    for (int i = 0; i < image->kernel_count; i++)
        mgl_cli_printf(" %s", image->kernels[i].arch);
    mgl_cli_put(image->kernel_count ? "\n" : " none\n");
}

/* `image`: of a compiled model, else NULL. */
static void print_text(const char *name, const mgl_checkpoint *checkpoint, const mgl_image *image)
{
    mgl_cli_printf("%-14s%s\n%-14s%s\n", "model", name, "architecture", architecture(checkpoint));
    if (checkpoint->graph)
        print_graph(checkpoint);
    mgl_cli_printf("%-14s%" PRIu64 "\n%-14s%" PRIu64, "parameters", checkpoint->parameters, "bytes",
                   checkpoint->bytes);
    if (image)
        mgl_cli_put(" before they were packed\n");
    else
        mgl_cli_printf(" in %d %s\n", checkpoint->files, checkpoint->files == 1 ? "file" : "files");
    if (image)
        print_image(image);
    if (checkpoint->ignored)
        mgl_cli_printf("%-14s%d stored %s the model does not use\n", "ignored", checkpoint->ignored,
                       checkpoint->ignored == 1 ? "tensor" : "tensors");
    mgl_cli_printf("%-14s%s\n", "supported", checkpoint->reasons.count ? "no" : "yes");
    for (size_t i = 0; i < checkpoint->reasons.count; i++)
        mgl_cli_printf("  %s: %s\n", checkpoint->reasons.items[i].where,
                       checkpoint->reasons.items[i].message);
}

static void put_graph(mgl_json_out *out, const mgl_checkpoint *checkpoint)
{
    const mgl_graph *graph = checkpoint->graph;
    mgl_json_out_object(out, "geometry");
#define MGL_X(field) mgl_json_out_int(out, #field, graph->geometry.field);
    GEOMETRY(MGL_X)
#undef MGL_X
    mgl_json_out_float(out, "eps", graph->geometry.eps);
    mgl_json_out_close_object(out);
    mgl_json_out_int(out, "max_positions", graph->max_positions);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(graph->dtype));
    mgl_json_out_bool(out, "tied", graph->tied);
    /* A tied table is both streamed (the rows of the head) and gathered (the embedding). */
    mgl_json_out_int(out, "embedding_copies", graph->tied ? 2 : 1);
    mgl_json_out_ids(out, "end_tokens", checkpoint->generation.end_tokens,
                     checkpoint->generation.end_count);
}

static void put_image(mgl_json_out *out, const mgl_image *image)
{
    const mgl_program *program = image->program;
    mgl_json_out_object(out, "compiled");
    mgl_json_out_string(out, "arch", program->target.arch);
    mgl_json_out_int(out, "queues", program->target.queues);
    mgl_json_out_string(out, "dtype", mgl_dtype_name(program->dtype));
    mgl_json_out_int(out, "capacity", program->limits.capacity);
    mgl_json_out_array(out, "kernels");
    for (int i = 0; i < image->kernel_count; i++)
        mgl_json_out_string(out, NULL, image->kernels[i].arch);
    mgl_json_out_close_array(out);
    mgl_json_out_close_object(out);
}

static void print_json(const char *name, const mgl_checkpoint *checkpoint, const mgl_image *image)
{
    mgl_json_out out = {0};
    mgl_json_out_begin(&out, "megalith.info/1");
    mgl_json_out_string(&out, "model", name);
    mgl_json_out_string(&out, "architecture",
                        checkpoint->architecture[0] ? checkpoint->architecture : NULL);
    mgl_json_out_bool(&out, "supported", checkpoint->reasons.count == 0);
    mgl_json_out_array(&out, "reasons");
    for (size_t i = 0; i < checkpoint->reasons.count; i++) {
        mgl_json_out_object(&out, NULL);
        mgl_json_out_string(&out, "where", checkpoint->reasons.items[i].where);
        mgl_json_out_string(&out, "message", checkpoint->reasons.items[i].message);
        mgl_json_out_close_object(&out);
    }
    mgl_json_out_close_array(&out);
    mgl_json_out_int(&out, "parameters", (int64_t)checkpoint->parameters);
    mgl_json_out_int(&out, "bytes", (int64_t)checkpoint->bytes);
    mgl_json_out_int(&out, "files", checkpoint->files);
    mgl_json_out_int(&out, "ignored_tensors", checkpoint->ignored);
    if (checkpoint->graph)
        put_graph(&out, checkpoint);
    if (image)
        put_image(&out, image);
    mgl_cli_end_json(&out);
}

static mgl_status info(const char *operand, const void *options, mgl_error *err)
{
    const struct options *o = options;
    mgl_checkpoint *checkpoint = NULL;
    mgl_image *image = NULL;
    mgl_status status = mgl_checkpoint_open(operand, &checkpoint, err);
    if (!status && !checkpoint->files)
        status = mgl_image_open(checkpoint->folder, &image, err);
    if (!status && o->json.given)
        print_json(operand, checkpoint, image);
    else if (!status)
        print_text(operand, checkpoint, image);
    mgl_image_close(image);
    mgl_checkpoint_close(checkpoint);
    return status;
}

const mgl_cli_verb mgl_cli_info_verb = {
    .name = "info",
    .operand = "MODEL",
    .summary = "architecture, parameters, bytes, and what is supported and why not",
    .example = "  megalith info tests/models/tales-5m",
    MGL_CLI_VERB_OPTIONS,
    .run = info,
};
