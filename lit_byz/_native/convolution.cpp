// Gradients of convolutions: those of the weights, for each worker from its own part of the
// examples, and those of the images.
//
// Images and output gradients have their channels last, so what an output pixel sees of one row of
// the image is one run of numbers: no matrix of patches is formed. The sums that belong to a few
// positions of the kernel and many output channels, or to a few pixels and a run of the image, stay
// in registers until they are complete.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "images.h"
#include "parallel.h"

namespace {

constexpr int TILE = 6;            // positions of the kernel, or pixels
constexpr int64_t BLOCK = 1 << 12; // output gradients that stay in the first cache

// A block of output gradients and the part of the image that its first pixel sees.
template <typename T> struct Patch {
    const T *delta, *image;
    int64_t rows, columns;
    int64_t outputs;        // from one pixel's gradients to the next one's
    int64_t row_step, step; // in the image, from one output row or pixel to the next
};

// sums[p][o] += image[pixel + p] * delta[pixel][o] for P positions p and V vectors of outputs o.
template <typename T, int P, int V>
void add_tile(const Patch<T> &patch, const T *image, T *sums) {
    typedef typename Lanes<T>::type Vector;
    constexpr int64_t lanes = Lanes<T>::count;
    Vector held[P][V];
    for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v)
            held[p][v] = *reinterpret_cast<const Vector *>(sums + (p * V + v) * lanes);
    const T *delta = patch.delta;
    for (int64_t y = 0; y < patch.rows; ++y) {
        const T *seen = image + y * patch.row_step;
        for (int64_t x = 0; x < patch.columns; ++x) {
            for (int v = 0; v < V; ++v) {
                Vector d = *reinterpret_cast<const Vector *>(delta + v * lanes);
                for (int p = 0; p < P; ++p) held[p][v] += seen[p] * d;
            }
            seen += patch.step;
            delta += patch.outputs;
        }
    }
    for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v)
            *reinterpret_cast<Vector *>(sums + (p * V + v) * lanes) = held[p][v];
}

template <typename T, int V>
void add_run(const Patch<T> &patch, const T *image, int64_t positions, T *sums) {
    constexpr int64_t width = V * Lanes<T>::count;
    for (; positions >= TILE; positions -= TILE) {
        add_tile<T, TILE, V>(patch, image, sums);
        image += TILE;
        sums += TILE * width;
    }
    switch (positions) {
    case 1: return add_tile<T, 1, V>(patch, image, sums);
    case 2: return add_tile<T, 2, V>(patch, image, sums);
    case 3: return add_tile<T, 3, V>(patch, image, sums);
    case 4: return add_tile<T, 4, V>(patch, image, sums);
    case 5: return add_tile<T, 5, V>(patch, image, sums);
    }
}

template <typename T> using Run = void (*)(const Patch<T> &, const T *, int64_t, T *);

template <typename T> Run<T> run_for(int64_t vectors) {
    if (vectors == 1) return add_run<T, 1>;
    if (vectors == 2) return add_run<T, 2>;
    return vectors == 3 ? add_run<T, 3> : add_run<T, VECTORS>;
}

// Add `share` times the sums for the kernel's places [from, until) to a worker's weights.
template <typename T>
void add_sums(const T *sums, int64_t width, int64_t outputs, int64_t from, int64_t until,
              const Shape &s, T share, T *weights, const Places &to) {
    for (int64_t place = from; place < until; ++place) {
        T *target = weights + place / s.kernel_width * to.kernel_y +
                    place % s.kernel_width * to.kernel_x;
        for (int64_t c = 0; c < s.inputs; ++c, sums += width)
            for (int64_t o = 0; o < outputs; ++o)
                target[o * to.output + c * to.input] += share * sums[o];
    }
}

// `weights` and `biases` (which may be null) += share times the gradients. Threads share the work
// by rows of the kernel, so the number of threads does not change any sum.
template <typename T>
void add_weight_gradients(const T *delta, const T *input, const Shape &s, int64_t workers,
                          T *weights, const Places &to, T *biases, int64_t bias_step, T share,
                          int threads) {
    constexpr int64_t lanes = Lanes<T>::count, widest = VECTORS * lanes;
    int64_t across = s.across(), columns = s.columns_in_a_run();
    int64_t runs_per_row = s.kernel_width / columns;
    int64_t runs = s.kernel_height * runs_per_row, positions = columns * s.inputs;
    int64_t all = workers * s.examples, size = s.out_height * s.out_width * s.outputs;
    int64_t rows = std::clamp<int64_t>(BLOCK / (s.out_width * s.outputs), 1, s.out_height);
    int64_t step = s.stride_x * s.inputs, row_step = s.stride_y * across * s.inputs;
    // Whole vectors are read, past the end of a pixel's gradients. Those of the last examples are
    // copied to where memory goes on.
    int64_t apart = std::max<int64_t>(all - 1 - widest / size, 0);
    std::vector<T> last((all - apart) * size + widest);
    std::copy(delta + apart * size, delta + all * size, last.data());

    in_parallel(workers * runs, threads, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<T> bordered(s.down() * across * s.inputs), sums;
        const T one = 1;
        for (int64_t worker = begin / runs; worker * runs < end; ++worker) {
            int64_t from = std::max<int64_t>(begin - worker * runs, 0);
            int64_t until = std::min(end - worker * runs, runs);
            bool with_bias = biases && from == 0;
            for (int64_t o = 0; o < s.outputs; o += widest) {
                int64_t outputs = std::min(s.outputs - o, widest);
                int64_t vectors = (outputs + lanes - 1) / lanes, width = vectors * lanes;
                Run<T> add = run_for<T>(vectors);
                int64_t count = (until - from) * positions * width;
                sums.assign(count + width, 0);
                for (int64_t e = worker * s.examples; e < (worker + 1) * s.examples; ++e) {
                    const T *plain = input + e * s.height * s.width * s.inputs;
                    const T *image = with_border(plain, s, bordered);
                    const T *own = e < apart ? delta + e * size : last.data() + (e - apart) * size;
                    for (int64_t y = 0; y < s.out_height; y += rows) {
                        Patch<T> patch{own + y * s.out_width * s.outputs + o,
                                       image + y * row_step,
                                       std::min(rows, s.out_height - y),
                                       s.out_width,
                                       s.outputs,
                                       row_step,
                                       step};
                        for (int64_t run = from; run < until; ++run) {
                            int64_t ky = run / runs_per_row, kx = run % runs_per_row;
                            int64_t seen = ky * s.dilation_y * across + kx * s.dilation_x;
                            add(patch, patch.image + seen * s.inputs, positions,
                                sums.data() + (run - from) * positions * width);
                        }
                        if (with_bias) { // as for a weight that sees a one everywhere
                            patch.row_step = patch.step = 0;
                            add(patch, &one, 1, sums.data() + count);
                        }
                    }
                }
                T *target = weights + worker * to.worker + o * to.output;
                add_sums(sums.data(), width, outputs, from * columns, until * columns, s, share,
                         target, to);
                if (with_bias)
                    for (int64_t i = 0; i < outputs; ++i)
                        biases[worker * bias_step + o + i] += share * sums[count + i];
            }
        }
    });
}

// sums[p][i] = the sum over the outputs o of delta[p][o] * weights[o][i], for P pixels p and V
// vectors of places i in the run that they see; added to each pixel's part of the image.
template <typename T, int P, int V>
void spread_tile(const T *delta, int64_t outputs, const T *weights, T *const *seen) {
    typedef typename Lanes<T>::type Vector;
    constexpr int64_t lanes = Lanes<T>::count;
    Vector held[P][V] = {};
    for (int64_t o = 0; o < outputs; ++o)
        for (int v = 0; v < V; ++v) {
            Vector w = *reinterpret_cast<const Vector *>(weights + (o * V + v) * lanes);
            for (int p = 0; p < P; ++p) held[p][v] += delta[p * outputs + o] * w;
        }
    for (int p = 0; p < P; ++p)
        for (int v = 0; v < V; ++v)
            *reinterpret_cast<Vector *>(seen[p] + v * lanes) += held[p][v];
}

template <typename T, int V>
void spread_run(const T *delta, int64_t outputs, const T *weights, T *const *seen, int64_t pixels) {
    for (; pixels >= TILE; pixels -= TILE) {
        spread_tile<T, TILE, V>(delta, outputs, weights, seen);
        delta += TILE * outputs;
        seen += TILE;
    }
    switch (pixels) {
    case 1: return spread_tile<T, 1, V>(delta, outputs, weights, seen);
    case 2: return spread_tile<T, 2, V>(delta, outputs, weights, seen);
    case 3: return spread_tile<T, 3, V>(delta, outputs, weights, seen);
    case 4: return spread_tile<T, 4, V>(delta, outputs, weights, seen);
    case 5: return spread_tile<T, 5, V>(delta, outputs, weights, seen);
    }
}

template <typename T> using Spread = void (*)(const T *, int64_t, const T *, T *const *, int64_t);

template <typename T> Spread<T> spread_for(int64_t vectors) {
    if (vectors == 1) return spread_run<T, 1>;
    if (vectors == 2) return spread_run<T, 2>;
    return vectors == 3 ? spread_run<T, 3> : spread_run<T, VECTORS>;
}

// Weights that are read together: those of all outputs for a piece of a run, in whole vectors.
template <typename T> struct Piece {
    int64_t offset; // in the image, from what a pixel sees first
    int64_t vectors;
    std::vector<T> weights; // (outputs, vectors), zero where the run has ended
};

template <typename T>
std::vector<Piece<T>> pieces_of(const T *weights, const Places &at, const Shape &s) {
    constexpr int64_t lanes = Lanes<T>::count, widest = VECTORS * lanes;
    int64_t across = s.across(), columns = s.columns_in_a_run(), positions = columns * s.inputs;
    std::vector<Piece<T>> pieces;
    for (int64_t ky = 0; ky < s.kernel_height; ++ky)
        for (int64_t kx = 0; kx < s.kernel_width; kx += columns)
            for (int64_t start = 0; start < positions; start += widest) {
                int64_t length = std::min(positions - start, widest);
                int64_t vectors = (length + lanes - 1) / lanes;
                int64_t seen = ky * s.dilation_y * across + kx * s.dilation_x;
                Piece<T> piece{seen * s.inputs + start, vectors, {}};
                piece.weights.assign(s.outputs * vectors * lanes, 0);
                for (int64_t i = 0; i < length; ++i) {
                    int64_t x = kx + (start + i) / s.inputs, c = (start + i) % s.inputs;
                    const T *own = weights + c * at.input + ky * at.kernel_y + x * at.kernel_x;
                    for (int64_t o = 0; o < s.outputs; ++o)
                        piece.weights[o * vectors * lanes + i] = own[o * at.output];
                }
                pieces.push_back(std::move(piece));
            }
    return pieces;
}

// The gradients of the images, written to `images`.
template <typename T>
void find_image_gradients(const T *delta, const T *weights, const Places &at, const Shape &s,
                          T *images, int threads) {
    int64_t across = s.across();
    int64_t pixels = s.out_height * s.out_width;
    const std::vector<Piece<T>> pieces = pieces_of(weights, at, s);
    in_parallel(s.examples, threads, [&](int64_t, int64_t begin, int64_t end) {
        // One image with its border; the last piece may end past it.
        std::vector<T> image(s.down() * across * s.inputs + VECTORS * Lanes<T>::count);
        std::vector<T *> seen(pixels);
        for (int64_t e = begin; e < end; ++e) {
            std::fill(image.begin(), image.end(), 0);
            for (const Piece<T> &piece : pieces) {
                T *first = image.data() + piece.offset;
                for (int64_t y = 0, pixel = 0; y < s.out_height; ++y)
                    for (int64_t x = 0; x < s.out_width; ++x, ++pixel)
                        seen[pixel] = first + (y * s.stride_y * across + x * s.stride_x) * s.inputs;
                spread_for<T>(piece.vectors)(delta + e * pixels * s.outputs, s.outputs,
                                             piece.weights.data(), seen.data(), pixels);
            }
            for (int64_t y = 0; y < s.height; ++y)
                std::copy_n(image.data() + ((y + s.padding_y) * across + s.padding_x) * s.inputs,
                            s.width * s.inputs,
                            images + (e * s.height + y) * s.width * s.inputs);
        }
    });
}

} // namespace

#define EXPORT(T, NAME)                                                                           \
    extern "C" void weight_gradients_##NAME(const T *delta, const T *input, const Shape *shape,   \
                                            int64_t workers, T *weights, const Places *to,        \
                                            T *biases, int64_t bias_step, double share,           \
                                            int threads) {                                        \
        add_weight_gradients<T>(delta, input, *shape, workers, weights, *to, biases, bias_step,   \
                                static_cast<T>(share), threads);                                  \
    }                                                                                             \
    extern "C" void image_gradients_##NAME(const T *delta, const T *weights, const Places *at,    \
                                           const Shape *shape, T *images, int threads) {          \
        find_image_gradients<T>(delta, weights, *at, *shape, images, threads);                    \
    }

EXPORT(float, f32)
EXPORT(double, f64)
