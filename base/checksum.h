/*
 * A checksum at the speed of memory, against damage and not against malice: every weight of a
 * compiled model goes through it on its way to the device.
 *
 *     step(h, w) = rotate_left((h ^ w) * K, 29)                 K = 0x9E3779B97F4A7C15
 *
 * in arithmetic modulo 2^64. The bytes, with zeros up to a multiple of 32, are little-endian words
 * w[0], w[1], ...; lane i of four starts as h[i] = i + 1 and steps over w[i], w[i + 4], ...; the
 * checksum steps from the length over h[0] to h[3], and is then x ^ x >> 32 times K.
 *
 * A step is a bijection of h for every w, and of w for every h: what differs in one word, or in
 * words of one lane that do not undo each other, never has the same sum.
 */
#ifndef MGL_BASE_CHECKSUM_H
#define MGL_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t mgl_checksum(const void *bytes, size_t length);

#endif
