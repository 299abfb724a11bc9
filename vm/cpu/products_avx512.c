/* Product set for AVX-512. */
#include "vm/cpu/products_avx512.h"

const mgl_products mgl_products_avx512 = {"avx512", multiply, dot, add_scaled};
