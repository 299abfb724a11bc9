/*
 * Replaces Check's record of each assertion that holds. Check writes these records to a file and
 * reads them when the test ends; only a test that crashes in a child process needs them, and ctest
 * runs tests without child processes. With a million assertions, they took most of the time.
 */
void __wrap__mark_point(const char *file, int line);

void __wrap__mark_point(const char *file, int line)
{
    (void)file, (void)line;
}
