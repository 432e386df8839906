/* What search computes on a CPU beside matrix products, each in one pass over memory: `kernels.py` says what each means, and the
 * tests hold each against PyTorch. Plain C, of which a compiler makes vector instructions; matrices have their rows one after the
 * other. What is not a number stays so.
 */

#include "numbers.h"

#define BLOCK 64 /* Columns that are passed by at once where none is among the largest. */

/* The bits of a number, such that of two numbers the larger has the larger ones; what is not a number is beyond infinity. */
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

static float sum_of_exponentials(const float *values, int64_t count, float shift) {
    float sum = 0.0f;
    for (int64_t i = 0; i < count; i++) sum += exponential(values[i] - shift);
    return sum;
}

/* sum_d v_d / (1 + a_d b_d). Terms are added in pairs, v / x + w / y = (v y + w x) / (x y), to divide half as often. */
static float sum_of_complements(const float *a, const float *b, const float *v, int64_t width) {
    int64_t half = width / 2;
    float sum = width % 2 ? v[width - 1] / (1.0f + a[width - 1] * b[width - 1]) : 0.0f;
    for (int64_t d = 0; d < half; d++) {
        float x = 1.0f + odds_together(a[d], b[d]), y = 1.0f + odds_together(a[d + half], b[d + half]);
        sum += (v[d] * y + v[d + half] * x) / (x * y);
    }
    return sum;
}

/* Softmax over the allowed positions that do not score -inf, 0 elsewhere. */
static void masked_softmax(float *scores, const uint8_t *mask, int64_t length) {
    for (int64_t j = 0; j < length; j++) scores[j] = mask[j] ? scores[j] : -INFINITY;
    float largest = largest_of(scores, length), sum = 0.0f;
    for (int64_t j = 0; j < length; j++) {
        scores[j] = scores[j] == -INFINITY ? 0.0f : exponential(scores[j] - largest);
        sum += scores[j];
    }
    for (int64_t j = 0; j < length; j++) scores[j] = sum == 0.0f ? 0.0f : scores[j] / sum;
}

void additive_attention(const float *queries, const float *odds, const float *v, const uint8_t *mask, const float *annotations,
                        const int64_t *sentence, float *asked, float *weights, float *contexts, int64_t threads, int64_t rows,
                        int64_t length, int64_t width, int64_t annotation) {
    float sum_of_v = 0.0f;
    for (int64_t d = 0; d < width; d++) sum_of_v += v[d];
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *query = queries + row * width, *keys = odds + sentence[row] * length * width;
        const float *read = annotations + sentence[row] * length * annotation;
        const uint8_t *real = mask + sentence[row] * length;
        float *asks = asked + row * width, *weight = weights + row * length, *context = contexts + row * annotation;
        for (int64_t d = 0; d < width; d++) asks[d] = exponential(2.0f * query[d]);
        for (int64_t j = 0; j < length; j++)
            weight[j] = real[j] ? sum_of_v - 2.0f * sum_of_complements(asks, keys + j * width, v, width) : 0.0f;
        masked_softmax(weight, real, length);
        for (int64_t d = 0; d < annotation; d++) context[d] = 0.0f;
        for (int64_t j = 0; j < length; j++) {
            if (!real[j]) continue;
            for (int64_t d = 0; d < annotation; d++) context[d] += weight[j] * read[j * annotation + d];
        }
    }
}

/* s' of one number: what r reads, what z reads, W x and U s of n, and s. */
static inline float gru_state(float of_reset, float of_update, float read, float recurrent, float before) {
    float reset = logistic(of_reset), update = logistic(of_update);
    float candidate = hyperbolic_tangent(read + reset * recurrent);
    return candidate + update * (before - candidate);
}

/* Put a number and its index in their place among the `size` largest, which it is known to be one of; what is less moves down. */
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

void most_probable(const float *all_logits, const int64_t *all_pieces, const int64_t *group, const int64_t *forbidden,
                   float *all_log_probs, int64_t *all_ids, int64_t threads, int64_t rows, int64_t width, int64_t size,
                   int64_t forbidden_count) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) {
        const float *logits = all_logits + row * width;
        const int64_t *pieces = all_pieces ? all_pieces + group[row] * width : NULL;
        float *log_probs = all_log_probs + row * size;
        int64_t *ids = all_ids + row * size;
        for (int64_t place = 0; place < size; place++) log_probs[place] = -INFINITY, ids[place] = 0;
        float largest = -INFINITY; /* of all, also of those that are forbidden */
        for (int64_t start = 0; start < width; start += BLOCK) {
            int64_t end = start + BLOCK < width ? start + BLOCK : width;
            float of_block = largest_of(logits + start, end - start);
            largest = of_block > largest ? of_block : largest;
            if (!(of_block > log_probs[size - 1])) continue;
            for (int64_t i = start; i < end; i++)
                if (logits[i] > log_probs[size - 1] && !contains(forbidden, forbidden_count, pieces ? pieces[i] : i))
                    insert(logits[i], i, log_probs, ids, size);
        }
        float total = largest + logf(sum_of_exponentials(logits, width, largest));
        for (int64_t place = 0; place < size; place++) {
            log_probs[place] = isnan(total) ? -INFINITY : log_probs[place] - total;
            ids[place] = pieces ? pieces[ids[place]] : ids[place];
        }
    }
}

void best_continuations(const float *totals, const float *log_probs, const int64_t *ids, const int64_t *group, const float *prune,
                        float *best, int64_t *rows, int64_t *tokens, float *best_log_probs, int64_t count, int64_t each,
                        int64_t groups, int64_t size) {
    int64_t row = 0;
    for (int64_t of = 0; of < groups; of++, best += size, rows += size, tokens += size, best_log_probs += size) {
        for (int64_t place = 0; place < size; place++) best[place] = -INFINITY, rows[place] = row < count ? row * each : 0;
        for (; row < count && group[row] == of; row++)
            for (int64_t i = 0; i < each; i++) { /* the most probable first */
                float total = totals[row] + log_probs[row * each + i];
                if (!(total > best[size - 1])) break;
                insert(total, row * each + i, best, rows, size);
            }
        for (int64_t place = 0; place < size; place++) {
            tokens[place] = ids[rows[place]], best_log_probs[place] = log_probs[rows[place]];
            rows[place] /= each;
            if (best[place] < best[0] - *prune) best[place] = -INFINITY;
        }
    }
}

void settle(const float *totals, const int64_t *tokens, const int64_t *max_lengths, const float *penalties, float *all_scores,
            int64_t *all_nodes, float *going, int64_t sentences, int64_t width, int64_t places, int64_t lengths, int64_t all_scores_stride,
            int64_t all_nodes_stride, int64_t first, int64_t length, int64_t horizon, int64_t eos) {
    for (int64_t of = 0; of < sentences; of++, totals += width, tokens += width, going += width) {
        float *scores = all_scores + of * all_scores_stride;
        int64_t *nodes = all_nodes + of * all_nodes_stride;
        int is_last = max_lengths[of] <= length;
        float best = -INFINITY; /* of what goes on */
        for (int64_t place = 0; place < width; place++) {
            int ends = tokens[place] == eos, goes_on = !ends && !is_last;
            float score = totals[place] / penalties[length];
            if (ends && score > scores[places - 1]) insert(score, first + of * width + place, scores, nodes, places);
            going[place] = goes_on ? totals[place] : -INFINITY;
            best = going[place] > best ? going[place] : best;
        }
        int is_cut = is_last && scores[0] == -INFINITY;
        for (int64_t place = 0; is_cut && place < width; place++) {
            float score = totals[place] / penalties[length];
            if (score > scores[places - 1]) insert(score, first + of * width + place, scores, nodes, places);
        }
        int64_t longest = max_lengths[of] < lengths ? max_lengths[of] : lengths - 1;
        int64_t until = length + horizon < longest ? length + horizon : longest;
        if (best / penalties[until] <= scores[places - 1])
            for (int64_t place = 0; place < width; place++) going[place] = -INFINITY;
    }
}

/* max |x|; not a number if one is not. */
static inline float largest_size(const float *values, int64_t count) {
    int32_t rank = 0;
    for (int64_t i = 0; i < count; i++) rank = rank_of(fabsf(values[i])) > rank ? rank_of(fabsf(values[i])) : rank;
    return of_rank(rank);
}

double odds_of(const float *keys, float *odds, int64_t threads, int64_t count) {
    PARALLEL(threads)
    for (int64_t i = 0; i < count; i++) odds[i] = exponential(2.0f * keys[i]);
    return largest_size(keys, count);
}

/* x' = x / step + most + 1, rounded, of one row; the step is max |x| / most, 1 if 1 / step is not finite, and no number if an x is not. */
static inline float round_row(const float *values, uint8_t *bytes, int64_t count, int64_t most) {
    float largest = largest_size(values, count);
    if (!(largest < INFINITY)) return NAN;
    float step = largest / (float)most, shift = (float)most + 1.5f;
    if (!(1.0f / step < INFINITY)) step = 1.0f;
    float scale = 1.0f / step;
    for (int64_t i = 0; i < count; i++) bytes[i] = (uint8_t)(int32_t)(values[i] * scale + shift);
    return step;
}

static void round_apart(const float *values, uint8_t *bytes, float *steps, int64_t threads, int64_t rows, int64_t width,
                        int64_t stride, int64_t bytes_stride, int64_t most) {
    PARALLEL(threads)
    for (int64_t row = 0; row < rows; row++) steps[row] = round_row(values + row * stride, bytes + row * bytes_stride, width, most);
}

void round_rows(const float *values, uint8_t *bytes, float *steps, int64_t threads, int64_t rows, int64_t width, int64_t values_stride,
                int64_t most) {
    round_apart(values, bytes, steps, threads, rows, width, values_stride, width, most);
}

#ifdef __AVX512VNNI__
#include <immintrin.h>

#define PANEL 64 /* Outputs */
#define TILE 6   /* and rows whose sums are in registers at a time: 24 of 32. */
#define VECTORS 4
#define SHARE 48 /* Rows that a thread multiplies with a panel before it takes the next. */
#define UNROLL _Pragma("GCC unroll 6")

/* Some rows of a matrix as the outputs of panels, each four bytes of a row below those of the row before; 0 where there is none. */
void lay_panels(const int8_t *matrix, const int64_t *rows, int8_t *panels, int64_t threads, int64_t panel_count, int64_t inputs) {
    int64_t fours = (inputs + 3) / 4;
    PARALLEL(threads)
    for (int64_t panel = 0; panel < panel_count; panel++) {
        int8_t *laid = panels + panel * PANEL * fours * 4;
        memset(laid, 0, (size_t)(PANEL * fours * 4));
        for (int64_t g = 0; g < PANEL; g++) {
            int64_t row = rows[panel * PANEL + g];
            const int8_t *values = matrix + row * inputs;
            for (int64_t k = 0; row >= 0 && k < inputs; k += 4)
                memcpy(laid + (k / 4 * PANEL + g) * 4, values + k, inputs - k < 4 ? (size_t)(inputs - k) : 4);
        }
    }
}

/* Sums of products of `count` rows with a panel, of which each four bytes of a row meet four of each output. */
static inline void multiply_tile(const uint8_t *bytes, const int8_t *panel, int64_t fours, int64_t count, int32_t sums[TILE][PANEL]) {
    __m512i sum[TILE][VECTORS], weight[VECTORS];
    const uint8_t *rows[TILE];
    UNROLL for (int r = 0; r < TILE; r++) rows[r] = bytes + (r < count ? r : count - 1) * fours * 4;
    UNROLL for (int r = 0; r < TILE; r++) UNROLL for (int v = 0; v < VECTORS; v++) sum[r][v] = _mm512_setzero_si512();
    for (int64_t k = 0; k < fours; k++) {
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

/* s_i s_g sum + b_g of one row and the outputs of a panel. */
static inline void scale(const int32_t *sums, const int32_t *shifts, const float *steps, const float *bias, float row_step,
                         float scaled[PANEL]) {
    for (int64_t g = 0; g < PANEL; g++) /* what goes round in 32 bits goes back */
        scaled[g] = (float)(int32_t)((uint32_t)sums[g] - (uint32_t)shifts[g]) * (row_step * steps[g]) + bias[g];
}

void int8_product(const float *values, const int8_t *panels, const int32_t *shifts, const float *steps, const float *bias,
                  uint8_t *bytes, float *row_steps, float *product, int64_t threads, int64_t rows, int64_t inputs,
                  int64_t outputs, int64_t values_stride, int64_t product_stride) {
    int64_t fours = (inputs + 3) / 4, shares = (rows + SHARE - 1) / SHARE, tasks = (outputs + PANEL - 1) / PANEL * shares;
    round_apart(values, bytes, row_steps, threads, rows, inputs, values_stride, fours * 4, INT8_MAX); /* more bytes meet 0 */
    PARALLEL(threads)
    for (int64_t task = 0; task < tasks; task++) { /* some rows by one panel, which stays in the cache for the next rows */
        int64_t first = task / shares * PANEL, width = outputs - first < PANEL ? outputs - first : PANEL;
        int64_t start = task % shares * SHARE, end = start + SHARE < rows ? start + SHARE : rows;
        for (int64_t row = start; row < end; row += TILE) {
            int32_t sums[TILE][PANEL];
            float scaled[PANEL];
            int64_t count = end - row < TILE ? end - row : TILE;
            multiply_tile(bytes + row * fours * 4, panels + first * fours * 4, fours, count, sums);
            for (int64_t r = 0; r < count; r++) {
                scale(sums[r], shifts + first, steps + first, bias + first, row_steps[row + r], scaled);
                memcpy(product + (row + r) * product_stride + first, scaled, (size_t)width * sizeof(float));
            }
        }
    }
}

void int8_products_of_groups(const float *values, const int8_t *panels, const int32_t *shifts, const float *steps, const float *bias,
                             uint8_t *bytes, float *row_steps, const int64_t *group, const int64_t *first, const int64_t *panel_count,
                             float *product, int64_t threads, int64_t rows, int64_t inputs, int64_t outputs, int64_t values_stride,
                             int64_t product_stride) {
    int64_t fours = (inputs + 3) / 4;
    round_apart(values, bytes, row_steps, threads, rows, inputs, values_stride, fours * 4, INT8_MAX);
    PARALLEL(threads)
    for (int64_t start = 0; start < rows; start++) { /* the first row of each group */
        if (start > 0 && group[start] == group[start - 1]) continue;
        int64_t end = start + 1, begin = first[group[start]], panels_end = begin + panel_count[group[start]];
        while (end < rows && group[end] == group[start]) end++;
        for (int64_t row = start; row < end; row += TILE) {
            int64_t count = end - row < TILE ? end - row : TILE, written = 0;
            for (int64_t panel = begin; panel < panels_end; panel++, written += PANEL) {
                int32_t sums[TILE][PANEL];
                float scaled[PANEL];
                int64_t width = outputs - written < PANEL ? outputs - written : PANEL, of = panel * PANEL;
                multiply_tile(bytes + row * fours * 4, panels + of * fours * 4, fours, count, sums);
                for (int64_t r = 0; r < count; r++) {
                    scale(sums[r], shifts + of, steps + of, bias + of, row_steps[row + r], scaled);
                    memcpy(product + (row + r) * product_stride + written, scaled, (size_t)width * sizeof(float));
                }
            }
            for (int64_t r = row; r < row + count; r++)
                for (int64_t g = written; g < outputs; g++) product[r * product_stride + g] = -INFINITY;
        }
    }
}

/* Add the products of some rows with a panel to sums of theirs. */
static void add_products(const uint8_t *bytes, const float *row_steps, const int8_t *panel, const int32_t *shifts, const float *steps,
                         const float *bias, int64_t fours, int64_t rows, float found[][PANEL]) {
    for (int64_t row = 0; row < rows; row += TILE) {
        int32_t sums[TILE][PANEL];
        float scaled[PANEL];
        int64_t count = rows - row < TILE ? rows - row : TILE;
        multiply_tile(bytes + row * fours * 4, panel, fours, count, sums);
        for (int64_t r = row; r < row + count; r++) {
            scale(sums[r - row], shifts, steps, bias, row_steps[r], scaled);
            for (int64_t g = 0; g < PANEL; g++) found[r][g] += scaled[g];
        }
    }
}

#define GATES 3

void int8_gru_step(const float *projected, const float *table, const int64_t *ids, const float *values, const int8_t *panels, const int32_t *shifts,
                   const float *steps, const float *bias, uint8_t *bytes, float *row_steps, const float *hidden,
                   const int8_t *recurrent_panels, const int32_t *recurrent_shifts, const float *recurrent_steps,
                   const float *recurrent_bias, uint8_t *hidden_bytes, float *hidden_steps, float *next, int64_t threads, int64_t rows,
                   int64_t inputs, int64_t width, int64_t projected_stride, int64_t values_stride, int64_t hidden_stride) {
    int64_t fours = (inputs + 3) / 4, hidden_fours = (width + 3) / 4, blocks = (width + PANEL - 1) / PANEL;
    int64_t shares = (rows + SHARE - 1) / SHARE, tasks = blocks * shares;
    if (values != NULL) round_apart(values, bytes, row_steps, threads, rows, inputs, values_stride, fours * 4, INT8_MAX);
    round_apart(hidden, hidden_bytes, hidden_steps, threads, rows, width, hidden_stride, hidden_fours * 4, INT8_MAX);
    PARALLEL(threads)
    for (int64_t task = 0; task < tasks; task++) { /* some rows and some of the numbers of each gate, which never leave the cache */
        float read[GATES + 1][SHARE][PANEL]; /* by r and z, W x of n, and U s of n */
        int64_t block = task / shares, first = block * PANEL, count = width - first < PANEL ? width - first : PANEL;
        int64_t start = task % shares * SHARE, of_share = rows - start < SHARE ? rows - start : SHARE;
        for (int64_t gate = 0; gate <= GATES; gate++) memset(read[gate], 0, (size_t)of_share * sizeof read[gate][0]);
        for (int64_t r = 0; r < of_share && (projected != NULL || table != NULL); r++) {
            const float *word = projected != NULL ? projected + (start + r) * projected_stride : table + ids[start + r] * GATES * width;
            for (int64_t gate = 0; gate < GATES; gate++)
                memcpy(read[gate][r], word + gate * width + first, (size_t)count * sizeof(float));
        }
        for (int64_t gate = 0; gate < GATES; gate++) {
            int64_t of = (gate * blocks + block) * PANEL;
            if (values != NULL)
                add_products(bytes + start * fours * 4, row_steps + start, panels + of * fours * 4, shifts + of, steps + of, bias + of,
                             fours, of_share, read[gate]);
            add_products(hidden_bytes + start * hidden_fours * 4, hidden_steps + start, recurrent_panels + of * hidden_fours * 4,
                         recurrent_shifts + of, recurrent_steps + of, recurrent_bias + of, hidden_fours, of_share,
                         read[gate < 2 ? gate : GATES]);
        }
        for (int64_t r = 0; r < of_share; r++) {
            const float *before = hidden + (start + r) * hidden_stride + first;
            float *after = next + (start + r) * width + first;
            for (int64_t d = 0; d < count; d++)
                after[d] = gru_state(read[0][r][d], read[1][r][d], read[2][r][d], read[3][r][d], before[d]);
        }
    }
}
#endif

double multiplies_bytes(void) {
#ifdef __AVX512VNNI__
    return 1.0;
#else
    return 0.0;
#endif
}
