/* Reads rows of quantized matrices. Thread safe. Used by checkpoint.c and bind.c. */
#ifndef MGL_IMPORTER_QUANTIZED_READ_H
#define MGL_IMPORTER_QUANTIZED_READ_H

#include "importer/quantized/bind.h"

/* Reads rows [row, row + count) of the matrix. Fails if a code is NaN, or a scale is NaN or
 * infinite. */
mgl_status mgl_quantized_read_codes(const mgl_safetensors *files, const mgl_quantized *matrix,
                                    int64_t row, int64_t count, const mgl_quantized_rows *to,
                                    mgl_error *err);

/* Same, as numbers: (code - zero point) * scale. */
mgl_status mgl_quantized_read(const mgl_safetensors *files, const mgl_quantized *matrix,
                              int64_t row, int64_t count, float *to, mgl_error *err);

/* Reads the zero points (count, groups) of stored rows as they are stored, without zero_add. */
mgl_status mgl_quantized_read_zeros(const mgl_safetensors *files, const mgl_quantized *matrix,
                                    int64_t row, int64_t count, uint8_t *to, mgl_error *err);

#endif
