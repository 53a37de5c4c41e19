// Work in contiguous ranges of blocks, one range per thread.

#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

// With torch's own OpenMP its threads do the work, which are awake already; threads of our own would
// have to share the cores with them while they spin.
template <typename Work> void in_parallel(int64_t blocks, int threads, Work work) {
    int64_t count = std::max<int64_t>(1, std::min<int64_t>(threads, blocks));
#ifdef _OPENMP
#pragma omp parallel for num_threads(count) schedule(static, 1) if (count > 1)
    for (int64_t t = 0; t < count; ++t) work(t, blocks * t / count, blocks * (t + 1) / count);
#else
    std::vector<std::thread> pool;
    for (int64_t t = 1; t < count; ++t)
        pool.emplace_back(work, t, blocks * t / count, blocks * (t + 1) / count);
    work(0, 0, blocks / count);
    for (std::thread &thread : pool) thread.join();
#endif
}
