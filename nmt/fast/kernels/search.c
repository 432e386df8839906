/* What search computes beside matrix products, each in one pass over memory; `decoding.py` documents the functions. Plain C that
 * compilers vectorize. Matrices are in row-major order. NaN stays NaN.
 */

#include "numbers.h"

#define BLOCK 64 /* Columns that `most_probable` skips at once if none is among the largest. */

/* sum_d v_d / (1 + a_d b_d). A pair of terms shares a division: v / x + w / y = (v y + w x) / (x y). */
static float sum_of_complements(const float *a, const float *b, const float *v, int64_t width) {
    int64_t half = width / 2;
    float sum = width % 2 ? v[width - 1] / (1.0f + a[width - 1] * b[width - 1]) : 0.0f;
    for (int64_t d = 0; d < half; d++) {
        float x = 1.0f + bounded_product(a[d], b[d]), y = 1.0f + bounded_product(a[d + half], b[d + half]);
        sum += (v[d] * y + v[d + half] * x) / (x * y);
    }
    return sum;
}

/* Softmax over the scores that are not -inf; 0 elsewhere. */
static void masked_softmax(float *scores, int64_t length) {
    float largest = largest_of(scores, length), sum = 0.0f;
    for (int64_t j = 0; j < length; j++) {
        scores[j] = scores[j] == -INFINITY ? 0.0f : exponential(scores[j] - largest);
        sum += scores[j];
    }
    for (int64_t j = 0; j < length; j++) scores[j] = sum == 0.0f ? 0.0f : scores[j] / sum;
}

void additive_attention(const float *queries, const float *exp_keys, const float *v, const bool *mask,
                        const float *annotations, const int64_t *segment_ids, const float *addends, const int64_t *starts,
                        const float *factors, float *exp_queries, float *weights, float *contexts, int64_t threads,
                        int64_t rows, int64_t length, int64_t width, int64_t annotation, int64_t window) {
    float sum_of_v = 0.0f;
    for (int64_t d = 0; d < width; d++) sum_of_v += v[d];
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *factor = factors ? factors + row * window : NULL;
        int64_t start = starts ? starts[row] : 0, count = factors ? window : length;
        int64_t first = segment_ids[row] * length + start;
        const float *query = queries + row * width, *keys = exp_keys + first * width, *h = annotations + first * annotation;
        const bool *real = mask + first;
        float *exp_query = exp_queries + row * width, *context = contexts + row * annotation;
        const float *addend = addends ? addends + row * length + start : NULL;
        float *weight = weights + row * length + start;
        if (count < length) memset(weights + row * length, 0, (size_t)length * sizeof(float));
        for (int64_t d = 0; d < width; d++) exp_query[d] = exponential(2.0f * query[d]);
        for (int64_t j = 0; j < count; j++) {
            bool is_read = real[j] && (!factor || factor[j] > 0.0f);
            float more = addend ? addend[j] : 0.0f;
            weight[j] = is_read ? sum_of_v - 2.0f * sum_of_complements(exp_query, keys + j * width, v, width) + more : -INFINITY;
        }
        masked_softmax(weight, count);
        for (int64_t j = 0; factor && j < count; j++) weight[j] *= factor[j];
        for (int64_t d = 0; d < annotation; d++) context[d] = 0.0f;
        for (int64_t j = 0; j < count; j++) {
            if (!real[j]) continue;
            for (int64_t d = 0; d < annotation; d++) context[d] += weight[j] * h[j * annotation + d];
        }
    }
}

/* Insert a number and its index into a list of the `size` largest, best first. It must be larger than the last. */
static inline void insert(float number, int64_t index, float *numbers, int64_t *indices, int64_t size) {
    int64_t place = size - 1;
    for (; place > 0 && number > numbers[place - 1]; place--)
        numbers[place] = numbers[place - 1], indices[place] = indices[place - 1];
    numbers[place] = number, indices[place] = index;
}

static inline int contains(const int64_t *values, int64_t count, int64_t value) {
    for (int64_t i = 0; i < count; i++)
        if (values[i] == value) return 1;
    return 0;
}

void most_probable(const float *all_logits, const int64_t *all_tokens, const int64_t *segment_ids, const int64_t *forbidden,
                   float *all_log_probs, int64_t *all_ids, int64_t threads, int64_t rows, int64_t width, int64_t size,
                   int64_t forbidden_count) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *logits = all_logits + row * width;
        const int64_t *tokens = all_tokens ? all_tokens + segment_ids[row] * width : NULL;
        float *log_probs = all_log_probs + row * size;
        int64_t *ids = all_ids + row * size;
        for (int64_t place = 0; place < size; place++) log_probs[place] = -INFINITY, ids[place] = 0;
        float largest = -INFINITY; /* of all columns, forbidden ones too */
        for (int64_t start = 0; start < width; start += BLOCK) {
            int64_t end = start + BLOCK < width ? start + BLOCK : width;
            float block_largest = largest_of(logits + start, end - start);
            largest = block_largest > largest ? block_largest : largest;
            if (!(block_largest > log_probs[size - 1])) continue;
            for (int64_t i = start; i < end; i++)
                if (logits[i] > log_probs[size - 1] && !contains(forbidden, forbidden_count, tokens ? tokens[i] : i))
                    insert(logits[i], i, log_probs, ids, size);
        }
        float sum = 0.0f;
        for (int64_t i = 0; i < width; i++) sum += exponential(logits[i] - largest);
        float total = largest + logf(sum);
        for (int64_t place = 0; place < size; place++) {
            log_probs[place] = isnan(total) ? -INFINITY : log_probs[place] - total;
            ids[place] = tokens ? tokens[ids[place]] : ids[place];
        }
    }
}

void best_continuations(const float *totals, const float *log_probs, const int64_t *ids, const int64_t *segment_ids,
                        float *best, int64_t *rows, int64_t *tokens, float *best_log_probs, int64_t count,
                        int64_t per_row, int64_t segments, int64_t size, float prune) {
    int64_t row = 0;
    for (int64_t segment = 0; segment < segments; segment++, best += size, rows += size, tokens += size, best_log_probs += size) {
        for (int64_t place = 0; place < size; place++) best[place] = -INFINITY, rows[place] = row < count ? row * per_row : 0;
        for (; row < count && segment_ids[row] == segment; row++)
            for (int64_t i = 0; i < per_row; i++) { /* the most probable first */
                float total = totals[row] + log_probs[row * per_row + i];
                if (!(total > best[size - 1])) break;
                insert(total, row * per_row + i, best, rows, size);
            }
        for (int64_t place = 0; place < size; place++) {
            tokens[place] = ids[rows[place]], best_log_probs[place] = log_probs[rows[place]];
            rows[place] /= per_row;
            if (best[place] < best[0] - prune) best[place] = -INFINITY;
        }
    }
}

void update_finished(const float *totals, const int64_t *tokens, const int64_t *max_lengths, const float *penalties, float *all_scores,
                     int64_t *all_nodes, float *live_totals, int64_t sentences, int64_t width, int64_t places, int64_t lengths,
                     int64_t all_scores_stride, int64_t all_nodes_stride, int64_t first, int64_t length, int64_t horizon, int64_t eos) {
    for (int64_t sentence = 0; sentence < sentences; sentence++, totals += width, tokens += width, live_totals += width) {
        float *scores = all_scores + sentence * all_scores_stride;
        int64_t *nodes = all_nodes + sentence * all_nodes_stride;
        int is_last = max_lengths[sentence] <= length;
        float best = -INFINITY; /* of the live ones */
        for (int64_t place = 0; place < width; place++) {
            int ends = tokens[place] == eos, is_live = !ends && !is_last;
            float score = totals[place] / penalties[length];
            if (ends && score > scores[places - 1]) insert(score, first + sentence * width + place, scores, nodes, places);
            live_totals[place] = is_live ? totals[place] : -INFINITY;
            best = live_totals[place] > best ? live_totals[place] : best;
        }
        int is_cut = is_last && scores[0] == -INFINITY;
        for (int64_t place = 0; is_cut && place < width; place++) {
            float score = totals[place] / penalties[length];
            if (score > scores[places - 1]) insert(score, first + sentence * width + place, scores, nodes, places);
        }
        int64_t longest = max_lengths[sentence] < lengths ? max_lengths[sentence] : lengths - 1;
        int64_t until = length + horizon < longest ? length + horizon : longest;
        if (best / penalties[until] <= scores[places - 1])
            for (int64_t place = 0; place < width; place++) live_totals[place] = -INFINITY;
    }
}

#ifdef __AVX512VNNI__
#include <immintrin.h>

#define PANEL 64 /* Outputs of a panel, */
#define TILE 6   /* by rows of values: their sums fill 24 of 32 registers. */
#define VECTORS 4
#define SHARE 48 /* Rows that a thread multiplies with a panel before it takes the next panel. */
#define UNROLL _Pragma("GCC unroll 6")
#define GATES 3

/* Bytes x' = round(x / s) + 128 of rows of values, and s = max |x| / 127 of each row: 1 if 1 / s is not finite, NaN if an x is not. */
static void quantize_rows(const float *values, uint8_t *bytes, float *scales, int64_t threads, int64_t rows, int64_t width,
                          int64_t stride, int64_t bytes_stride) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *x = values + row * stride;
        uint8_t *quantized = bytes + row * bytes_stride;
        int32_t rank = 0;
        for (int64_t i = 0; i < width; i++) rank = rank_of(fabsf(x[i])) > rank ? rank_of(fabsf(x[i])) : rank;
        float largest = of_rank(rank), scale = largest / INT8_MAX; /* NaN if any x is */
        if (!(1.0f / scale < INFINITY)) scale = 1.0f;
        float inverse = largest < INFINITY ? 1.0f / scale : 0.0f;
        for (int64_t i = 0; i < width; i++) quantized[i] = (uint8_t)(int32_t)(x[i] * inverse + 128.5f);
        scales[row] = largest < INFINITY ? scale : NAN;
    }
}

/* Sums of products of `count` rows with a panel; one instruction multiplies and adds four inputs of 16 outputs. */
static inline void multiply_tile(const uint8_t *bytes, const int8_t *panel, int64_t quads, int64_t count, int32_t sums[TILE][PANEL]) {
    __m512i sum[TILE][VECTORS], weight[VECTORS];
    const uint8_t *rows[TILE];
    UNROLL for (int r = 0; r < TILE; r++) rows[r] = bytes + (r < count ? r : count - 1) * quads * 4;
    UNROLL for (int r = 0; r < TILE; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_si512();
    for (int64_t k = 0; k < quads; k++) {
        UNROLL for (int v = 0; v < VECTORS; v++) weight[v] = _mm512_loadu_si512(panel + (k * VECTORS + v) * 64);
        UNROLL for (int r = 0; r < TILE; r++) {
            int32_t four;
            memcpy(&four, rows[r] + k * 4, sizeof four);
            __m512i read = _mm512_set1_epi32(four);
            UNROLL for (int v = 0; v < VECTORS; v++) /* By the intrinsic, GCC 12 copies the sums at every turn. */
                __asm__("vpdpbusd %2, %1, %0" : "+v"(sum[r][v]) : "v"(read), "v"(weight[v]));
        }
    }
    UNROLL for (int r = 0; r < TILE; r++) UNROLL for (int v = 0; v < VECTORS; v++) _mm512_storeu_si512(sums[r] + v * 16, sum[r][v]);
}

/* s_i s_g sum + b_g of a row and the outputs of a panel. */
static inline void dequantize(const int32_t *sums, const int32_t *shifts, const float *scales, const float *bias, float row_scale,
                              float scaled[PANEL]) {
    for (int64_t g = 0; g < PANEL; g++) /* an overflow of the sum is undone by that of the shift */
        scaled[g] = (float)(int32_t)((uint32_t)sums[g] - (uint32_t)shifts[g]) * (row_scale * scales[g]) + bias[g];
}

/* The products of some rows with a panel, of which `width` columns are written. */
static void multiply_panel(const uint8_t *bytes, const float *row_scales, const int8_t *panel, const int32_t *shifts, const float *scales,
                           const float *bias, int64_t quads, int64_t rows, int64_t width, float *product, int64_t stride) {
    for (int64_t row = 0; row < rows; row += TILE) {
        int32_t sums[TILE][PANEL];
        float scaled[PANEL];
        int64_t count = rows - row < TILE ? rows - row : TILE;
        multiply_tile(bytes + row * quads * 4, panel, quads, count, sums);
        for (int64_t r = 0; r < count; r++) {
            dequantize(sums[r], shifts, scales, bias, row_scales[row + r], scaled);
            memcpy(product + (row + r) * stride, scaled, (size_t)width * sizeof(float));
        }
    }
}

void int8_product(const float *values, const int8_t *panels, const int32_t *shifts, const float *scales, const float *bias,
                  uint8_t *bytes, float *row_scales, float *product, int64_t threads, int64_t rows, int64_t inputs,
                  int64_t outputs, int64_t values_stride, int64_t product_stride) {
    int64_t quads = (inputs + 3) / 4, shares = (rows + SHARE - 1) / SHARE, tasks = (outputs + PANEL - 1) / PANEL * shares;
    quantize_rows(values, bytes, row_scales, threads, rows, inputs, values_stride, quads * 4); /* further bytes meet 0 */
    PARALLEL(threads)
    for (int64_t task = 0; task < tasks; task++) { /* some rows times a panel, which stays in the cache for the next rows */
        int64_t first = task / shares * PANEL, width = outputs - first < PANEL ? outputs - first : PANEL;
        int64_t start = task % shares * SHARE, end = start + SHARE < rows ? start + SHARE : rows;
        multiply_panel(bytes + start * quads * 4, row_scales + start, panels + first * quads * 4, shifts + first, scales + first,
                       bias + first, quads, end - start, width, product + start * product_stride + first, product_stride);
    }
}

void int8_products_of_segments(const float *values, const int8_t *panels, const int32_t *shifts, const float *scales,
                               const float *bias, uint8_t *bytes, float *row_scales, const int64_t *segment_ids,
                               const int64_t *first, const int64_t *panel_count, float *product, int64_t threads, int64_t rows,
                               int64_t inputs, int64_t outputs, int64_t values_stride, int64_t product_stride) {
    int64_t quads = (inputs + 3) / 4;
    quantize_rows(values, bytes, row_scales, threads, rows, inputs, values_stride, quads * 4);
    PARALLEL(threads)
    for (int64_t start = 0; start < rows; start++) { /* the first row of each segment */
        if (start > 0 && segment_ids[start] == segment_ids[start - 1]) continue;
        int64_t end = start + 1, begin = first[segment_ids[start]], panels_end = begin + panel_count[segment_ids[start]];
        while (end < rows && segment_ids[end] == segment_ids[start]) end++;
        int64_t written = 0;
        for (int64_t panel = begin; panel < panels_end; panel++, written += PANEL) {
            int64_t width = outputs - written < PANEL ? outputs - written : PANEL, output = panel * PANEL;
            multiply_panel(bytes + start * quads * 4, row_scales + start, panels + output * quads * 4, shifts + output, scales + output,
                           bias + output, quads, end - start, width, product + start * product_stride + written, product_stride);
        }
        for (int64_t row = start; row < end; row++)
            for (int64_t g = written; g < outputs; g++) product[row * product_stride + g] = -INFINITY;
    }
}

void int8_gru_step(const float *projected, const float *hidden, const int8_t *panels, const int32_t *shifts, const float *scales,
                   const float *bias, uint8_t *bytes, float *row_scales, float *next, int64_t threads, int64_t rows, int64_t width,
                   int64_t projected_stride, int64_t hidden_stride) {
    int64_t quads = width / 4, shares = (rows + SHARE - 1) / SHARE, tasks = width / PANEL * shares;
    quantize_rows(hidden, bytes, row_scales, threads, rows, width, hidden_stride, quads * 4);
    PARALLEL(threads)
    for (int64_t task = 0; task < tasks; task++) { /* some rows and columns of each gate, which never leave the cache */
        float products[GATES][SHARE][PANEL]; /* U s + b */
        int64_t first = task / shares * PANEL, start = task % shares * SHARE, end = start + SHARE < rows ? start + SHARE : rows;
        for (int64_t gate = 0; gate < GATES; gate++) {
            int64_t output = gate * width + first;
            multiply_panel(bytes + start * quads * 4, row_scales + start, panels + output * quads * 4, shifts + output, scales + output,
                           bias + output, quads, end - start, PANEL, products[gate][0], PANEL);
        }
        for (int64_t row = start; row < end; row++) {
            const float *x = projected + row * projected_stride + first, *before = hidden + row * hidden_stride + first;
            float *after = next + row * width + first;
            for (int64_t d = 0; d < PANEL; d++) {
                float reset = logistic(x[d] + products[0][row - start][d]), update = logistic(x[width + d] + products[1][row - start][d]);
                float candidate = hyperbolic_tangent(x[2 * width + d] + reset * products[2][row - start][d]);
                after[d] = candidate + update * (before[d] - candidate);
            }
        }
    }
}
#endif
