// broker/snapshot/load.hpp -- loads a snapshot into a STATE, row for row.
//
// The input is not trusted: the bytes are verified, each row must have its place for itself, every
// row of a table must be either in use or free, the bytes that rows bring must fit the arena; then
// the rows pass the checks of a STATE that is handed over. The process that goes on from it calls
// check_all() last, as every successor does.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "broker/core/core.hpp"
#include "broker/snapshot/dump.hpp"

namespace dibs::snapshot {

struct Snapshot;  // the table of the schema

// A snapshot that has been looked at: its own bytes must stay.
class Loader {
  public:
    // SnapshotError: it is no snapshot, of another version, cut short, or too large.
    explicit Loader(std::span<const uint8_t> bytes);

    [[nodiscard]] core::Limits limits() const;
    [[nodiscard]] uint64_t time_ns() const;
    // Into zeroed memory of core::state_size(limits()) bytes, 64-byte aligned. SnapshotError with
    // the place of what is wrong; the memory then holds nothing of use.
    void fill(std::span<std::byte> state) const;

  private:
    const Snapshot* snapshot_;
};

}  // namespace dibs::snapshot
