// broker/takeover/row_pieces.cpp -- splits the tables, so that two threads validate a takeover.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/row_pieces.hpp"

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

RowPieces::RowPieces(std::span<std::byte> state, std::function<void(uint32_t)> before)
    : state_(state),
      before_(std::move(before)),
      pieces_(pieces_of(std::max(state_.slots.size(), state_.leases.size()))) {}

RowPieces::~RowPieces() {
    stop_.store(true, std::memory_order_relaxed);
}

void RowPieces::begin() {
    own_.emplace(state_);
    other_.emplace(state_);
    if (pieces_.size() < kRowsMin / kPieceRows) return;
    thread_.emplace([this] {
        while (!stop_.load(std::memory_order_relaxed) && look_at_next(&*other_)) {
        }
    });
}

// The first exception of a thread is its last: no thread goes on from there, and the thread that
// rethrows it may already be looking at it.
bool RowPieces::look_at_next(Looker* looker) {
    const uint32_t piece = taken_.fetch_add(1, std::memory_order_relaxed);
    if (piece >= pieces_.size()) return false;
    Piece found = Piece::kThrew;
    try {
        if (before_) before_(piece);
        const uint32_t begin = piece * kPieceRows;
        const bool sound = looker->look.piece(begin, begin + kPieceRows).empty();
        found = sound ? Piece::kSound : Piece::kUnsound;
    } catch (...) {  // of a shortage of memory: until() reports it, where it can be handled
        looker->thrown = std::current_exception();
    }
    pieces_[piece].store(found, std::memory_order_release);
    return found != Piece::kThrew;
}

std::string RowPieces::until(uint32_t end) {
    const uint32_t pieces = std::min(pieces_of(end), static_cast<uint32_t>(pieces_.size()));
    for (; seen_ < pieces; ++seen_) {
        // While the other thread has that piece, those behind it come next. Once no piece is left
        // the other thread ends with what it has.
        while (pieces_[seen_].load(std::memory_order_acquire) == Piece::kOpen) {
            if (!look_at_next(&*own_) && thread_) thread_->join();
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

core::RowCounts RowPieces::counts() {
    if (thread_) thread_->join();
    core::RowCounts counts = std::move(own_->look.counts());
    counts.add(other_->look.counts());
    std::sort(counts.wrongs.begin(), counts.wrongs.end());  // whichever thread found them
    return counts;
}

}  // namespace dibs
