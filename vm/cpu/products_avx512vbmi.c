/* Product set for AVX-512 with VBMI, which permutes the bytes of a whole vector. */
#include "vm/cpu/products_avx512.h"

const mgl_products mgl_products_avx512vbmi = {"avx512vbmi", multiply, dot, add_scaled};
