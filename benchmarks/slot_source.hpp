// benchmarks/slot_source.hpp -- the interface through which workers claim and release slots.
//
// A source and its server are made before the workers are forked. Each worker attaches its copy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace dibs::bench {

class SlotSource {
  public:
    SlotSource() = default;
    virtual ~SlotSource() = default;
    SlotSource(const SlotSource&) = delete;
    SlotSource& operator=(const SlotSource&) = delete;

    virtual void attach(uint32_t worker) = 0;  // once, in the worker's process
    virtual void claim() = 0;                  // waits until a slot is free
    virtual void release() = 0;
    // The server's processes, whose CPU time is counted as well.
    [[nodiscard]] virtual std::vector<pid_t> servers() const { return {}; }
};

// For workers that only work.
class NoSlots final : public SlotSource {
  public:
    void attach(uint32_t /*worker*/) override {}
    void claim() override {}
    void release() override {}
};

}  // namespace dibs::bench
