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
bool RowReader::look_at_next(Looker* looker) {
    const uint32_t piece = taken_.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces_.size()) return false;
    Piece found = Piece::kThrew;
    try {
        const uint32_t begin = piece * kPieceRows;
        const bool sound = looker->look.piece(begin, begin + kPieceRows).empty();
        found = sound ? Piece::kSound : Piece::kUnsound;
    } catch (...) {  // of a lack of memory: until() says so, where somebody can be told
        looker->thrown = std::current_exception();
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
        const Piece found = pieces_[seen_].load(std::memory_order_relaxed);
        if (found == Piece::kSound) continue;
        if (found == Piece::kThrew) {
            std::rethrow_exception(own_->thrown ? own_->thrown : other_->thrown);
        }
        const uint32_t begin = seen_ * kPieceRows;
        return own_->look.piece(begin, begin + kPieceRows);
    }
    return {};
}

core::RowCounts RowReader::counts() {
    if (thread_) thread_->join();
    core::RowCounts counts = std::move(own_->look.counts());
    counts.add(other_->look.counts());
    return counts;
}

}  // namespace dibs
