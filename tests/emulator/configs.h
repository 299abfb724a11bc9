/* Declares the group `configs` of test_emulator: any shape with any config. */
#ifndef MGL_TESTS_EMULATOR_CONFIGS_H
#define MGL_TESTS_EMULATOR_CONFIGS_H

/* Number i: decoding and prompts, or ragged sequences; every other one with any variants that take
 * its tasks. */
void check_config(int i);

#endif
