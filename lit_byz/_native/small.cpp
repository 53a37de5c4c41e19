// Many small matrices at once: the vectors that a server would receive, one set per attack factor.
// torch takes some twenty calls for what is done here in one, each of them mostly overhead.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "parallel.h"

// For `items` sets of n vectors, the rows of c (n x m each) over a basis with this Gram matrix:
// inner products and squared distances, (n + 1) x (n + 1) each, the origin last. A distance below
// `cancelled` of the squared reach of its two vectors is zero if the vectors are copies up to
// `identical` of their reach, and else marked as doubtful. Returns whether any is.
extern "C" int distances_f64(const double *c, int64_t, int64_t rows, int64_t m, int64_t n,
                             const double *gram, double cancelled, double identical,
                             double *inner_products, double *squared_distances, uint8_t *doubtful,
                             int threads) {
    const int64_t size = n + 1;
    std::vector<double> lengths(m);
    for (int64_t k = 0; k < m; ++k) lengths[k] = std::sqrt(std::max(0.0, gram[k * m + k]));
    std::vector<int> found(std::max(threads, 1), 0);
    in_parallel(rows / n, threads, [&](int64_t thread, int64_t from, int64_t to) {
        std::vector<double> image(m), columns(m * n), reach(size);
        for (int64_t item = from; item < to; ++item) {
            const double *rows_of = c + item * n * m;
            double *inner = inner_products + item * size * size;
            double *squares = squared_distances + item * size * size;
            uint8_t *doubt = doubtful + item * size * size;
            std::fill(inner, inner + size * size, 0.0);
            for (int64_t i = 0; i < n; ++i) {
                double sum = 0.0;
                for (int64_t k = 0; k < m; ++k) {
                    columns[k * n + i] = rows_of[i * m + k];
                    sum += std::abs(rows_of[i * m + k]) * lengths[k];
                }
                reach[i] = sum;
            }
            reach[n] = 0.0;
            for (int64_t i = 0; i < n; ++i) {
                std::fill(image.begin(), image.end(), 0.0);
                double *__restrict__ into = image.data();
                for (int64_t l = 0; l < m; ++l) {
                    const double weight = rows_of[i * m + l], *row = gram + l * m;
                    if (weight == 0.0) continue;
                    for (int64_t k = 0; k < m; ++k) into[k] += weight * row[k];
                }
                double *__restrict__ line = inner + i * size;
                for (int64_t k = 0; k < m; ++k) {
                    const double weight = into[k], *column = columns.data() + k * n;
                    for (int64_t j = 0; j < n; ++j) line[j] += weight * column[j];
                }
            }
            for (int64_t i = 0; i < size; ++i) {
                squares[i * size + i] = 0.0;
                doubt[i * size + i] = 0;
                for (int64_t j = i + 1; j < size; ++j) {
                    double product = inner[i * size + j], both = reach[i] + reach[j];
                    inner[j * size + i] = product;
                    double square = inner[i * size + i] + inner[j * size + j] - 2 * product;
                    square = std::max(0.0, square);
                    bool doubted = square < cancelled * both * both;
                    if (doubted && j < n) {
                        double gap = 0.0;
                        for (int64_t k = 0; k < m; ++k)
                            gap += std::abs(rows_of[i * m + k] - rows_of[j * m + k]) * lengths[k];
                        if (gap <= identical * reach[i]) {
                            doubted = false;
                            square = 0.0;
                        }
                    }
                    squares[i * size + j] = squares[j * size + i] = square;
                    doubt[i * size + j] = doubted;
                    doubt[j * size + i] = 0;
                    found[thread] |= doubted;
                }
            }
        }
    });
    return *std::max_element(found.begin(), found.end());
}

// For sets of n vectors with squared distances (size x size each): row i of the averaging matrix
// (n x n) weighs the `keep` nearest of vector i, itself first, then by distance, then by number.
extern "C" int nearest_f64(const double *squared_distances, int64_t, int64_t rows, int64_t size,
                           int64_t n, int64_t keep, double *matrix, int threads) {
    in_parallel(rows / size, threads, [&](int64_t, int64_t from, int64_t to) {
        std::vector<int64_t> order(n);
        std::vector<uint64_t> far(n);
        for (int64_t item = from; item < to; ++item)
            for (int64_t i = 0; i < n; ++i) {
                // Numbers without a sign are in the order of their bits, NaNs behind infinity: an
                // order of everything, which the selection relies on.
                std::memcpy(far.data(), squared_distances + (item * size + i) * size, n * 8);
                for (uint64_t &bits : far) bits = (bits & ~(uint64_t(1) << 63)) + 1;
                far[i] = 0;
                auto nearer = [&](int64_t a, int64_t b) {
                    return far[a] != far[b] ? far[a] < far[b] : a < b;
                };
                std::iota(order.begin(), order.end(), 0);
                std::nth_element(order.begin(), order.begin() + keep - 1, order.end(), nearer);
                double *row = matrix + (item * n + i) * n;
                std::fill(row, row + n, 0.0);
                for (int64_t k = 0; k < keep; ++k) row[order[k]] = 1.0 / keep;
            }
    });
    return 0;
}

// For sets of n vectors and the origin, last: the weights (n) of the smoothed geometric median.
// Gaps are taken from distances or from inner products, whichever bound on the error is smaller.
extern "C" int weiszfeld_f64(const double *squared_distances, int64_t, int64_t rows, int64_t size,
                             const double *inner_products, double nu, int64_t iterations,
                             double tolerance, double *weights, int threads) {
    const int64_t n = size - 1;
    in_parallel(rows / size, threads, [&](int64_t, int64_t from, int64_t to) {
        std::vector<double> at(size), next(size), image(size), shadow(size), lengths(size);
        auto times = [size](const double *matrix, const std::vector<double> &x, double *out) {
            std::fill(out, out + size, 0.0);
            for (int64_t i = 0; i < size; ++i) {
                const double weight = x[i], *row = matrix + i * size;
                if (weight == 0.0) continue;
                for (int64_t j = 0; j < size; ++j) out[j] += weight * row[j];
            }
        };
        auto dot = [size](const std::vector<double> &x, const std::vector<double> &y) {
            double sum = 0.0;
            for (int64_t i = 0; i < size; ++i) sum += x[i] * y[i];
            return sum;
        };
        for (int64_t item = from; item < to; ++item) {
            const double *squares = squared_distances + item * size * size;
            const double *inner = inner_products + item * size * size;
            for (int64_t i = 0; i < size; ++i)
                lengths[i] = std::sqrt(std::max(0.0, inner[i * size + i]));
            std::fill(at.begin(), at.end(), 0.0);
            at[n] = 1.0;
            next[n] = 0.0;
            for (int64_t iteration = 0; iteration < iterations; ++iteration) {
                times(squares, at, image.data());
                times(inner, at, shadow.data());
                double spread = dot(at, image) / 2, square = dot(at, shadow);
                double reach = dot(at, lengths), total = 0.0, nearest = INFINITY;
                for (int64_t i = 0; i < n; ++i) {
                    double most = (reach + lengths[i]) * (reach + lengths[i]);
                    double gap = image[i] + spread <= most
                                     ? image[i] - spread
                                     : square - 2 * shadow[i] + lengths[i] * lengths[i];
                    gap = std::max(nu, std::sqrt(std::max(0.0, gap)));
                    nearest = std::min(nearest, gap);
                    total += next[i] = 1 / gap;
                }
                for (int64_t i = 0; i < n; ++i) next[i] /= total;
                at.swap(next);
                if (tolerance <= 0) {
                    next[n] = 0.0;
                    continue;
                }
                for (int64_t i = 0; i < size; ++i) next[i] = at[i] - next[i];
                times(squares, next, image.data());
                double moved = -dot(next, image) / 2, allowed = tolerance * nearest;
                next[n] = 0.0;
                if (moved <= allowed * allowed) break;
            }
            std::copy(at.begin(), at.begin() + n, weights + item * n);
        }
    });
    return 0;
}
