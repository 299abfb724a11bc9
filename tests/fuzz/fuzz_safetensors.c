/*
 * Fuzz target of safetensors headers, parsed from memory. The bytes must be rejected with a
 * message, or give tensors that cover the data exactly and whose sizes match their shapes. Seeds:
 * tests/models, and the output of write_damaged_models.
 */
#include "base/memory.h"
#include "importer/safetensors.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_list(const mgl_stored_list *list, size_t data_bytes)
{
    size_t total = 0;
    for (size_t i = 0; i < list->count; i++) {
        const mgl_stored_tensor *tensor = &list->items[i];
        size_t elements = 1;
        require(tensor->file == 7 && tensor->name && tensor->stored_dtype);
        require(tensor->offset == total && tensor->rank <= MGL_STORED_MAX_RANK);
        for (int d = 0; d < tensor->rank; d++)
            require(mgl_mul(elements, (size_t)tensor->shape[d], &elements));
        if (tensor->usable)
            require(tensor->bytes == elements * mgl_dtype_size(tensor->dtype));
        total += tensor->bytes;
    }
    require(total == data_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mgl_stored_list list = {0};
    mgl_error err = {0};
    uint64_t length = 0;
    if (size < 8)
        return 0;
    for (int i = 7; i >= 0; i--)
        length = length << 8 | data[i];
    if (length > size - 8) /* the reader rejects this before; here only the header exists */
        length = size - 8;
    size_t data_bytes = size - 8 - (size_t)length;
    if (mgl_safetensors_parse_header((const char *)data + 8, (size_t)length, data_bytes, "fuzz", 7,
                                     &list, &err))
        require(err.code == MGL_BAD_INPUT && err.message[0]);
    else
        check_list(&list, data_bytes);
    mgl_stored_list_clear(&list);
    return 0;
}
