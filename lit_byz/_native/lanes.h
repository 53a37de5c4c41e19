// Vector registers, as wide as the instructions that this is compiled for have them.

#pragma once

#include <cstdint>
#include <vector>

#if defined(__AVX512F__)
constexpr int64_t BYTES = 64;
#elif defined(__AVX__)
constexpr int64_t BYTES = 32;
#else
constexpr int64_t BYTES = 16;
#endif

template <typename T> struct Lanes {
    typedef T type __attribute__((vector_size(BYTES), aligned(BYTES)));
    typedef T loose __attribute__((vector_size(BYTES), aligned(alignof(T)))); // anywhere in memory
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
