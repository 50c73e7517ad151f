// broker/core/recovery/state_copy.hpp -- copies STATE a part at a time while turns go on.
//
//   step()    copies the next rows                     step() has come to the end, and the turn
//   follow()  copies again what a turn has changed  ─► was not cut: the copy is that turn's STATE
//             of the rows that are copied already
//
// The copy is STATE as it stands between two turns. What a turn has changed is what its undo log
// has saved: the log of a committed turn is read before it is cleared. A row is copied whole, with
// its bytes in the arena, because these and the cold lines of a formerly free row are changed
// without an image. So a turn pays for one part and for the rows that it has touched, however large
// STATE is, and no client waits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "broker/core/store/state.hpp"

namespace dibs::core {

class StateCopy {
  public:
    // Both outlive this. `to`: as many bytes as `from` has, 64-byte aligned; bytes outside rows are
    // left as they are there.
    StateCopy(std::span<std::byte> from, std::span<std::byte> to);

    // Copies at least one row and at most about this many bytes. True: all is copied.
    bool step(size_t bytes);
    // Between a turn's commit and its clear().
    void follow();
    [[nodiscard]] std::span<std::byte> bytes() const { return to_; }

  private:
    struct Part {  // the rows of a table
        uint64_t begin;
        uint64_t end;
        uint32_t row_size;
        shm::Table table;
    };

    [[nodiscard]] Part part(size_t at) const;
    void copy(uint64_t offset, uint64_t size);
    void copy_row(const Part& part, uint64_t offset);
    void copy_chain(uint32_t first, uint64_t size);

    State from_;
    std::span<std::byte> to_;
    size_t part_ = 0;    // that step() has reached
    uint64_t next_ = 0;  // offset of the next row; below it everything is copied
};

}  // namespace dibs::core
