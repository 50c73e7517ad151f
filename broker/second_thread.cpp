// broker/second_thread.cpp -- work of a takeover on another CPU besides.
// SPDX-License-Identifier: Apache-2.0
#include "broker/second_thread.hpp"

#include <sched.h>

#include <exception>
#include <utility>

namespace dibs {

namespace {

// Those that this thread may run on, but for the one that it runs on.
cpu_set_t other_cpus() {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) CPU_ZERO(&cpus);
    const int here = sched_getcpu();
    if (here >= 0) CPU_CLR(static_cast<size_t>(here), &cpus);
    return cpus;
}

}  // namespace

// Left to itself a new thread often begins where its starter runs, and helps it some milliseconds
// later.
SecondThread::SecondThread(std::function<void()> body) : body_(std::move(body)) {
    const cpu_set_t cpus = other_cpus();
    pthread_attr_t attributes;
    if (!body_ || CPU_COUNT(&cpus) == 0 || pthread_attr_init(&attributes) != 0) return;
    const auto run = [](void* what) -> void* {
        static_cast<SecondThread*>(what)->body_();
        return nullptr;
    };
    started_ = pthread_attr_setaffinity_np(&attributes, sizeof(cpus), &cpus) == 0 &&
               pthread_create(&thread_, &attributes, run, this) == 0;
    (void)pthread_attr_destroy(&attributes);
}

void SecondThread::join() {
    if (std::exchange(started_, false)) (void)pthread_join(thread_, nullptr);
}

void in_two(bool worth, const std::function<void(unsigned)>& half) {
    std::exception_ptr thrown;
    const auto second = [&] {
        try {
            half(1);
        } catch (...) {
            thrown = std::current_exception();
        }
    };
    {
        SecondThread thread(worth ? second : std::function<void()>());
        const bool beside = thread.started();
        half(0);
        thread.join();
        if (!beside) second();
    }
    if (thrown) std::rethrow_exception(thrown);
}

}  // namespace dibs
