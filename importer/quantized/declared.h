/* Readers of keys that quantization.c and compressed.c share. Each error of a key becomes a
 * reason. */
#ifndef MGL_IMPORTER_QUANTIZED_DECLARED_H
#define MGL_IMPORTER_QUANTIZED_DECLARED_H

#include "importer/config_reader.h"
#include "importer/neutral.h"
#include "importer/quantized/quantization.h"

/* Rejects every value of a key that is not neutral; an empty object is neutral too. Returns whether
 * the value was rejected. */
bool mgl_declared_reject(mgl_config_reader *r, const cJSON *object, const char *key,
                         mgl_neutral neutral, const char *why);

int64_t mgl_declared_int(mgl_config_reader *r, const cJSON *object, const char *key,
                         int64_t missing);

/* Reads a list of module names and "re:" patterns. Release with mgl_module_list_clear. */
void mgl_declared_list(mgl_config_reader *r, const cJSON *object, const char *key,
                       mgl_module_list *out);
/* Same, of an array with this name in messages. */
void mgl_declared_entries(mgl_config_reader *r, const cJSON *array, const char *key,
                          mgl_module_list *out);

/* Check a value; a wrong one is rejected. */
bool mgl_declared_check_bits(mgl_config_reader *r, const char *key, int64_t bits);
bool mgl_declared_check_group(mgl_config_reader *r, const char *key, int64_t group);

/* Reads the rows and columns of a block. */
void mgl_declared_block(mgl_config_reader *r, const char *key, const cJSON *sizes,
                        mgl_quantization_group *group);

/* Allocates the groups of a declaration, which are zero. Returns NULL if memory runs out. */
mgl_quantization_group *mgl_declared_groups(mgl_config_reader *r, mgl_quantization *out,
                                            size_t count);

/* Reads the object of compressed-tensors at r->root. */
void mgl_declared_read_compressed(mgl_config_reader *r, mgl_quantization *out);

#endif
