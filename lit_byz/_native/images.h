// Images with their channels last, convolutions of them, and vectors of their numbers.

#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace {

// One vector register, and so many vectors in a row of sums that six rows of them leave registers for
// the rest.
#if defined(__AVX512F__)
constexpr int64_t BYTES = 64;
constexpr int VECTORS = 4;
#elif defined(__AVX__)
constexpr int64_t BYTES = 32;
constexpr int VECTORS = 2;
#elif defined(__aarch64__)
constexpr int64_t BYTES = 16;
constexpr int VECTORS = 4;
#else
constexpr int64_t BYTES = 16;
constexpr int VECTORS = 2;
#endif

template <typename T> struct Lanes {
    typedef T type __attribute__((vector_size(BYTES), aligned(sizeof(T))));
    static constexpr int64_t count = BYTES / sizeof(T);
};

// As the caller gives it; outputs and inputs are channels.
struct Shape {
    int64_t examples; // of one worker, or all
    int64_t outputs, out_height, out_width;
    int64_t inputs, height, width;
    int64_t kernel_height, kernel_width;
    int64_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;

    // The image with its border.
    int64_t across() const { return width + 2 * padding_x; }
    int64_t down() const { return height + 2 * padding_y; }
    // Neighbouring columns of the kernel see neighbouring pixels, unless it is dilated.
    int64_t columns_in_a_run() const { return dilation_x == 1 ? kernel_width : 1; }
};

// Weights, or their gradients, in memory: steps between neighbours in each direction.
struct Places {
    int64_t worker, output, input, kernel_y, kernel_x;
};

// With a border of zeros, if the convolution has one. The border of `room` is zero already.
template <typename T> const T *with_border(const T *image, const Shape &s, std::vector<T> &room) {
    if (s.padding_x == 0 && s.padding_y == 0) return image;
    for (int64_t y = 0; y < s.height; ++y)
        std::memcpy(room.data() + ((y + s.padding_y) * s.across() + s.padding_x) * s.inputs,
                    image + y * s.width * s.inputs, s.width * s.inputs * sizeof(T));
    return room.data();
}

} // namespace
