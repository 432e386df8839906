/* Functions of numbers that the kernels share, and how their loops are shared by threads. */

#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef _OPENMP /* The rows of a loop, or the numbers, are shared by threads. */
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL(threads) PRAGMA(omp parallel for num_threads(threads) if (threads > 1))
#else
#define PARALLEL(threads) (void)threads;
#endif
#define HUGE_ODDS 1e18f /* Beyond it 1 / (1 + odds) is 0 in fp32, and up to it the product of two is finite. */

/* e^x for -87 <= x <= 88, beyond which it is that of the nearest of these; to 2 units in the last place (Cephes' expf). */
static inline float exponential(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = x - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    float power = n + 12582912.0f; /* 2^23 + 2^22: n is in the last bits now. To convert what is not a number would be undefined. */
    uint32_t bits;
    memcpy(&bits, &power, sizeof bits);
    bits = (bits + 127u) << 23;
    memcpy(&power, &bits, sizeof power); /* 2^n */
    return p * power;
}

/* The product of two odds, such that the product of two of these is finite too. */
static inline float odds_together(float a, float b) {
    float odds = a * b;
    return odds > HUGE_ODDS ? HUGE_ODDS : odds;
}

static inline float logistic(float x) { return 1.0f / (1.0f + exponential(-x)); }

static inline float hyperbolic_tangent(float x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }
