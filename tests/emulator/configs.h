/* Declares the group `configs` of test_emulator: any shape with any config. */
#ifndef MGL_TESTS_EMULATOR_CONFIGS_H
#define MGL_TESTS_EMULATOR_CONFIGS_H

/* Case i: decoding and prompts, or sequences of different lengths. Every other case uses random
 * variants that fit its tasks. */
void check_config(int i);

#endif
