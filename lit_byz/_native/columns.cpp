// Passes over the columns of a basis: m rows of length d, row r starting at basis + r * stride.
//
// Work is cut into blocks of columns small enough for the first caches; threads take contiguous
// ranges of blocks. Nothing here allocates per column, and no n x d matrix is ever formed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.h"
#include "parallel.h"

namespace {

constexpr int64_t BLOCK = 128;      // columns per block of a coordinate-wise pass
constexpr int TILE = BYTES == 64 ? 5 : 3; // rows of the Gram matrix that are summed up together
constexpr int64_t GRAM_BLOCK = 128; // columns per block of a Gram pass
// Rows [0, rows) of `out` (rows x BLOCK) become coefficients (rows x m) times base (m x BLOCK).
template <typename T, int ROWS>
void multiply_rows(const T *coefficients, const T *base, int64_t m, T *out) {
    typedef typename Lanes<T>::type Vector;
    constexpr int64_t lanes = Lanes<T>::count;
    for (int64_t column = 0; column < BLOCK; column += 2 * lanes) {
        Vector sums[ROWS][2] = {};
        for (int64_t j = 0; j < m; ++j) {
            const Vector *source = reinterpret_cast<const Vector *>(base + j * BLOCK + column);
            Vector first = source[0], second = source[1];
            for (int r = 0; r < ROWS; ++r) {
                T c = coefficients[r * m + j];
                sums[r][0] += c * first;
                sums[r][1] += c * second;
            }
        }
        for (int r = 0; r < ROWS; ++r) {
            Vector *target = reinterpret_cast<Vector *>(out + r * BLOCK + column);
            target[0] = sums[r][0];
            target[1] = sums[r][1];
        }
    }
}

template <typename T>
void multiply(const T *coefficients, const T *base, int64_t n, int64_t m, T *out) {
    // Six rows of two vectors fill the registers; what is left over goes in one piece too.
    int64_t row = 0;
    for (; row + 6 <= n; row += 6)
        multiply_rows<T, 6>(coefficients + row * m, base, m, out + row * BLOCK);
    const T *c = coefficients + row * m;
    T *rest = out + row * BLOCK;
    switch (n - row) {
    case 1: return multiply_rows<T, 1>(c, base, m, rest);
    case 2: return multiply_rows<T, 2>(c, base, m, rest);
    case 3: return multiply_rows<T, 3>(c, base, m, rest);
    case 4: return multiply_rows<T, 4>(c, base, m, rest);
    case 5: return multiply_rows<T, 5>(c, base, m, rest);
    }
}

template <typename T> void apply_network(const int32_t *pairs, int64_t count, T *rows) {
    for (int64_t p = 0; p < count; ++p) {
        T *__restrict__ low = rows + pairs[2 * p] * BLOCK;
        T *__restrict__ high = rows + pairs[2 * p + 1] * BLOCK;
        for (int64_t w = 0; w < BLOCK; ++w) {
            T a = low[w], b = high[w];
            low[w] = a < b ? a : b;
            high[w] = a < b ? b : a;
        }
    }
}

// Mean of the sorted rows [begin, end).
template <typename T> void window_mean(const T *rows, int64_t begin, int64_t end, T *out) {
    typedef typename Lanes<T>::type Vector;
    constexpr int64_t lanes = Lanes<T>::count;
    T count = static_cast<T>(end - begin);
    for (int64_t column = 0; column < BLOCK; column += 4 * lanes) {
        Vector sums[4] = {};
        for (int64_t r = begin; r < end; ++r) {
            const Vector *source = reinterpret_cast<const Vector *>(rows + r * BLOCK + column);
            for (int v = 0; v < 4; ++v) sums[v] += source[v];
        }
        Vector *target = reinterpret_cast<Vector *>(out + column);
        for (int v = 0; v < 4; ++v) target[v] = sums[v] / count;
    }
}

// ‖a − b‖² over one block, accumulated in double in a fixed order.
template <typename T> double squared_gap(const T *a, const T *b) {
    double sums[16] = {};
    for (int64_t w = 0; w < BLOCK; w += 16)
        for (int64_t v = 0; v < 16; ++v) {
            double gap = static_cast<double>(a[w + v]) - static_cast<double>(b[w + v]);
            sums[v] += gap * gap;
        }
    double total = 0.0;
    for (double sum : sums) total += sum;
    return total;
}

// Mean of the `keep` sorted values nearest to the median: the window moves up while what it would
// gain is nearer than what it would lose.
template <typename T>
void nearest_mean(const T *rows, int64_t n, int64_t keep, T *out, T *median, T *mean) {
    window_mean(rows, (n - 1) / 2, n / 2 + 1, median);
    window_mean(rows, 0, keep, out);
    for (int64_t start = 0; start + keep < n; ++start) {
        window_mean(rows, start + 1, start + 1 + keep, mean);
        const T *first = rows + start * BLOCK, *next = rows + (start + keep) * BLOCK;
        for (int64_t w = 0; w < BLOCK; ++w)
            out[w] = next[w] - median[w] < median[w] - first[w] ? mean[w] : out[w];
    }
}

template <typename T>
int columns(const T *basis, int64_t stride, int64_t m, int64_t d, const T *coefficients,
            int64_t probes, int64_t n, const int32_t *pairs, int64_t pair_count, int64_t begin,
            int64_t end, int64_t nearest, const T *centre, T *out, double *damages, int threads) {
    int64_t blocks = (d + BLOCK - 1) / BLOCK;
    std::vector<double> partial(static_cast<size_t>(threads) * probes, 0.0);
    std::vector<int> broken(threads, 0);
    in_parallel(blocks, threads, [&](int64_t thread, int64_t from, int64_t to) {
        Buffer<T> base_memory(m * BLOCK), row_memory(n * BLOCK), spare_memory(4 * BLOCK);
        T *base = base_memory.get(), *rows = row_memory.get();
        T *mean = spare_memory.get(), *target = mean + BLOCK;
        typedef typename Bits<T>::type Word;
        Word worst = 0;
        for (int64_t block = from; block < to; ++block) {
            int64_t column = block * BLOCK, width = std::min(BLOCK, d - column);
            if (width < BLOCK) std::fill(base, base + m * BLOCK, T(0));
            for (int64_t j = 0; j < m; ++j) {
                const T *source = basis + j * stride;
                T *target_row = base + j * BLOCK;
                std::memcpy(target_row, source + column, width * sizeof(T));
                ask_for(source + column + BLOCK, BLOCK);
                const Word *words = reinterpret_cast<const Word *>(target_row);
                for (int64_t w = 0; w < BLOCK; ++w)
                    worst = std::max(worst, words[w] & Bits<T>::exponent);
            }
            if (damages) multiply_rows<T, 1>(centre, base, m, target);
            for (int64_t k = 0; k < probes; ++k) {
                if (coefficients) multiply(coefficients + k * n * m, base, n, m, rows);
                else std::memcpy(rows, base, n * BLOCK * sizeof(T));
                apply_network(pairs, pair_count, rows);
                if (nearest)
                    nearest_mean(rows, n, nearest, mean, mean + 2 * BLOCK, mean + 3 * BLOCK);
                else window_mean(rows, begin, end, mean);
                if (damages) partial[thread * probes + k] += squared_gap(mean, target);
                if (out) std::memcpy(out + k * d + column, mean, width * sizeof(T));
            }
        }
        broken[thread] = worst == Bits<T>::exponent;
    });
    if (damages)
        for (int64_t k = 0; k < probes; ++k) {
            double sum = 0.0;
            for (int t = 0; t < threads; ++t) sum += partial[t * probes + k];
            damages[k] = std::sqrt(sum);
        }
    return *std::max_element(broken.begin(), broken.end());
}

// Inner products of rows [i, i + R) with rows [j, j + S) over one block. U independent sums each
// keep the multipliers busy where the tile alone is too small to.
template <int R, int S, int U>
void gram_tile(const double *block, int64_t m, int64_t i, int64_t j, Lanes<double>::type *out) {
    typedef Lanes<double>::type Vector;
    constexpr int64_t lanes = Lanes<double>::count;
    Vector sums[R][S][U] = {};
    for (int64_t w = 0; w < GRAM_BLOCK; w += U * lanes)
        for (int u = 0; u < U; ++u) {
            const double *from = block + w + u * lanes;
            Vector left[R];
            for (int r = 0; r < R; ++r)
                left[r] = *reinterpret_cast<const Vector *>(from + (i + r) * GRAM_BLOCK);
            for (int s = 0; s < S; ++s) {
                Vector right = *reinterpret_cast<const Vector *>(from + (j + s) * GRAM_BLOCK);
                for (int r = 0; r < R; ++r) sums[r][s][u] += left[r] * right;
            }
        }
    for (int r = 0; r < R; ++r)
        for (int s = 0; s < S; ++s) {
            Vector sum = sums[r][s][0];
            for (int u = 1; u < U; ++u) sum += sums[r][s][u];
            out[(i + r) * m + j + s] += sum;
        }
}

template <typename T>
void gram(const T *basis, int64_t stride, int64_t m, int64_t d, double *out, int threads) {
    int64_t blocks = (d + GRAM_BLOCK - 1) / GRAM_BLOCK;
    std::vector<double> partial(static_cast<size_t>(threads) * m * m, 0.0);
    in_parallel(blocks, threads, [&](int64_t thread, int64_t from, int64_t to) {
        constexpr int64_t lanes = Lanes<double>::count;
        Buffer<double> memory(m * GRAM_BLOCK + m * m * lanes);
        double *block = memory.get(), *wide = block + m * GRAM_BLOCK;
        auto *sums = reinterpret_cast<Lanes<double>::type *>(wide);
        for (int64_t b = from; b < to; ++b) {
            int64_t column = b * GRAM_BLOCK, width = std::min(GRAM_BLOCK, d - column);
            for (int64_t j = 0; j < m; ++j) {
                const T *source = basis + j * stride + column;
                double *target = block + j * GRAM_BLOCK;
                ask_for(source + GRAM_BLOCK, GRAM_BLOCK);
                if (width == GRAM_BLOCK) {
                    for (int64_t w = 0; w < GRAM_BLOCK; ++w) target[w] = source[w];
                } else {
                    std::fill(target, target + GRAM_BLOCK, 0.0);
                    std::copy(source, source + width, target);
                }
            }
            int64_t i = 0;
            for (; i + TILE <= m; i += TILE) {
                int64_t j = i;
                for (; j + 4 <= m; j += 4) gram_tile<TILE, 4, 1>(block, m, i, j, sums);
                for (; j < m; ++j) gram_tile<TILE, 1, 4>(block, m, i, j, sums);
            }
            for (; i < m; ++i)
                for (int64_t j = i; j < m; ++j) gram_tile<1, 1, 8>(block, m, i, j, sums);
        }
        for (int64_t k = 0; k < m * m; ++k)
            for (int64_t v = 0; v < lanes; ++v)
                partial[thread * m * m + k] += wide[k * lanes + v];
    });
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = i; j < m; ++j) {
            double sum = 0.0;
            for (int t = 0; t < threads; ++t) sum += partial[(t * m + i) * m + j];
            out[i * m + j] = out[j * m + i] = sum;
        }
}

// Squared lengths of the rows. Each row is read in long runs, straight into four sums of four.
template <typename T>
void squares(const T *basis, int64_t stride, int64_t m, int64_t d, double *out, int threads) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T))));
    typedef double Wide __attribute__((vector_size(32)));
    constexpr int64_t width = 4096, together = 4;
    std::vector<double> partial(static_cast<size_t>(std::max(threads, 1)) * m, 0.0);
    in_parallel((d + width - 1) / width, threads, [&](int64_t thread, int64_t from, int64_t to) {
        const int64_t begin = from * width, end = std::min(to * width, d);
        for (int64_t j = 0; j < m; ++j) {
            const T *row = basis + j * stride;
            Wide sums[together] = {};
            int64_t w = begin;
            for (; w + 4 * together <= end; w += 4 * together)
                for (int64_t k = 0; k < together; ++k) {
                    Four value = *reinterpret_cast<const Four *>(row + w + 4 * k);
                    Wide wide = __builtin_convertvector(value, Wide);
                    sums[k] += wide * wide;
                }
            Wide all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            double sum = (all[0] + all[1]) + (all[2] + all[3]);
            for (; w < end; ++w) sum += static_cast<double>(row[w]) * row[w];
            partial[thread * m + j] = sum;
        }
    });
    for (int64_t j = 0; j < m; ++j) {
        out[j] = 0.0;
        for (int t = 0; t < threads; ++t) out[j] += partial[t * m + j];
    }
}

// Adds R rows, each times its weight, to `into`.
template <typename T, int R>
void add_rows(const T *rows, int64_t stride, const T *weights, int64_t width, T *__restrict__ into) {
    for (int64_t k = 0; k < width; ++k) {
        T sum = into[k];
        for (int r = 0; r < R; ++r) sum += weights[r] * rows[r * stride + k];
        into[k] = sum;
    }
}

// out = weights @ basis for one row of weights. A few rows at a time are read in long runs, which
// the processor follows by itself, and added to a piece of the output that stays in the first cache.
template <typename T>
int combine(const T *basis, int64_t stride, int64_t m, int64_t d, const T *weights, T *out,
            int threads) {
    typedef typename Bits<T>::type Word;
    constexpr int64_t piece = 4096 / sizeof(T);
    std::vector<int> broken(std::max(threads, 1), 0);
    in_parallel((d + piece - 1) / piece, threads, [&](int64_t thread, int64_t from, int64_t to) {
        Word worst = 0;
        for (int64_t column = from * piece; column < std::min(to * piece, d); column += piece) {
            const int64_t width = std::min(piece, d - column);
            T *into = out + column;
            std::fill(into, into + width, T(0));
            const T *rows = basis + column;
            int64_t j = 0;
            for (; j + 5 <= m; j += 5)
                add_rows<T, 5>(rows + j * stride, stride, weights + j, width, into);
            rows += j * stride;
            switch (m - j) {
            case 1: add_rows<T, 1>(rows, stride, weights + j, width, into); break;
            case 2: add_rows<T, 2>(rows, stride, weights + j, width, into); break;
            case 3: add_rows<T, 3>(rows, stride, weights + j, width, into); break;
            case 4: add_rows<T, 4>(rows, stride, weights + j, width, into); break;
            }
            for (int64_t k = 0; k < width; ++k) {
                Word bits;
                std::memcpy(&bits, into + k, sizeof(T));
                worst = std::max(worst, bits & Bits<T>::exponent);
            }
        }
        broken[thread] = worst == Bits<T>::exponent;
    });
    return *std::max_element(broken.begin(), broken.end());
}

} // namespace

#define EXPORT(T, NAME)                                                                           \
    extern "C" int columns_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d,           \
                                  const T *coefficients, int64_t probes, int64_t n,               \
                                  const int32_t *pairs, int64_t pair_count, int64_t begin,        \
                                  int64_t end, int64_t nearest, const T *centre, T *out,          \
                                  double *damages, int threads) {                                 \
        return columns<T>(basis, stride, m, d, coefficients, probes, n, pairs, pair_count, begin, \
                          end, nearest, centre, out, damages, threads);                           \
    }                                                                                             \
    extern "C" void gram_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d,             \
                                double *out, int threads) {                                       \
        gram<T>(basis, stride, m, d, out, threads);                                               \
    }                                                                                             \
    extern "C" void squares_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d,          \
                                   double *out, int threads) {                                    \
        squares<T>(basis, stride, m, d, out, threads);                                            \
    }                                                                                             \
    extern "C" int combine_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d,           \
                                  const T *weights, T *out, int threads) {                        \
        return combine<T>(basis, stride, m, d, weights, out, threads);                            \
    }

EXPORT(float, f32)
EXPORT(double, f64)
