// Many attack factors at once: how far a trimmed mean or median of C B lies from the centre, for
// every C of a set, over the columns of a basis B (m rows of length d, row r at basis + r * stride).
//
// What a server would receive under two factors is alike, and so are the rows of one C: attackers
// send the same vector f times, and after mixing most rows leave out a few of the same vectors. So
// a row is what all have in common and a few differences, equal rows are formed once, the most
// frequent of them is put among the others without sorting it, and sorting happens in registers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "lanes.h"
#include "parallel.h"

namespace {

constexpr int64_t BLOCK = 128; // columns that are looked at together
constexpr int MOST = 40;       // rows that are sorted
// What all rows have in common may hold vectors that one of them leaves out: not any that are so
// many times longer than most, or its rounding would be theirs.
constexpr float LONGER = 8.0f;

typedef Lanes<float>::type Vector;
typedef uint32_t Words __attribute__((vector_size(BYTES)));
constexpr int64_t LANES = Lanes<float>::count;
// So many vectors of sums stay in registers.
constexpr int64_t WIDE = BYTES == 64 ? 8 : 4;

template <typename V> inline V least(V a, V b) { return a < b ? a : b; }
template <typename V> inline V greatest(V a, V b) { return a < b ? b : a; }

// One C: unique rows as differences from what they have in common. Row r's differences are
// places[k], values[k] with starts[r] <= k < starts[r + 1]. `order` (n - copies) are the rows to be
// sorted, by number; row `most` comes `copies` times and is not among them.
struct Plan {
    std::vector<std::pair<int32_t, float>> common, differences;
    std::vector<int32_t> starts, order;
    int32_t most = 0;
    int64_t copies = 0;
};

// The value that most of `count` unique rows have at place k, if its vector may be shared.
float shared(const float *rows, const std::vector<int32_t> &unique, int64_t p, int64_t k) {
    float candidate = 0;
    int64_t votes = 0;
    for (int32_t r : unique) {
        float value = rows[r * p + k];
        if (votes == 0) candidate = value;
        votes += value == candidate ? 1 : -1;
    }
    int64_t count = 0;
    for (int32_t r : unique) count += rows[r * p + k] == candidate;
    return 2 * count > static_cast<int64_t>(unique.size()) ? candidate : 0;
}

Plan plan_for(const float *rows, int64_t n, int64_t p, const float *lengths) {
    Plan plan;
    std::vector<int32_t> unique, which(n), times;
    for (int64_t r = 0; r < n; ++r) {
        const float *row = rows + r * p;
        size_t u = 0;
        while (u < unique.size() && !std::equal(row, row + p, rows + unique[u] * p)) ++u;
        if (u == unique.size()) {
            unique.push_back(static_cast<int32_t>(r));
            times.push_back(0);
        }
        which[r] = static_cast<int32_t>(u);
        ++times[u];
    }
    plan.most = static_cast<int32_t>(std::max_element(times.begin(), times.end()) - times.begin());
    plan.copies = times[plan.most];
    for (int64_t r = 0; r < n; ++r)
        if (which[r] != plan.most) plan.order.push_back(which[r]);

    std::vector<float> common(p), weights;
    for (int64_t k = 0; k < p; ++k) {
        common[k] = shared(rows, unique, p, k);
        if (common[k] != 0) weights.push_back(std::abs(common[k]) * lengths[k]);
    }
    if (!weights.empty()) {
        auto middle = weights.begin() + weights.size() / 2;
        std::nth_element(weights.begin(), middle, weights.end());
        for (int64_t k = 0; k < p; ++k)
            if (std::abs(common[k]) * lengths[k] > LONGER * *middle) common[k] = 0;
    }
    for (int64_t k = 0; k < p; ++k)
        if (common[k] != 0) plan.common.emplace_back(static_cast<int32_t>(k), common[k]);
    plan.starts.push_back(0);
    for (int32_t r : unique) {
        for (int64_t k = 0; k < p; ++k)
            if (rows[r * p + k] != common[k])
                plan.differences.emplace_back(static_cast<int32_t>(k), rows[r * p + k] - common[k]);
        plan.starts.push_back(static_cast<int32_t>(plan.differences.size()));
    }
    return plan;
}

// Batcher's odd-even merge sort of N, as robust/_network.py has it, known to the compiler.
template <int N> struct Network {
    int16_t low[512] = {}, high[512] = {};
    int count = 0;
    constexpr Network() {
        int size = 1;
        while (size < N) size *= 2;
        for (int span = 1; span < size; span *= 2)
            for (int step = span; step >= 1; step /= 2)
                for (int start = step % span; start < size - step; start += 2 * step)
                    for (int i = start; i < start + step && i < size - step; ++i)
                        if (i / (2 * span) == (i + step) / (2 * span) && i + step < N) {
                            low[count] = static_cast<int16_t>(i);
                            high[count++] = static_cast<int16_t>(i + step);
                        }
    }
};

template <int N, size_t... K>
inline __attribute__((always_inline)) void sort(Vector *values, std::index_sequence<K...>) {
    constexpr Network<N> network;
    auto exchange = [values](int low, int high) {
        Vector a = values[low], b = values[high];
        values[low] = least(a, b);
        values[high] = greatest(a, b);
    };
    (exchange(network.low[K], network.high[K]), ...);
}

// The sum of the places [begin, end) among N rows in order and `copies` times `most`: at place p
// there is `most`, or what is nearest to it of the rows p - copies and p.
template <int N>
void window(const float *const *rows, const float *most, int64_t copies, int64_t begin,
            int64_t end, float *out) {
    constexpr int size = N > 0 ? N : 1;
    constexpr Network<N> network;
    for (int64_t column = 0; column < BLOCK; column += LANES) {
        Vector values[size];
        for (int i = 0; i < N; ++i)
            values[i] = *reinterpret_cast<const Vector *>(rows[i] + column);
        sort<N>(values, std::make_index_sequence<network.count>());
        Vector middle = *reinterpret_cast<const Vector *>(most + column), sum = {};
        for (int64_t p = begin; p < end; ++p) {
            Vector value = middle;
            if (p < N) value = least(value, values[p]);
            if (p >= copies) value = greatest(value, values[p - copies]);
            sum += value;
        }
        *reinterpret_cast<Vector *>(out + column) = sum / static_cast<float>(end - begin);
    }
}

typedef void (*Window)(const float *const *, const float *, int64_t, int64_t, int64_t, float *);
template <size_t... N> Window window_for(int64_t n, std::index_sequence<N...>) {
    static constexpr Window all[] = {window<static_cast<int>(N)>...};
    return all[n];
}

// Copies one block of the basis to `base`, has centre B in `target`, and returns the exponents' bits
// where they are most. The next block is asked for if there is one.
Words read_block(const float *source, int64_t stride, int64_t m, const float *centre, float *base,
                 float *target, bool more) {
    Words worst = {};
    for (int64_t column = 0; column < BLOCK; column += WIDE * LANES) {
        Vector sums[WIDE] = {};
        for (int64_t j = 0; j < m; ++j) {
            const float *row = source + j * stride + column;
            if (more) ask_for(row + BLOCK, WIDE * LANES);
            for (int v = 0; v < WIDE; ++v) {
                Vector value = *reinterpret_cast<const Lanes<float>::loose *>(row + v * LANES);
                *reinterpret_cast<Vector *>(base + j * BLOCK + column + v * LANES) = value;
                sums[v] += centre[j] * value;
                worst = greatest(worst, reinterpret_cast<Words>(value) & Bits<float>::exponent);
            }
        }
        for (int v = 0; v < WIDE; ++v)
            *reinterpret_cast<Vector *>(target + column + v * LANES) = sums[v];
    }
    return worst;
}

// The rows of a plan over one block, each BLOCK long.
void form_rows(const Plan &plan, const float *base, float *common, float *rows) {
    auto add = [&](const std::pair<int32_t, float> *from, const std::pair<int32_t, float> *to,
                   const float *start, float *out) {
        for (int64_t column = 0; column < BLOCK; column += WIDE * LANES) {
            Vector sums[WIDE] = {};
            if (start)
                for (int v = 0; v < WIDE; ++v)
                    sums[v] = *reinterpret_cast<const Vector *>(start + column + v * LANES);
            for (auto item = from; item != to; ++item) {
                const float *source = base + item->first * BLOCK + column;
                for (int v = 0; v < WIDE; ++v)
                    sums[v] +=
                        item->second * *reinterpret_cast<const Vector *>(source + v * LANES);
            }
            for (int v = 0; v < WIDE; ++v)
                *reinterpret_cast<Vector *>(out + column + v * LANES) = sums[v];
        }
    };
    const auto *all = plan.common.data();
    add(all, all + plan.common.size(), nullptr, common);
    for (size_t r = 0; r + 1 < plan.starts.size(); ++r) {
        const auto *own = plan.differences.data();
        add(own + plan.starts[r], own + plan.starts[r + 1], common, rows + r * BLOCK);
    }
}

// ‖a − b‖² over one block, accumulated in double in a fixed order.
double squared_gap(const float *a, const float *b) {
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

} // namespace

// The distances (probes) from centre B of the means of the places [begin, end) of the columns of
// each C B, in order. `coefficients` (probes x n x (m + 1)) has a last column for centre B itself;
// `lengths` (m + 1) are the vectors'. The means themselves go to `out` (probes x d), if given.
// Returns whether a number of B is not finite, or −1 where there are more rows to sort than this is
// made for.
extern "C" int probes_f32(const float *basis, int64_t stride, int64_t m, int64_t d,
                          const float *coefficients, int64_t probes, int64_t n, int64_t begin,
                          int64_t end, const float *centre, const float *lengths, float *out,
                          double *damages, int threads) {
    const int64_t p = m + 1;
    std::vector<Plan> plans(probes);
    in_parallel(probes, threads, [&](int64_t, int64_t from, int64_t to) {
        for (int64_t k = from; k < to; ++k)
            plans[k] = plan_for(coefficients + k * n * p, n, p, lengths);
    });
    for (const Plan &plan : plans)
        if (plan.order.size() > MOST) return -1;
    const int64_t blocks = (d + BLOCK - 1) / BLOCK;
    threads = std::max(threads, 1);
    std::vector<double> partial(static_cast<size_t>(threads) * probes, 0.0);
    std::vector<int> broken(threads, 0);
    in_parallel(blocks, threads, [&](int64_t thread, int64_t from, int64_t to) {
        Buffer<float> memory((p + n + 2) * BLOCK);
        float *base = memory.get(), *target = base + m * BLOCK, *rows = target + BLOCK;
        float *common = rows + n * BLOCK, *mean = common + BLOCK;
        std::vector<const float *> ordered(n);
        Words worst = {};
        for (int64_t block = from; block < to; ++block) {
            const int64_t column = block * BLOCK, width = std::min(BLOCK, d - column);
            if (width < BLOCK) {
                std::fill(base, target, 0.0f);
                for (int64_t j = 0; j < m; ++j)
                    std::memcpy(base + j * BLOCK, basis + j * stride + column, width * 4);
                worst = greatest(worst, read_block(base, BLOCK, m, centre, base, target, false));
            } else {
                bool more = block + 1 < to;
                worst = greatest(worst, read_block(basis + column, stride, m, centre, base, target,
                                                   more));
            }
            for (int64_t k = 0; k < probes; ++k) {
                const Plan &plan = plans[k];
                form_rows(plan, base, common, rows);
                const int64_t sorted = static_cast<int64_t>(plan.order.size());
                for (int64_t i = 0; i < sorted; ++i) ordered[i] = rows + plan.order[i] * BLOCK;
                window_for(sorted, std::make_index_sequence<MOST + 1>())(
                    ordered.data(), rows + plan.most * BLOCK, plan.copies, begin, end, mean);
                partial[thread * probes + k] += squared_gap(mean, target);
                if (out) std::memcpy(out + k * d + column, mean, width * sizeof(float));
            }
        }
        for (int64_t w = 0; w < LANES; ++w)
            broken[thread] |= worst[w] == Bits<float>::exponent;
    });
    for (int64_t k = 0; k < probes; ++k) {
        double sum = 0.0;
        for (int t = 0; t < threads; ++t) sum += partial[t * probes + k];
        damages[k] = std::sqrt(sum);
    }
    return *std::max_element(broken.begin(), broken.end());
}
