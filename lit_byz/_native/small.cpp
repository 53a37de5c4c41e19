// Many small matrices at once: the vectors that a server would receive, one set per attack factor.
// torch takes some twenty calls for what is done here in one, each of them mostly overhead.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "parallel.h"

// Rows of coefficients with no more numbers than this, on average, are worth looking at one by one.
constexpr int64_t FEW = 3;

// A row of coefficients has few numbers that are not zero: an honest vector is one of the basis.
// Row r's are places[k], values[k] with starts[r] <= k < starts[r + 1].
class Sparse {
  public:
    void read(const double *rows, int64_t n, int64_t m) {
        starts_.assign(1, 0);
        places_.clear();
        values_.clear();
        for (int64_t r = 0; r < n; ++r) {
            for (int64_t k = 0; k < m; ++k)
                if (rows[r * m + k] != 0.0) {
                    places_.push_back(k);
                    values_.push_back(rows[r * m + k]);
                }
            starts_.push_back(static_cast<int64_t>(places_.size()));
        }
    }
    // The sum over row r's numbers of work(place, value).
    template <typename Work> double sum(int64_t r, Work work) const {
        double total = 0.0;
        each(r, [&](int64_t place, double value) { total += work(place, value); });
        return total;
    }
    template <typename Work> void each(int64_t r, Work work) const {
        for (int64_t k = starts_[r]; k < starts_[r + 1]; ++k) work(places_[k], values_[k]);
    }
    int64_t count() const { return static_cast<int64_t>(places_.size()); }
    bool same(int64_t r, int64_t s) const {
        const int64_t count = starts_[r + 1] - starts_[r];
        return count == starts_[s + 1] - starts_[s] &&
               std::equal(places_.data() + starts_[r], places_.data() + starts_[r] + count,
                          places_.data() + starts_[s]) &&
               std::equal(values_.data() + starts_[r], values_.data() + starts_[r] + count,
                          values_.data() + starts_[s]);
    }

  private:
    std::vector<int64_t> starts_, places_;
    std::vector<double> values_;
};

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
        Sparse made_of;
        for (int64_t item = from; item < to; ++item) {
            const double *rows_of = c + item * n * m;
            double *inner = inner_products + item * size * size;
            double *squares = squared_distances + item * size * size;
            uint8_t *doubt = doubtful + item * size * size;
            made_of.read(rows_of, n, m);
            const bool few = made_of.count() <= FEW * n;
            for (int64_t i = 0; i < n && !few; ++i)
                for (int64_t k = 0; k < m; ++k) columns[k * n + i] = rows_of[i * m + k];
            reach[n] = 0.0;
            std::fill(inner, inner + size * size, 0.0);
            for (int64_t i = 0; i < n; ++i) {
                double *__restrict__ line = inner + i * size;
                if (i > 0 && made_of.same(i, i - 1)) { // attackers who all send the same
                    std::copy(line - size, line, line);
                    reach[i] = reach[i - 1];
                    continue;
                }
                reach[i] = made_of.sum(
                    i, [&](int64_t k, double value) { return std::abs(value) * lengths[k]; });
                double *__restrict__ into = image.data();
                std::fill(into, into + m, 0.0);
                made_of.each(i, [&](int64_t l, double weight) {
                    const double *row = gram + l * m;
                    for (int64_t k = 0; k < m; ++k) into[k] += weight * row[k];
                });
                if (few) {
                    for (int64_t j = i; j < n; ++j)
                        line[j] = made_of.sum(
                            j, [&](int64_t k, double value) { return into[k] * value; });
                } else {
                    for (int64_t k = 0; k < m; ++k) {
                        const double weight = into[k], *column = columns.data() + k * n;
                        for (int64_t j = 0; j < n; ++j) line[j] += weight * column[j];
                    }
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

// For sets of n vectors, the rows of c (n x m each): the combinations `matrix` (n_out x n each) of
// them, n_out x m.
extern "C" int mixed_f64(const double *c, int64_t, int64_t rows, int64_t m, int64_t n,
                         const double *matrix, int64_t n_out, double *out, int threads) {
    in_parallel(rows / n, threads, [&](int64_t, int64_t from, int64_t to) {
        Sparse made_of;
        for (int64_t item = from; item < to; ++item) {
            made_of.read(c + item * n * m, n, m);
            for (int64_t i = 0; i < n_out; ++i) {
                const double *weights = matrix + (item * n_out + i) * n;
                double *into = out + (item * n_out + i) * m;
                std::fill(into, into + m, 0.0);
                for (int64_t j = 0; j < n; ++j)
                    if (weights[j] != 0.0)
                        made_of.each(j, [&](int64_t k, double value) {
                            into[k] += weights[j] * value;
                        });
            }
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
