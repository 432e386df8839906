/* What training computes beside matrix products; `gru.py`, `attention.py` and `loss.py` call the functions. Values are fp32, or bf16 if `narrow`: a span of
 * them is widened, computed with in fp32, and rounded again.
 */

#include "numbers.h"

#define SPAN 256 /* Numbers of a row that are widened at once. */

static const float zeros[SPAN];

/* `count` numbers in fp32; copied to `wide` only if they are bf16. */
static inline const float *widened(const void *values, int64_t place, int64_t count, int64_t narrow, float *wide) {
    if (!narrow) return (const float *)values + place;
    const uint16_t *halves = (const uint16_t *)values + place;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits = (uint32_t)halves[i] << 16;
        memcpy(wide + i, &bits, sizeof bits);
    }
    return wide;
}

/* The inverse of `widened`: rounds to nearest, ties to even; NaN stays NaN. */
static inline void put(const float *wide, void *values, int64_t place, int64_t count, int64_t narrow) {
    if (!narrow) {
        memcpy((float *)values + place, wide, (size_t)count * sizeof(float));
        return;
    }
    uint16_t *halves = (uint16_t *)values + place;
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, wide + i, sizeof bits);
        uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
        halves[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fc0u : rounded);
    }
}

void softmax_gradient(void *logits, const float *bias, const int64_t *gold, float *log_sums,
                      float *gold_logits, float *sums, float *scratch, int64_t threads, int64_t rows, int64_t real,
                      int64_t width, int64_t narrow, float gold_share) {
    PARALLEL(threads)
    for (int64_t share = 0; share < threads; share++) {
        float *sum_of = sums + share * width, *p = scratch + share * width, wide[SPAN];
        for (int64_t i = 0; i < width; i++) sum_of[i] = 0.0f;
        for (int64_t row = share * rows / threads; row < (share + 1) * rows / threads; row++) {
            int64_t first = row * width;
            if (row >= real) {
                memset((char *)logits + first * (narrow ? 2 : 4), 0, (size_t)width * (narrow ? 2 : 4));
                log_sums[row] = gold_logits[row] = 0.0f;
                continue;
            }
            for (int64_t at = 0; at < width; at += SPAN) {
                int64_t count = width - at < SPAN ? width - at : SPAN;
                const float *x = widened(logits, first + at, count, narrow, wide);
                for (int64_t i = 0; i < count; i++) p[at + i] = x[i] + bias[at + i];
            }
            gold_logits[row] = p[gold[row]];
            float largest = largest_of(p, width), sum = 0.0f;
            for (int64_t i = 0; i < width; i++) {
                p[i] = exponential(p[i] - largest);
                sum += p[i];
            }
            log_sums[row] = largest + logf(sum);
            float scale = 1.0f / sum;
            for (int64_t i = 0; i < width; i++) p[i] *= scale;
            p[gold[row]] -= gold_share;
            for (int64_t i = 0; i < width; i++) sum_of[i] += p[i];
            put(p, logits, first, width, narrow);
        }
    }
}

void gru_step(const void *projected, const void *recurrent, const float *bias, const void *hidden, void *next, void *saved,
              int64_t threads, int64_t rows, int64_t width, int64_t projected_stride, int64_t recurrent_stride,
              int64_t hidden_stride, int64_t narrow) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t at = 0; at < width; at += SPAN) {
            int64_t count = width - at < SPAN ? width - at : SPAN;
            float wide[7][SPAN], parts[4][SPAN], after[SPAN];
            const float *x[3], *s[3], *b[3], *before = widened(hidden, row * hidden_stride + at, count, narrow, wide[6]);
            for (int64_t gate = 0; gate < 3; gate++) {
                x[gate] = widened(projected, row * projected_stride + gate * width + at, count, narrow, wide[gate]);
                s[gate] = widened(recurrent, row * recurrent_stride + gate * width + at, count, narrow, wide[3 + gate]);
                b[gate] = bias ? bias + gate * width + at : zeros;
            }
            for (int64_t d = 0; d < count; d++) {
                parts[0][d] = logistic(x[0][d] + s[0][d] + b[0][d]);
                parts[1][d] = logistic(x[1][d] + s[1][d] + b[1][d]);
                parts[3][d] = s[2][d] + b[2][d];
                parts[2][d] = hyperbolic_tangent(x[2][d] + parts[0][d] * parts[3][d]);
                after[d] = parts[2][d] + parts[1][d] * (before[d] - parts[2][d]);
            }
            put(after, next, row * width + at, count, narrow);
            for (int64_t part = 0; part < 4; part++) put(parts[part], saved, (row * 4 + part) * width + at, count, narrow);
        }
    }
}

void gru_step_back(const void *upstream, const void *carried, const void *saved, const void *hidden, void *d_projected,
                   void *d_recurrent, void *d_hidden, int64_t threads, int64_t rows, int64_t width, int64_t upstream_stride,
                   int64_t hidden_stride, int64_t d_projected_stride, int64_t narrow) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t at = 0; at < width; at += SPAN) {
            int64_t count = width - at < SPAN ? width - at : SPAN;
            float wide[7][SPAN], down[4][SPAN], d_state[SPAN];
            const float *above = widened(upstream, row * upstream_stride + at, count, narrow, wide[0]);
            const float *later = carried ? widened(carried, row * width + at, count, narrow, wide[1]) : zeros;
            const float *before = widened(hidden, row * hidden_stride + at, count, narrow, wide[2]), *parts[4];
            for (int64_t part = 0; part < 4; part++)
                parts[part] = widened(saved, (row * 4 + part) * width + at, count, narrow, wide[3 + part]);
            for (int64_t d = 0; d < count; d++) {
                float g = above[d] + later[d], r = parts[0][d], z = parts[1][d], n = parts[2][d];
                float d_new = g * (1.0f - z) * (1.0f - n * n);
                down[0][d] = d_new * parts[3][d] * r * (1.0f - r);
                down[1][d] = g * (before[d] - n) * z * (1.0f - z);
                down[2][d] = d_new;
                down[3][d] = d_new * r;
                d_state[d] = g * z;
            }
            for (int64_t gate = 0; gate < 3; gate++) {
                put(down[gate], d_projected, row * d_projected_stride + gate * width + at, count, narrow);
                put(down[gate == 2 ? 3 : gate], d_recurrent, (row * 3 + gate) * width + at, count, narrow);
            }
            put(d_state, d_hidden, row * width + at, count, narrow);
        }
    }
}

/* sums_d += by x / (1 + x)^2 with x = a_d b_d, where x / (1 + x)^2 = (1 - tanh^2) / 4. Two numbers share a division. */
static inline void add_slopes(const float *a, const float *b, float by, float *sums, int64_t width) {
    int64_t half = width / 2;
    for (int64_t d = 0; d < half; d++) {
        float x = bounded_product(a[d], b[d]), y = bounded_product(a[d + half], b[d + half]);
        float x_plus_1 = 1.0f + x, y_plus_1 = 1.0f + y, inverse = 1.0f / (x_plus_1 * y_plus_1);
        float c = y_plus_1 * inverse, e = x_plus_1 * inverse;
        sums[d] += by * (x * c * c);
        sums[d + half] += by * (y * e * e);
    }
    if (width % 2) {
        float x = bounded_product(a[width - 1], b[width - 1]);
        sums[width - 1] += by * (x / ((1.0f + x) * (1.0f + x)));
    }
}

void additive_attention_back(const float *d_contexts, const float *d_weights, const float *exp_queries, const float *exp_keys,
                             const float *v, const float *annotations, const float *weights, const int64_t *starts,
                             const float *factors, float *d_scores, float *d_queries, float *d_factors, int64_t threads,
                             int64_t rows, int64_t length, int64_t width, int64_t annotation, int64_t window) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        int64_t first = row * length + (starts ? starts[row] : 0), count = factors ? window : length;
        const float *d_context = d_contexts + row * annotation, *h = annotations + first * annotation;
        const float *weight = weights + first, *factor = factors ? factors + row * window : NULL;
        float *d_score = d_scores + first, *d_query = d_queries + row * width, mean = 0.0f;
        if (count < length) memset(d_scores + row * length, 0, (size_t)length * sizeof(float));
        for (int64_t j = 0; j < count; j++) {
            float d_weight = d_weights[first + j];
            if (weight[j] != 0.0f)
                for (int64_t d = 0; d < annotation; d++) d_weight += d_context[d] * h[j * annotation + d];
            d_score[j] = d_weight;
            mean += weight[j] * d_weight;
        }
        for (int64_t d = 0; d < width; d++) d_query[d] = 0.0f;
        for (int64_t j = 0; j < count; j++) {
            float before = factor ? (factor[j] > 0.0f ? weight[j] / factor[j] : 0.0f) : weight[j]; /* the softmax, without the factor */
            if (factor) d_factors[row * window + j] = before * d_score[j];
            d_score[j] = weight[j] * d_score[j] - before * mean;
            if (d_score[j] != 0.0f) add_slopes(exp_queries + row * width, exp_keys + (first + j) * width, d_score[j], d_query, width);
        }
        for (int64_t d = 0; d < width; d++) d_query[d] *= 4.0f * v[d];
    }
}

void additive_keys_back(const float *exp_queries, const float *d_scores, const float *exp_keys, const float *v, float *d_keys,
                        float *d_v, int64_t threads, int64_t steps, int64_t rows, int64_t length, int64_t width) {
    PARALLEL(threads)
    for (int64_t share = 0; share < threads; share++) {
        float *d_v_share = d_v + share * width;
        for (int64_t d = 0; d < width; d++) d_v_share[d] = 0.0f;
        for (int64_t row = share * rows / threads; row < (share + 1) * rows / threads; row++)
            for (int64_t j = 0; j < length; j++) {
                const float *key = exp_keys + (row * length + j) * width;
                float *d_key = d_keys + (row * length + j) * width;
                for (int64_t d = 0; d < width; d++) d_key[d] = 0.0f;
                for (int64_t step = 0; step < steps; step++) {
                    float by = d_scores[(step * rows + row) * length + j];
                    const float *exp_query = exp_queries + (step * rows + row) * width;
                    if (by == 0.0f) continue;
                    for (int64_t d = 0; d < width; d++) {
                        float complement = 1.0f / (1.0f + bounded_product(exp_query[d], key[d]));
                        d_key[d] += by * (complement - complement * complement);
                        d_v_share[d] += by * (1.0f - 2.0f * complement);
                    }
                }
                for (int64_t d = 0; d < width; d++) d_key[d] *= 4.0f * v[d];
            }
    }
}
