// broker/row_reader.cpp -- a second thread for a takeover's looks at rows.
// SPDX-License-Identifier: Apache-2.0
#include "broker/row_reader.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "broker/core/core.hpp"

namespace dibs {

namespace {

constexpr uint32_t kPieceRows = core::Core::kRowsAtOnce;

uint32_t pieces_of(uint32_t rows) {
    return (rows + kPieceRows - 1) / kPieceRows;
}

}  // namespace

RowReader::RowReader(std::span<std::byte> state)
    : state_(state), pieces_(pieces_of(std::max(state_.slots.size(), state_.leases.size()))) {}

RowReader::~RowReader() {
    stop_.store(true, std::memory_order_relaxed);
}

void RowReader::begin() {
    own_.emplace(state_);
    other_.emplace(state_);
    if (pieces_.size() < kRowsMin / kPieceRows) return;
    thread_.emplace([this] {
        while (!stop_.load(std::memory_order_relaxed) && look_at_next(&*other_)) {
        }
    });
}

// False: all are somebody's.
bool RowReader::look_at_next(core::RowLook* look) {
    const uint32_t piece = taken_.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces_.size()) return false;
    Piece found = Piece::kFailed;
    try {
        const uint32_t begin = piece * kPieceRows;
        if (look->piece(begin, begin + kPieceRows).empty()) found = Piece::kSound;
    } catch (const std::exception&) {
        // It lacks memory for its words: until() meets the same, where somebody can be told.
    }
    pieces_[piece].store(found, std::memory_order_release);
    return true;
}

std::string RowReader::until(uint32_t end) {
    const uint32_t pieces = std::min(pieces_of(end), static_cast<uint32_t>(pieces_.size()));
    for (; seen_ < pieces; ++seen_) {
        // While the other thread has that one, those behind it are as good: they come next.
        while (pieces_[seen_].load(std::memory_order_acquire) == Piece::kOpen) {
            if (!look_at_next(&*own_)) sched_yield();
        }
        if (pieces_[seen_].load(std::memory_order_relaxed) == Piece::kSound) continue;
        const uint32_t begin = seen_ * kPieceRows;
        std::string unsound = own_->piece(begin, begin + kPieceRows);
        if (!unsound.empty()) return unsound;
    }
    return {};
}

core::RowCounts RowReader::counts() {
    if (thread_) thread_->join();
    core::RowCounts counts = std::move(own_->counts());
    counts.add(other_->counts());
    return counts;
}

}  // namespace dibs
