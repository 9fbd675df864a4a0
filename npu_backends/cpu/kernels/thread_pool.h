// A few threads that run one function together, with a barrier after every loop.
//
//   caller   ──run──┬─ loop ─┬─ loop ─┬── done        A loop's indices are claimed in runs from one counter, so a thread that the
//   worker 1 ┄sleep─┴─ loop ─┴─ loop ─┘┄sleep         system stops for a while holds up its own run only; runs shorten towards the
//                            barrier                  end, so that all members arrive together. What is computed for an index does
//                                                     not depend on who computes it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace hybrid {

class ThreadPool;

// What a running function sees of its team. Every member must make the same sequence of for_each calls.
class Member {
   public:
    Member(ThreadPool& pool, int index) : pool_(pool), index_(index) {}
    int index() const { return index_; }

    // body(i) once for every i in [0, count), by some member; returns when all are done.
    template <class Body>
    void for_each(int count, Body body);

   private:
    friend class ThreadPool;

    ThreadPool& pool_;
    int index_;
    int patience_ = 0;  // looks that may still be in vain at the barriers of this run
};

class ThreadPool {
   public:
    explicit ThreadPool(int threads);  // the caller of `run` included; throws std::system_error when one cannot start
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int size() const { return size_; }

    // body(Member&) on every thread; returns when all have returned.
    template <class Body>
    void run(Body body) {
        start([](void* context, Member& member) { (*static_cast<Body*>(context))(member); }, &body);
    }

   private:
    friend class Member;
    using Entry = void (*)(void* context, Member& member);

    void start(Entry entry, void* context);
    void work(int index);
    void barrier(Member& member);
    void stop();

    const int size_;
    std::vector<std::thread> workers_;
    std::mutex mutex_;
    std::condition_variable wake_;     // a new run, or the end
    std::condition_variable release_;  // a barrier opened
    uint64_t run_count_ = 0;           // guarded by mutex_
    bool stopping_ = false;            // guarded by mutex_
    Entry entry_ = nullptr;
    void* context_ = nullptr;
    alignas(64) std::atomic<int> next_{0};     // first index nobody has claimed
    alignas(64) std::atomic<int> arrived_{0};  // members at the barrier
    alignas(64) std::atomic<uint32_t> opened_{0};
};

template <class Body>
void Member::for_each(int count, Body body) {
    const int size = pool_.size();
    if (size == 1) {
        for (int i = 0; i < count; i++) body(i);
        return;
    }
    const int longest = count / (size * 6) + 1;
    int begin = pool_.next_.load(std::memory_order_relaxed);
    while (begin < count) {
        const int share = (count - begin) / (2 * size) + 1, end = begin + (share < longest ? share : longest);
        if (!pool_.next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
        for (int i = begin; i < end; i++) body(i);
        begin = pool_.next_.load(std::memory_order_relaxed);
    }
    pool_.barrier(*this);
}

}  // namespace hybrid
