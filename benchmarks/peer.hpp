// benchmarks/peer.hpp -- a second process that answers while it is asked to, and sleeps otherwise.
//
// It must not spin while another contender is measured on its CPU: it works between start() and
// stop() only.
//
//   resting ── start ──► running ── stop ──► resting        any ── the peer's destructor ──► ended
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace dibs::bench {

// Memory that forked children share. Zeroed, touched, on its own pages.
class SharedMemory {
  public:
    explicit SharedMemory(size_t size);
    ~SharedMemory();
    SharedMemory(const SharedMemory&) = delete;
    SharedMemory& operator=(const SharedMemory&) = delete;
    template <typename T>
    [[nodiscard]] T* at(size_t offset) const {
        return reinterpret_cast<T*>(bytes_ + offset);
    }

  private:
    std::byte* bytes_;
    size_t size_;
};

class Peer {
  public:
    // True while the peer is to go on. One load.
    class Running {
      public:
        explicit Running(const std::atomic<uint32_t>& state) : state_(state) {}
        [[nodiscard]] explicit operator bool() const;

      private:
        const std::atomic<uint32_t>& state_;
    };

    // Forks; `answer` runs in the child, on `cpu` or either of two, from each start() until
    // `running` is false, or ends by itself. The child ends if it throws.
    Peer(int cpu, const std::function<void(const Running& running)>& answer, int second_cpu = -1);
    ~Peer();
    Peer(const Peer&) = delete;
    Peer& operator=(const Peer&) = delete;

    // Each throws if the peer has ended.
    void start();  // returns when it answers
    void stop();   // returns when it rests
    [[nodiscard]] pid_t pid() const { return pid_; }

  private:
    struct Words;  // pairs of state: what is asked, what is so

    void ask(uint32_t state);
    [[noreturn]] void live(const std::function<void(const Running& running)>& answer);

    SharedMemory memory_;
    Words* words_;
    pid_t pid_ = -1;
};

}  // namespace dibs::bench
