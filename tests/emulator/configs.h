/* Any shape with any config, which test_emulator runs in its group `configs`. */
#ifndef MGL_TESTS_EMULATOR_CONFIGS_H
#define MGL_TESTS_EMULATOR_CONFIGS_H

/* Number i: decoding and prompts, or ragged sequences; every other one with any variants that take
 * its tasks. */
void check_config(int i);

#endif
