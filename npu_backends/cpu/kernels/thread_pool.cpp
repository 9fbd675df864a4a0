#include "thread_pool.h"

#include "float_control.h"

namespace hybrid {

namespace {
// How often a waiter looks before it sleeps. A sleep takes longer than the work between two barriers of a small step, so looking for some
// 20 us pays where all members run. Where there are fewer CPUs than threads it burns the very time that the others wait for (measured:
// 1000 looks at every barrier double such a step, 100 cost nothing): so a member looks long only until it was disappointed a few times.
constexpr int kFewLooks = 100, kManyLooks = 500, kPatience = 3 * kManyLooks;

inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
}  // namespace

ThreadPool::ThreadPool(int threads) : size_(threads) {
    try {
        for (int i = 1; i < threads; i++) workers_.emplace_back([this, i] { work(i); });
    } catch (...) {
        stop();
        throw;
    }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
    {
        std::lock_guard<std::mutex> lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
}

void ThreadPool::start(Entry entry, void* context) {
    FloatControl control;
    Member self(*this, 0);
    if (size_ > 1) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            entry_ = entry;
            context_ = context;
            run_count_++;
        }
        wake_.notify_all();
    }
    self.patience_ = kPatience;
    entry(context, self);
    if (size_ > 1) barrier(self);
}

void ThreadPool::work(int index) {
    FloatControl control;
    Member self(*this, index);
    uint64_t seen = 0;
    for (;;) {
        Entry entry;
        void* context;
        {
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, [&] { return stopping_ || run_count_ != seen; });
            if (stopping_) return;
            seen = run_count_;
            entry = entry_;
            context = context_;
        }
        self.patience_ = kPatience;
        entry(context, self);
        barrier(self);
    }
}

void ThreadPool::barrier(Member& member) {
    const uint32_t before = opened_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
        arrived_.store(0, std::memory_order_relaxed);
        next_.store(0, std::memory_order_relaxed);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            opened_.store(before + 1, std::memory_order_release);
        }
        release_.notify_all();
        return;
    }
    const int looks = member.patience_ > 0 ? kManyLooks : kFewLooks;
    for (int look = 0; look < looks; look++) {
        if (opened_.load(std::memory_order_acquire) != before) return;
        relax();
    }
    member.patience_ -= looks;
    std::unique_lock<std::mutex> lock(mutex_);
    release_.wait(lock, [&] { return opened_.load(std::memory_order_acquire) != before; });
}

}  // namespace hybrid
