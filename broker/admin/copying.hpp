// broker/admin/copying.hpp -- a copy of STATE that the turn makes for an admin conversation.
//
// The control thread makes it, the turn owns it until the copy is whole, then it is control's
// again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <span>

#include "broker/core/recovery/state_copy.hpp"
#include "shm/layout.hpp"

namespace dibs {

struct Copying {
    Copying(uint64_t asker, std::span<std::byte> state, bool then_records)
        : conversation(asker),
          records(then_records),
          memory(allocate(state.size())),
          copy(state, {memory.get(), state.size()}) {}

    struct Freed {
        void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    // The rows of a part: some ten microseconds of a turn.
    static constexpr size_t kPart = 32768;

    uint64_t conversation;
    bool records;  // what follows it is recorded
    std::unique_ptr<std::byte, Freed> memory;
    core::StateCopy copy;

  private:
    static std::byte* allocate(size_t size) {
        const size_t lines = (size + shm::kLineSize - 1) / shm::kLineSize;
        void* memory = std::aligned_alloc(shm::kLineSize, lines * shm::kLineSize);
        if (memory == nullptr) throw std::bad_alloc();
        return static_cast<std::byte*>(memory);
    }
};

}  // namespace dibs
