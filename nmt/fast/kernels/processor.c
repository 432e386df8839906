/* Which of the instruction sets of `compiling.py` this processor has. */

/* How many of them, from the first on: each includes those before it. */
int instruction_sets(void) {
#ifdef __x86_64__
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("x86-64-v2")) return 0;
    if (!__builtin_cpu_supports("x86-64-v3")) return 1;
    if (!__builtin_cpu_supports("x86-64-v4")) return 2;
    return __builtin_cpu_supports("avx512vnni") ? 4 : 3;
#else
    return 1;
#endif
}
