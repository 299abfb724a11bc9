/*
 * A checksum that runs at memory bandwidth. It detects damage, not manipulation. vm/image.c
 * computes it when a compiled model is written, and checks all weights with it when they are
 * loaded.
 *
 *     step(h, w) = rotate_left((h ^ w) * K, 29)                 K = 0x9E3779B97F4A7C15
 *     checksum   = (x ^ (x >> 32)) * K
 *
 * Arithmetic is modulo 2^64. The bytes, padded with zeros to a multiple of 32, are little-endian
 * words w[0], w[1], ... Four lanes: lane i starts as h[i] = i + 1 and steps over w[i], w[i + 4],
 * and so on. Then x starts as the length in bytes and steps over h[0] to h[3].
 *
 * A step is a bijection of h for every w, and of w for every h. So inputs that differ in one word
 * never have the same checksum, nor do inputs that differ in words of one lane that do not cancel.
 */
#ifndef MGL_BASE_CHECKSUM_H
#define MGL_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t mgl_checksum(const void *bytes, size_t length);

#endif
