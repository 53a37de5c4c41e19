// Passes over the columns of a basis: m rows of length d, row r starting at basis + r * stride.
//
// Work is cut into blocks of columns small enough for the first caches; threads take contiguous
// ranges of blocks. Nothing here allocates per column, and no n x d matrix is ever formed.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "parallel.h"

namespace {

constexpr int64_t BLOCK = 128;      // columns per block of a coordinate-wise pass
constexpr int64_t GRAM_BLOCK = 256; // columns per block of a Gram pass
constexpr int64_t BYTES = 32;       // one vector register

template <typename T> struct Lanes {
    typedef T type __attribute__((vector_size(BYTES), aligned(BYTES)));
    static constexpr int64_t count = BYTES / sizeof(T);
};

// The exponent's bits are all ones in infinities and NaNs. Integers, because the compiler may
// assume finite numbers elsewhere.
template <typename T> struct Bits;
template <> struct Bits<float> {
    typedef uint32_t type;
    static constexpr uint32_t exponent = 0x7f800000u;
};
template <> struct Bits<double> {
    typedef uint64_t type;
    static constexpr uint64_t exponent = 0x7ff0000000000000ull;
};

// Zeroed memory, aligned for vector registers.
template <typename T> class Buffer {
  public:
    explicit Buffer(int64_t size) : memory_(size + BYTES / sizeof(T)) {
        uintptr_t address = reinterpret_cast<uintptr_t>(memory_.data());
        start_ = reinterpret_cast<T *>((address + BYTES - 1) / BYTES * BYTES);
    }
    T *get() { return start_; }

  private:
    std::vector<T> memory_;
    T *start_;
};

// Have the next `count` values of a row on their way: there may be more rows than the processor
// follows by itself. Past the end of memory this does nothing.
template <typename T> void ask_for(const T *values, int64_t count) {
    constexpr int64_t line = 64 / sizeof(T);
    for (int64_t w = 0; w < count; w += line) __builtin_prefetch(values + w);
}

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
void gram_tile(const double *block, int64_t m, int64_t i, int64_t j, double *out) {
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
            out[(i + r) * m + j + s] += (sum[0] + sum[1]) + (sum[2] + sum[3]);
        }
}

template <typename T>
void gram(const T *basis, int64_t stride, int64_t m, int64_t d, double *out, int threads) {
    int64_t blocks = (d + GRAM_BLOCK - 1) / GRAM_BLOCK;
    std::vector<double> partial(static_cast<size_t>(threads) * m * m, 0.0);
    in_parallel(blocks, threads, [&](int64_t thread, int64_t from, int64_t to) {
        Buffer<double> memory(m * GRAM_BLOCK);
        double *block = memory.get(), *sums = partial.data() + thread * m * m;
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
            for (; i + 3 <= m; i += 3) {
                int64_t j = i;
                for (; j + 4 <= m; j += 4) gram_tile<3, 4, 1>(block, m, i, j, sums);
                for (; j < m; ++j) gram_tile<3, 1, 4>(block, m, i, j, sums);
            }
            for (; i < m; ++i)
                for (int64_t j = i; j < m; ++j) gram_tile<1, 1, 8>(block, m, i, j, sums);
        }
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

// out = weights @ basis for one row of weights: a cache line of every row after the other, asked
// for in advance, as there may be more rows than the processor follows by itself.
template <typename T>
int combine(const T *basis, int64_t stride, int64_t m, int64_t d, const T *weights, T *out,
            int threads) {
    typedef T Vector __attribute__((vector_size(BYTES), aligned(alignof(T))));
    typedef typename Bits<T>::type Word;
    constexpr int64_t lanes = Lanes<T>::count, line = 2 * lanes, ahead = 16 * line;
    std::vector<int> broken(std::max(threads, 1), 0);
    in_parallel((d + line - 1) / line, threads, [&](int64_t thread, int64_t from, int64_t to) {
        Word worst = 0;
        auto look = [&](const T *values, int64_t count) {
            for (int64_t w = 0; w < count; ++w) {
                Word bits;
                std::memcpy(&bits, values + w, sizeof(T));
                worst = std::max(worst, bits & Bits<T>::exponent);
            }
        };
        int64_t column = from * line;
        const int64_t end = std::min(to * line, d);
        for (; column + line <= end; column += line) {
            Vector first = {}, second = {};
            for (int64_t j = 0; j < m; ++j) {
                const T *source = basis + j * stride + column;
                __builtin_prefetch(source + ahead);
                first += weights[j] * *reinterpret_cast<const Vector *>(source);
                second += weights[j] * *reinterpret_cast<const Vector *>(source + lanes);
            }
            *reinterpret_cast<Vector *>(out + column) = first;
            *reinterpret_cast<Vector *>(out + column + lanes) = second;
            look(out + column, line);
        }
        for (int64_t c = column; c < end; ++c) {
            T sum = 0;
            for (int64_t j = 0; j < m; ++j) sum += weights[j] * basis[j * stride + c];
            out[c] = sum;
        }
        look(out + column, end - column);
        broken[thread] = worst == Bits<T>::exponent;
    });
    return *std::max_element(broken.begin(), broken.end());
}

// Coordinate-wise mean and standard deviation (ddof 1) of the rows.
template <typename T>
void spread(const T *basis, int64_t stride, int64_t m, int64_t d, T *mean, T *deviation,
            int threads) {
    int64_t blocks = (d + BLOCK - 1) / BLOCK;
    in_parallel(blocks, threads, [&](int64_t, int64_t from, int64_t to) {
        T sums[BLOCK], squares[BLOCK];
        for (int64_t block = from; block < to; ++block) {
            int64_t column = block * BLOCK, width = std::min(BLOCK, d - column);
            std::fill(sums, sums + BLOCK, T(0));
            std::fill(squares, squares + BLOCK, T(0));
            for (int64_t j = 0; j < m; ++j) {
                const T *row = basis + j * stride + column;
                ask_for(row + BLOCK, BLOCK);
                for (int64_t w = 0; w < width; ++w) sums[w] += row[w];
            }
            for (int64_t w = 0; w < width; ++w) sums[w] /= static_cast<T>(m);
            for (int64_t j = 0; j < m; ++j) {
                const T *row = basis + j * stride + column;
                for (int64_t w = 0; w < width; ++w) {
                    T gap = row[w] - sums[w];
                    squares[w] += gap * gap;
                }
            }
            T freedom = static_cast<T>(std::max<int64_t>(1, m - 1));
            for (int64_t w = 0; w < width; ++w) {
                mean[column + w] = sums[w];
                deviation[column + w] = std::sqrt(squares[w] / freedom);
            }
        }
    });
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
    }                                                                                             \
    extern "C" void spread_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d, T *mean,  \
                                  T *deviation, int threads) {                                    \
        spread<T>(basis, stride, m, d, mean, deviation, threads);                                 \
    }

EXPORT(float, f32)
EXPORT(double, f64)
