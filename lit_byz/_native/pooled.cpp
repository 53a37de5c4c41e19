// Convolution, ReLU and max pooling as one.
//
// Of each window of pixels only the largest one counts, and that only if it is above zero: the rest
// of the convolution's output need not be kept, and its gradient is zero. What is kept is the output
// of the pooling and, for each of its numbers, which pixel of the window it came from. Backward, the
// few gradients that are not zero are gathered in lists; sums stay in registers until a list ends.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "images.h"
#include "parallel.h"

namespace {

constexpr int PIXELS = 6;                // of so many the sums stay in registers, VECTORS for each
constexpr int GROUP = 8;                 // vectors of sums over one list
constexpr int64_t FIRST_CACHE = 1 << 14; // bytes that stay there, beside others
constexpr int8_t DEAD = -1;              // no pixel of the window is above zero

// An integer as wide as a number, and the bits that are all set where the number is not finite.
template <typename T> struct Bits;
template <> struct Bits<float> {
    typedef int32_t type;
    static constexpr type exponent = 0x7f800000;
};
template <> struct Bits<double> {
    typedef int64_t type;
    static constexpr type exponent = 0x7ff0000000000000;
};

// By its bits: the compiler may take a comparison with what is not finite for anything.
template <typename T> bool is_zero(T value) {
    typename Bits<T>::type bits;
    std::memcpy(&bits, &value, sizeof bits);
    return (bits << 1) == 0;
}

template <typename T> using Vector = typename Lanes<T>::type;

template <typename T> Vector<T> load(const T *from) {
    return *reinterpret_cast<const Vector<T> *>(from);
}

template <typename T> void store(T *to, Vector<T> value) {
    *reinterpret_cast<Vector<T> *>(to) = value;
}

// Windows of the convolution's output, side by side; what does not fill one is left out.
struct Pool {
    const Shape &s;
    int64_t height, width; // of a window

    int64_t down() const { return s.out_height / height; }
    int64_t across() const { return s.out_width / width; }
    int64_t windows() const { return down() * across(); }
    int64_t places() const { return height * width; }
    // Where in an image, with its border, a window or a pixel of the first window begins to look.
    int64_t window(int64_t w) const {
        return at(w / across() * height, w % across() * width);
    }
    int64_t place(int64_t p) const { return at(p / width, p % width); }
    int64_t at(int64_t y, int64_t x) const {
        return (y * s.stride_y * s.across() + x * s.stride_x) * s.inputs;
    }
};

// What an output pixel sees is a number of runs of neighbouring numbers.
struct Runs {
    std::vector<int64_t> offsets; // of each run
    int64_t length;

    explicit Runs(const Shape &s) : length(s.columns_in_a_run() * s.inputs) {
        for (int64_t ky = 0; ky < s.kernel_height; ++ky)
            for (int64_t kx = 0; kx < s.kernel_width; kx += s.columns_in_a_run())
                offsets.push_back((ky * s.dilation_y * s.across() + kx * s.dilation_x) * s.inputs);
    }
    int64_t count() const { return static_cast<int64_t>(offsets.size()); }
    // The run's number i, as a place among weights or their gradients.
    static int64_t weight(const Shape &s, const Places &at, int64_t run, int64_t i) {
        int64_t columns = s.columns_in_a_run(), per_row = s.kernel_width / columns;
        int64_t x = run % per_row * columns + i / s.inputs;
        return run / per_row * at.kernel_y + x * at.kernel_x + i % s.inputs * at.input;
    }
};

// sums[p][o] += the sum over some runs' numbers i of pixels[p][i] * weights[i][o], for P pixels and
// V vectors of outputs.
template <typename T, int P, int V>
void convolve_tile(const T *image, const int64_t *pixels, const int64_t *runs, int64_t count,
                   int64_t length, const T *weights, T *sums) {
    constexpr int64_t lanes = Lanes<T>::count;
    Vector<T> held[P][V];
    for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v) held[p][v] = load(sums + (p * V + v) * lanes);
    for (int64_t run = 0; run < count; ++run) {
        const T *seen[P];
        for (int p = 0; p < P; ++p) seen[p] = image + pixels[p] + runs[run];
        for (int64_t i = 0; i < length; ++i, weights += V * lanes)
            for (int p = 0; p < P; ++p)
                for (int v = 0; v < V; ++v) held[p][v] += seen[p][i] * load(weights + v * lanes);
    }
    for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v) store(sums + (p * V + v) * lanes, held[p][v]);
}

template <typename T, int V>
void convolve(const T *image, const int64_t *pixels, int64_t count, const int64_t *runs,
              int64_t run_count, int64_t length, const T *weights, T *sums) {
    constexpr int64_t width = V * Lanes<T>::count;
    int64_t p = 0;
    for (; p + PIXELS <= count; p += PIXELS)
        convolve_tile<T, PIXELS, V>(image, pixels + p, runs, run_count, length, weights,
                                    sums + p * width);
    for (; p + 2 <= count; p += 2)
        convolve_tile<T, 2, V>(image, pixels + p, runs, run_count, length, weights,
                               sums + p * width);
    if (p < count)
        convolve_tile<T, 1, V>(image, pixels + p, runs, run_count, length, weights,
                               sums + p * width);
}

// The largest of a window's sums and its place, for V vectors of outputs; whether all are finite.
template <typename T, int V>
bool largest(const T *sums, int64_t places, T *values, int8_t *chosen) {
    constexpr int64_t lanes = Lanes<T>::count;
    typedef typename Bits<T>::type Integer;
    typedef Integer Integers __attribute__((vector_size(BYTES), aligned(sizeof(T))));
    Integers strange = {};
    for (int v = 0; v < V; ++v) {
        Vector<T> best = {};
        Integers place = {};
        place += DEAD;
        for (int64_t p = 0; p < places; ++p) {
            Vector<T> value = load(sums + (p * V + v) * lanes);
            Integers bits = reinterpret_cast<Integers>(value) & Bits<T>::exponent;
            strange |= bits == Bits<T>::exponent;
            Integers more = value > best, here = {};
            here += static_cast<Integer>(p);
            best = more ? value : best;
            place = (more & here) | (~more & place);
        }
        store(values + v * lanes, best);
        for (int64_t i = 0; i < lanes; ++i) chosen[v * lanes + i] = static_cast<int8_t>(place[i]);
    }
    Integer any = 0;
    for (int64_t i = 0; i < lanes; ++i) any |= strange[i];
    return any == 0;
}

// The weights of V vectors of outputs from output `first` on, as one run after the other sees them,
// and their biases.
template <typename T> struct Filters {
    int64_t first, outputs, vectors;
    std::vector<T> weights, biases;
};

template <typename T>
std::vector<Filters<T>> filters_of(const T *weights, const Places &at, const T *biases,
                                   const Shape &s, const Runs &runs) {
    constexpr int64_t lanes = Lanes<T>::count;
    int64_t vectors = (s.outputs + lanes - 1) / lanes, parts = (vectors + VECTORS - 1) / VECTORS;
    std::vector<Filters<T>> found;
    for (int64_t part = 0; part < parts; ++part) {
        int64_t from = vectors * part / parts, until = vectors * (part + 1) / parts;
        int64_t width = (until - from) * lanes, first = from * lanes;
        Filters<T> own{first, std::min(width, s.outputs - first), until - from, {}, {}};
        own.weights.assign(runs.count() * runs.length * width, 0);
        own.biases.assign(width, 0);
        for (int64_t o = 0; o < own.outputs; ++o) {
            const T *output = weights + (first + o) * at.output;
            for (int64_t run = 0; run < runs.count(); ++run)
                for (int64_t i = 0; i < runs.length; ++i)
                    own.weights[(run * runs.length + i) * width + o] =
                        output[Runs::weight(s, at, run, i)];
            if (biases) own.biases[o] = biases[first + o];
        }
        found.push_back(std::move(own));
    }
    return found;
}

template <typename T, int V>
bool pooled_outputs(const T *image, const Filters<T> &own, const Runs &runs, const Pool &pool,
                    const std::vector<int64_t> &pixels, std::vector<T> &sums, T *out,
                    int8_t *chosen) {
    constexpr int64_t width = V * Lanes<T>::count;
    constexpr int64_t bytes = width * static_cast<int64_t>(sizeof(T));
    int64_t places = pool.places(), outputs = pool.s.outputs;
    int64_t at_once = std::max<int64_t>(1, FIRST_CACHE / (bytes * places));
    int64_t together = std::max<int64_t>(1, FIRST_CACHE / (bytes * runs.length));
    sums.resize(at_once * places * width);
    T values[width];
    int8_t from[width];
    bool finite = true;
    for (int64_t w = 0; w < pool.windows(); w += at_once) {
        int64_t windows = std::min(at_once, pool.windows() - w), count = windows * places;
        for (int64_t p = 0; p < count; ++p)
            std::copy_n(own.biases.data(), width, sums.data() + p * width);
        for (int64_t run = 0; run < runs.count(); run += together)
            convolve<T, V>(image, pixels.data() + w * places, count, runs.offsets.data() + run,
                           std::min(together, runs.count() - run), runs.length,
                           own.weights.data() + run * runs.length * width, sums.data());
        for (int64_t i = 0; i < windows; ++i) {
            finite &= largest<T, V>(sums.data() + i * places * width, places, values, from);
            int64_t to = (w + i) * outputs + own.first;
            std::copy_n(values, own.outputs, out + to);
            std::copy_n(from, own.outputs, chosen + to);
        }
    }
    return finite;
}

// Whether every number before the pooling was finite; if not, `out` is not to be used.
template <typename T>
bool forward(const T *images, const T *weights, const Places &at, const T *biases, const Pool &pool,
             T *out, int8_t *chosen, int threads) {
    const Shape &s = pool.s;
    const Runs runs(s);
    const std::vector<Filters<T>> filters = filters_of(weights, at, biases, s, runs);
    std::vector<int64_t> pixels(pool.windows() * pool.places());
    for (size_t p = 0; p < pixels.size(); ++p)
        pixels[p] = pool.window(p / pool.places()) + pool.place(p % pool.places());
    std::vector<char> finite(std::max(threads, 1), 1);
    in_parallel(s.examples, threads, [&](int64_t thread, int64_t begin, int64_t end) {
        std::vector<T> bordered(s.down() * s.across() * s.inputs), sums;
        for (int64_t e = begin; e < end; ++e) {
            const T *image =
                with_border(images + e * s.height * s.width * s.inputs, s, bordered);
            for (const Filters<T> &own : filters) {
                auto work = own.vectors == 1   ? pooled_outputs<T, 1>
                            : own.vectors == 2 ? pooled_outputs<T, 2>
                            : own.vectors == 3 ? pooled_outputs<T, 3>
                                               : pooled_outputs<T, VECTORS>;
                int64_t to = e * pool.windows() * s.outputs;
                if (!work(image, own, runs, pool, pixels, sums, out + to, chosen + to))
                    finite[thread] = 0;
            }
        }
    });
    return std::all_of(finite.begin(), finite.end(), [](char own) { return own != 0; });
}

// One gradient that is not zero, and where it belongs.
template <typename T> struct Entry {
    typename Bits<T>::type place;
    T value;
};

// All runs in whole vectors, in groups of which the sums fit into registers.
template <typename T> struct Groups {
    std::vector<int64_t> offsets; // of each vector
    std::vector<int64_t> starts;  // of each group, and the end

    explicit Groups(const Runs &runs) {
        constexpr int64_t lanes = Lanes<T>::count;
        for (int64_t run : runs.offsets)
            for (int64_t i = 0; i < runs.length; i += lanes) offsets.push_back(run + i);
        int64_t vectors = static_cast<int64_t>(offsets.size());
        int64_t groups = (vectors + GROUP - 1) / GROUP;
        for (int64_t g = 0; g <= groups; ++g) starts.push_back(vectors * g / groups);
    }
    int64_t vectors() const { return static_cast<int64_t>(offsets.size()); }
    int64_t vectors_in_a_run(const Runs &runs) const { return vectors() / runs.count(); }
};

// sums[g] += the sum over the entries of value * image[place + offsets[g]].
template <typename T, int G>
void gather(const Entry<T> *entries, const Entry<T> *end, const T *image, const int64_t *offsets,
            T *sums) {
    constexpr int64_t lanes = Lanes<T>::count;
    Vector<T> held[G];
    const T *seen[G];
    for (int g = 0; g < G; ++g) {
        held[g] = load(sums + g * lanes);
        seen[g] = image + offsets[g];
    }
    for (; entries != end; ++entries)
        for (int g = 0; g < G; ++g) held[g] += entries->value * load(seen[g] + entries->place);
    for (int g = 0; g < G; ++g) store(sums + g * lanes, held[g]);
}

// image[offsets[g]] += the sum over the entries of value * weights[place][g].
template <typename T, int G>
void scatter(const Entry<T> *entries, const Entry<T> *end, T *image, const int64_t *offsets,
             const T *weights) {
    constexpr int64_t lanes = Lanes<T>::count;
    Vector<T> held[G] = {};
    for (; entries != end; ++entries) {
        const T *own = weights + entries->place * G * lanes;
        for (int g = 0; g < G; ++g) held[g] += entries->value * load(own + g * lanes);
    }
    for (int g = 0; g < G; ++g) {
        T *to = image + offsets[g];
        store(to, load(to) + held[g]);
    }
}

template <typename T>
using Gather = void (*)(const Entry<T> *, const Entry<T> *, const T *, const int64_t *, T *);
template <typename T>
using Scatter = void (*)(const Entry<T> *, const Entry<T> *, T *, const int64_t *, const T *);

template <typename T> Gather<T> gather_for(int64_t group) {
    static constexpr Gather<T> all[GROUP] = {gather<T, 1>, gather<T, 2>, gather<T, 3>,
                                             gather<T, 4>, gather<T, 5>, gather<T, 6>,
                                             gather<T, 7>, gather<T, 8>};
    return all[group - 1];
}

template <typename T> Scatter<T> scatter_for(int64_t group) {
    static constexpr Scatter<T> all[GROUP] = {scatter<T, 1>, scatter<T, 2>, scatter<T, 3>,
                                              scatter<T, 4>, scatter<T, 5>, scatter<T, 6>,
                                              scatter<T, 7>, scatter<T, 8>};
    return all[group - 1];
}

// `weights` and `biases` (which may be null) += share times the gradients. Threads share the work
// by outputs, so their number does not change any sum.
template <typename T>
void add_weight_gradients(const T *delta, const int8_t *chosen, const T *images, const Pool &pool,
                          int64_t workers, T *weights, const Places &to, T *biases,
                          int64_t bias_step, T share, int threads) {
    typedef typename Bits<T>::type Place;
    constexpr int64_t lanes = Lanes<T>::count;
    const Shape &s = pool.s;
    const Runs runs(s);
    const Groups<T> groups(runs);
    int64_t size = s.height * s.width * s.inputs, bordered = s.down() * s.across() * s.inputs;
    int64_t cells = pool.windows(), width = groups.vectors() * lanes;
    int64_t in_a_run = groups.vectors_in_a_run(runs) * lanes;
    std::vector<int64_t> places(pool.places());
    for (size_t p = 0; p < places.size(); ++p) places[p] = pool.place(p);
    in_parallel(workers * s.outputs, threads, [&](int64_t, int64_t begin, int64_t end) {
        // Whole vectors are read, past the end of what a pixel sees.
        std::vector<T> room(bordered + lanes), sums, totals;
        std::vector<Entry<T>> entries(s.outputs * cells);
        std::vector<int64_t> counts(s.outputs);
        for (int64_t worker = begin / s.outputs; worker * s.outputs < end; ++worker) {
            int64_t from = std::max<int64_t>(begin - worker * s.outputs, 0);
            int64_t until = std::min(end - worker * s.outputs, s.outputs);
            sums.assign((until - from) * width, 0);
            totals.assign(until - from, 0);
            for (int64_t e = worker * s.examples; e < (worker + 1) * s.examples; ++e) {
                const T *image = images + e * size;
                if (bordered == size) std::copy_n(image, size, room.data());
                image = bordered == size ? room.data() : with_border(image, s, room);
                std::fill(counts.begin(), counts.end(), 0);
                for (int64_t w = 0; w < cells; ++w) {
                    int64_t cell = (e * cells + w) * s.outputs, window = pool.window(w);
                    for (int64_t o = from; o < until; ++o) {
                        int8_t p = chosen[cell + o];
                        T value = delta[cell + o];
                        // Written in any case, and kept if it counts: a branch would be a gamble.
                        int64_t place = window + places[p == DEAD ? 0 : p];
                        entries[o * cells + counts[o]] = {static_cast<Place>(place), value};
                        counts[o] += (p != DEAD) & !is_zero(value);
                    }
                }
                for (int64_t o = from; o < until; ++o) {
                    const Entry<T> *first = entries.data() + o * cells, *last = first + counts[o];
                    for (const Entry<T> *entry = first; entry != last; ++entry)
                        totals[o - from] += entry->value;
                    T *own = sums.data() + (o - from) * width;
                    for (size_t g = 0; g + 1 < groups.starts.size(); ++g) {
                        int64_t start = groups.starts[g];
                        gather_for<T>(groups.starts[g + 1] - start)(
                            first, last, image, groups.offsets.data() + start, own + start * lanes);
                    }
                }
            }
            for (int64_t o = from; o < until; ++o) {
                T *target = weights + worker * to.worker + o * to.output;
                const T *own = sums.data() + (o - from) * width;
                for (int64_t run = 0; run < runs.count(); ++run, own += in_a_run)
                    for (int64_t i = 0; i < runs.length; ++i)
                        target[Runs::weight(s, to, run, i)] += share * own[i];
                if (biases) biases[worker * bias_step + o] += share * totals[o - from];
            }
        }
    });
}

// The weights, as each group's vectors see them: group, output, vector.
template <typename T>
std::vector<T> in_groups(const T *weights, const Places &at, const Shape &s, const Runs &runs,
                         const Groups<T> &groups) {
    constexpr int64_t lanes = Lanes<T>::count;
    int64_t in_a_run = groups.vectors_in_a_run(runs);
    std::vector<T> found(groups.vectors() * lanes * s.outputs, 0);
    for (size_t g = 0; g + 1 < groups.starts.size(); ++g) {
        int64_t start = groups.starts[g], count = groups.starts[g + 1] - start;
        T *own = found.data() + start * lanes * s.outputs;
        for (int64_t o = 0; o < s.outputs; ++o)
            for (int64_t v = 0; v < count; ++v) {
                int64_t run = (start + v) / in_a_run, first = (start + v) % in_a_run * lanes;
                for (int64_t i = first; i < std::min(first + lanes, runs.length); ++i)
                    own[(o * count + v) * lanes + i - first] =
                        weights[o * at.output + Runs::weight(s, at, run, i)];
            }
    }
    return found;
}

// The gradients of the images, written to `images`.
template <typename T>
void find_image_gradients(const T *delta, const int8_t *chosen, const T *weights, const Places &at,
                          const Pool &pool, T *images, int threads) {
    typedef typename Bits<T>::type Place;
    constexpr int64_t lanes = Lanes<T>::count;
    const Shape &s = pool.s;
    const Runs runs(s);
    const Groups<T> groups(runs);
    const std::vector<T> packed = in_groups(weights, at, s, runs, groups);
    int64_t cells = pool.windows(), pixels = cells * pool.places(), across = s.across();
    // Windows of one column after the other: neighbours in a row share numbers of the image, which
    // would have to wait until they are written.
    std::vector<int64_t> order(cells), seen(pixels);
    for (int64_t w = 0; w < cells; ++w)
        order[w] = w % pool.down() * pool.across() + w / pool.down();
    for (int64_t p = 0; p < pixels; ++p)
        seen[p] = pool.window(order[p % cells]) + pool.place(p / cells);
    in_parallel(s.examples, threads, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> image(s.down() * across * s.inputs + lanes);
        std::vector<Entry<T>> entries(pixels * s.outputs);
        std::vector<int64_t> counts(pixels);
        for (int64_t e = begin; e < end; ++e) {
            std::fill(image.begin(), image.end(), 0);
            std::fill(counts.begin(), counts.end(), 0);
            for (int64_t w = 0; w < cells; ++w) {
                int64_t cell = (e * cells + order[w]) * s.outputs;
                for (int64_t o = 0; o < s.outputs; ++o) {
                    int8_t p = chosen[cell + o];
                    T value = delta[cell + o];
                    int64_t pixel = (p == DEAD ? 0 : p) * cells + w;
                    entries[pixel * s.outputs + counts[pixel]] = {static_cast<Place>(o), value};
                    counts[pixel] += (p != DEAD) & !is_zero(value);
                }
            }
            for (size_t g = 0; g + 1 < groups.starts.size(); ++g) {
                int64_t start = groups.starts[g];
                Scatter<T> add = scatter_for<T>(groups.starts[g + 1] - start);
                const T *own = packed.data() + start * lanes * s.outputs;
                for (int64_t p = 0; p < pixels; ++p) {
                    const Entry<T> *first = entries.data() + p * s.outputs;
                    if (counts[p])
                        add(first, first + counts[p], image.data() + seen[p],
                            groups.offsets.data() + start, own);
                }
            }
            for (int64_t y = 0; y < s.height; ++y)
                std::copy_n(image.data() + ((y + s.padding_y) * across + s.padding_x) * s.inputs,
                            s.width * s.inputs, images + (e * s.height + y) * s.width * s.inputs);
        }
    });
}

} // namespace

#define EXPORT(T, NAME)                                                                           \
    extern "C" int pooled_forward_##NAME(                                                         \
        const T *images, const T *weights, const Places *at, const T *biases, const Shape *shape, \
        int64_t height, int64_t width, T *out, int8_t *chosen, int threads) {                    \
        return forward<T>(images, weights, *at, biases, Pool{*shape, height, width}, out, chosen, \
                          threads);                                                               \
    }                                                                                             \
    extern "C" void pooled_weight_gradients_##NAME(                                               \
        const T *delta, const int8_t *chosen, const T *images, const Shape *shape,               \
        int64_t height, int64_t width, int64_t workers, T *weights, const Places *to, T *biases,  \
        int64_t bias_step, double share, int threads) {                                           \
        add_weight_gradients<T>(delta, chosen, images, Pool{*shape, height, width}, workers,      \
                                weights, *to, biases, bias_step, static_cast<T>(share), threads); \
    }                                                                                             \
    extern "C" void pooled_image_gradients_##NAME(                                                \
        const T *delta, const int8_t *chosen, const T *weights, const Places *at,                \
        const Shape *shape, int64_t height, int64_t width, T *images, int threads) {              \
        find_image_gradients<T>(delta, chosen, weights, *at, Pool{*shape, height, width}, images, \
                                threads);                                                         \
    }

EXPORT(float, f32)
EXPORT(double, f64)
