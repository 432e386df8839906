/* Functions that the kernels share, and the pragma that spreads a loop over threads. */

#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#ifdef _OPENMP
#define PRAGMA(text) _Pragma(#text)
#define PARALLEL(threads) PRAGMA(omp parallel for num_threads(threads) if (threads > 1))
#else
#define PARALLEL(threads) (void)threads;
#endif
#define LARGEST_PRODUCT 1e18f /* Its square is finite; for larger x, 1 / (1 + x) is negligible. */

/* e^x to 2 units in the last place, with x clamped to [-87, 88] (Cephes' expf). */
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
    float power = n + 12582912.0f; /* 2^23 + 2^22: n is in the last bits now. Converting a NaN would be undefined. */
    uint32_t bits;
    memcpy(&bits, &power, sizeof bits);
    bits = (bits + 127u) << 23;
    memcpy(&power, &bits, sizeof power); /* 2^n */
    return p * power;
}

/* a b for positive a and b, at most LARGEST_PRODUCT, so that the product of two results is finite. */
static inline float bounded_product(float a, float b) {
    float product = a * b;
    return product > LARGEST_PRODUCT ? LARGEST_PRODUCT : product;
}

static inline float logistic(float x) { return 1.0f / (1.0f + exponential(-x)); }

static inline float hyperbolic_tangent(float x) { return 1.0f - 2.0f / (1.0f + exponential(2.0f * x)); }

/* Maps floats to integers in the same order, so that maxima vectorize; NaN is above infinity. */
static inline int32_t rank_of(float value) {
    int32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits ^ (bits >> 31 & INT32_MAX);
}

static inline float of_rank(int32_t rank) {
    int32_t bits = rank ^ (rank >> 31 & INT32_MAX);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline float largest_of(const float *values, int64_t count) {
    int32_t rank = INT32_MIN;
    for (int64_t i = 0; i < count; i++) rank = rank_of(values[i]) > rank ? rank_of(values[i]) : rank;
    return of_rank(rank);
}
