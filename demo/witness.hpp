// demo/witness.hpp -- records who uses which slot, independently of the broker.
//
// All users of slots share one page of memory. A user that starts to use a slot puts the claim's
// number into the slot's cell by compare-and-swap from 0, and puts 0 back when the use ends. A swap
// that finds another number there is a slot held twice; it is counted and the use goes on. The
// broker neither sees nor knows this page.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace dibs::ctl::demo {

// Writer of `claim`: the user of the slot at this time; of the counters: the process that finds the
// fault or ends the use. Pairs only with itself: each operation is one sequentially consistent
// access.
struct alignas(64) WitnessCell {
    std::atomic<uint64_t> claim;       // 0 = not in use
    std::atomic<uint64_t> uses;        // ended ones
    std::atomic<uint64_t> faults;      // the slot was another claim's at the start or end of a use
    std::atomic<uint64_t> last_fault;  // the claim that met it
};

class Witness {
  public:
    // Memory for `slots` cells, all free. Throws std::system_error.
    static Witness create(size_t slots);
    // The same memory, by a descriptor that was inherited.
    static Witness attach(int fd, size_t slots);
    Witness(Witness&& other) noexcept;
    Witness(const Witness&) = delete;
    Witness& operator=(const Witness&) = delete;
    Witness& operator=(Witness&&) = delete;
    ~Witness();

    void start_use(size_t slot, uint64_t claim);
    void end_use(size_t slot, uint64_t claim);

    [[nodiscard]] int fd() const { return fd_; }
    [[nodiscard]] std::span<const WitnessCell> cells() const { return cells_; }
    [[nodiscard]] uint64_t uses() const;
    [[nodiscard]] uint64_t faults() const;
    [[nodiscard]] size_t in_use() const;  // cells that are not free

  private:
    Witness(int fd, size_t slots);
    void note_fault(WitnessCell* cell, uint64_t claim);

    int fd_ = -1;
    std::span<WitnessCell> cells_;
};

}  // namespace dibs::ctl::demo
