// Columns that speak for all: what they are chosen by, and the choice.

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "lanes.h"
#include "parallel.h"

namespace {

constexpr int64_t CHUNK = 4096; // columns whose chances are summed up in one piece

// Adds to `into` what `of` makes of R rows, number by number, one row after the other.
template <typename T, int R, typename Of>
void add_rows(const T *rows, int64_t stride, int64_t width, T *__restrict__ into, Of of) {
    for (int64_t k = 0; k < width; ++k) {
        T sum = into[k];
        for (int r = 0; r < R; ++r) sum += of(rows[r * stride + k], k);
        into[k] = sum;
    }
}

template <typename T, typename Of>
void add_all(const T *rows, int64_t stride, int64_t m, int64_t width, T *into, Of of) {
    std::fill(into, into + width, T(0));
    for (; m >= 5; m -= 5, rows += 5 * stride) add_rows<T, 5>(rows, stride, width, into, of);
    for (; m >= 1; m -= 1, rows += stride) add_rows<T, 1>(rows, stride, width, into, of);
}

// Coordinate-wise mean and standard deviation (ddof 1) of the rows. These are read in long runs,
// which the processor follows by itself, and a second time from its caches.
template <typename T>
void spread(const T *basis, int64_t stride, int64_t m, int64_t d, T *mean, T *deviation,
            int threads) {
    constexpr int64_t piece = 2048 / sizeof(T);
    const T count = static_cast<T>(m), freedom = static_cast<T>(std::max<int64_t>(1, m - 1));
    in_parallel((d + piece - 1) / piece, threads, [&](int64_t, int64_t from, int64_t to) {
        T sums[piece], squares[piece];
        for (int64_t column = from * piece; column < std::min(to * piece, d); column += piece) {
            const int64_t width = std::min(piece, d - column);
            const T *rows = basis + column;
            add_all(rows, stride, m, width, sums, [](T value, int64_t) { return value; });
            for (int64_t k = 0; k < width; ++k) sums[k] /= count;
            add_all(rows, stride, m, width, squares, [&sums](T value, int64_t k) {
                return (value - sums[k]) * (value - sums[k]);
            });
            std::copy(sums, sums + width, mean + column);
            for (int64_t k = 0; k < width; ++k)
                deviation[column + k] = std::sqrt(squares[k] / freedom);
        }
    });
}

// `count` columns, out (m x count), each drawn with a chance that follows mean² + deviation², but
// for the share `even` that all have alike, and divided by the root of count times its chance. The
// draw is equally spaced in the cumulated chances. Whether these are finite is returned as 0.
template <typename T>
int sample(const T *basis, int64_t stride, int64_t m, int64_t d, const T *mean,
           const T *deviation, double even, int64_t count, T *out, int threads) {
    const int64_t chunks = (d + CHUNK - 1) / CHUNK;
    auto square = [&](int64_t j) {
        const double a = mean[j], b = deviation[j];
        return a * a + b * b;
    };
    // Sums do not depend on the number of threads: neither does what is drawn.
    std::vector<double> sums(chunks);
    in_parallel(chunks, threads, [&](int64_t, int64_t from, int64_t to) {
        for (int64_t chunk = from; chunk < to; ++chunk) {
            double some[8] = {};
            const int64_t end = std::min((chunk + 1) * CHUNK, d);
            int64_t j = chunk * CHUNK;
            for (; j + 8 <= end; j += 8)
                for (int64_t v = 0; v < 8; ++v) some[v] += square(j + v);
            for (; j < end; ++j) some[0] += square(j);
            for (double part : some) sums[chunk] += part;
        }
    });
    double total = 0.0;
    for (double sum : sums) total += sum;
    uint64_t bits;
    std::memcpy(&bits, &total, sizeof(bits));
    if ((bits & Bits<double>::exponent) == Bits<double>::exponent) return 1;
    const double slope = (1 - even) / std::max(total, DBL_MIN);
    const double flat = even / static_cast<double>(d);
    std::vector<double> begins(chunks + 1, 0.0);
    for (int64_t k = 0; k < chunks; ++k) {
        const int64_t columns = std::min(CHUNK, d - k * CHUNK);
        begins[k + 1] = begins[k] + sums[k] * slope + flat * static_cast<double>(columns);
    }
    const double apart = begins[chunks] / static_cast<double>(count);
    // How many rungs of the ladder are no higher than this.
    auto passed = [&](double height) {
        int64_t rung = static_cast<int64_t>(height / apart + 0.5);
        rung = std::min(std::max<int64_t>(rung, 0), count);
        while (rung > 0 && (static_cast<double>(rung) - 0.5) * apart > height) --rung;
        while (rung < count && (static_cast<double>(rung) + 0.5) * apart <= height) ++rung;
        return rung;
    };
    std::vector<int64_t> drawn(count);
    std::vector<T> scale(count);
    in_parallel(chunks, threads, [&](int64_t, int64_t from, int64_t to) {
        for (int64_t chunk = from; chunk < to; ++chunk) {
            int64_t rung = passed(begins[chunk]);
            const int64_t last = chunk + 1 == chunks ? count : passed(begins[chunk + 1]);
            const int64_t end = std::min((chunk + 1) * CHUNK, d);
            double height = begins[chunk];
            for (int64_t j = chunk * CHUNK; j < end && rung < last; ++j) {
                const double chance = square(j) * slope + flat;
                height += chance;
                // What rounding has left over belongs to the last column.
                for (; rung < last && ((static_cast<double>(rung) + 0.5) * apart <= height ||
                                       j + 1 == end);
                     ++rung) {
                    drawn[rung] = j;
                    scale[rung] =
                        static_cast<T>(1 / std::sqrt(static_cast<double>(count) * chance));
                }
            }
        }
    });
    in_parallel(m, threads, [&](int64_t, int64_t from, int64_t to) {
        constexpr int64_t ahead = 24;
        for (int64_t row = from; row < to; ++row) {
            const T *source = basis + row * stride;
            T *target = out + row * count;
            for (int64_t i = 0; i < count; ++i) {
                if (i + ahead < count) __builtin_prefetch(source + drawn[i + ahead]);
                target[i] = source[drawn[i]] * scale[i];
            }
        }
    });
    return 0;
}

} // namespace

#define EXPORT(T, NAME)                                                                           \
    extern "C" void spread_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d, T *mean,  \
                                  T *deviation, int threads) {                                    \
        spread<T>(basis, stride, m, d, mean, deviation, threads);                                 \
    }                                                                                             \
    extern "C" int sample_##NAME(const T *basis, int64_t stride, int64_t m, int64_t d,            \
                                 const T *mean, const T *deviation, double even, int64_t count,   \
                                 T *out, int threads) {                                           \
        return sample<T>(basis, stride, m, d, mean, deviation, even, count, out, threads);        \
    }

EXPORT(float, f32)
EXPORT(double, f64)
