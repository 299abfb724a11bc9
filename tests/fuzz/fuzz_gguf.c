/*
 * Any GGUF file. The file is rejected with a message, or every tensor of the model is read with
 * finite numbers or rejected, and its tokenizer and its chat template are opened or rejected. The
 * header is also parsed in two parts, which must give the same answer.
 */
#include "megalith.h"

#include "importer/checkpoint.h"
#include "importer/gguf/container.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST_WEIGHTS = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static const char *file(void)
{
    static char folder[] = "/tmp/megalith-fuzz-XXXXXX", path[64];
    if (!path[0]) {
        require(mkdtemp(folder) != NULL);
        snprintf(path, sizeof path, "%s/m.gguf", folder);
    }
    return path;
}

static void require_message(mgl_status status, const mgl_error *err)
{
    require(!status || (status == MGL_BAD_INPUT && err->message[0]));
}

static void read_tensors(const mgl_graph *graph)
{
    mgl_error err = {0};
    for (int i = 0; i < graph->tensor_count; i++) {
        const mgl_tensor *t = &graph->tensors[i];
        if (t->rows * t->cols > MOST_WEIGHTS)
            continue;
        float *numbers = malloc((size_t)(t->rows * t->cols) * sizeof *numbers);
        const mgl_status status = graph->read(graph, i, 0, t->rows, numbers, &err);
        require_message(status, &err);
        for (int64_t k = 0; k < t->rows * t->cols && !status && mgl_tensor_is_quantized(t); k++)
            require(isfinite(numbers[k]));
        free(numbers);
    }
}

static void open_all(void)
{
    mgl_error err = {0};
    mgl_checkpoint *checkpoint = NULL;
    mgl_tokenizer *tokenizer = NULL;
    mgl_chat_template *chat = NULL;
    require_message(mgl_checkpoint_open(file(), &checkpoint, &err), &err);
    if (checkpoint && checkpoint->graph)
        read_tensors(checkpoint->graph);
    mgl_checkpoint_close(checkpoint);
    require_message(mgl_tokenizer_open(file(), &tokenizer, &err), &err);
    mgl_tokenizer_close(tokenizer);
    require_message(mgl_chat_template_open(file(), NULL, &chat, &err), &err);
    mgl_chat_template_close(chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_gguf *gguf = NULL;
    mgl_error err = {0};
    bool more;
    require_message(mgl_gguf_parse(data, size, size, "fuzz", &gguf, &more, &err), &err);
    require(!more);
    if (!gguf)
        return 0;
    mgl_gguf_close(gguf);
    if (mgl_gguf_parse(data, size / 2, size, "fuzz", &gguf, &more, &err))
        require(more);
    mgl_gguf_close(gguf);
    FILE *out = fopen(file(), "wb");
    require(out && fwrite(data, 1, size, out) == size && !fclose(out));
    open_all();
    return 0;
}
