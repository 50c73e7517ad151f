// broker/snapshot/dump.hpp -- writes a STATE as one snapshot (schemas/snapshot.fbs).
//
// The same rows give the same bytes: the memory around them has no influence, neither free rows nor
// bytes behind a name's end, nor which blocks of the arena hold a row's bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace dibs::snapshot {

// What is wrong, and where.
class SnapshotError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline constexpr uint32_t kVersion = 2;

// `state` has passed core::state_refusal and core::rows_refusal, and stands between two turns.
// SnapshotError: it is larger than a snapshot can be.
std::vector<uint8_t> dump(std::span<std::byte> state);

}  // namespace dibs::snapshot
