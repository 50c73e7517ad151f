// tests/naive/statements.cpp -- a turn is judged: its opening, its commands and their decisions in
// order, then what timers and the pass decided, then what is left.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/statements.hpp"

#include <algorithm>

namespace dibs::naive {

Statements::Statements(const Journal& journal) : journal_(journal), pools_(journal.pools.size()) {
    for (uint32_t label = 0; label < pools_.size(); ++label)
        pools_[label].label = label;
    leases_are_judged_ =
        std::all_of(journal.pools.begin(), journal.pools.end(), [](const PoolSpec& pool) {
            return pool.config.order == shm::PoolOrder::kArrival && pool.vector.empty();
        });
}

std::string Statements::judge(const Turn& turn) {
    now_ = turn.now;
    turn_clock_ = ++clock_;
    turns_ += 1;
    ready_chosen_ = 0;
    for (JudgedPool& pool : pools_) {
        pool.demands = 0;
        pool.idle_changed = false;
        pool.claim_moved = false;
        pool.backlog_max = pool.spec.config.backlog_max;
        pool.reservation_over = false;
    }
    size_t at = 0;
    step_ = nullptr;
    sweep();
    hear_lines(turn, at, turn.opening_end);
    for (const Heard& heard : turn.heard) {
        begin(heard);
        hear_lines(turn, at, heard.lines_end);
        end(heard);
    }
    step_ = nullptr;
    sweep();
    reservations_end();
    hear_lines(turn, at, turn.lines.size());
    turn_ends(turn);
    return broken_;
}

void Statements::hear_lines(const Turn& turn, size_t& at, size_t end) {
    for (; at < end; ++at) {
        clock_ += 1;
        hear(turn.lines[at], living(turn, turn.lines[at].pool));
    }
}

// A line names a pool by its row, and the row may have been another pool's before. One that goes
// later in this turn is still there.
uint32_t Statements::living(const Turn& turn, uint32_t pool) const {
    if (pool >= turn.pools.size() || pools_[pool].lives || turn.pools[pool].lives) return pool;
    for (uint32_t other = 0; other < turn.pools.size(); ++other) {
        if (turn.pools[other].lives && turn.pools[other].row == turn.pools[pool].row) return other;
    }
    return kNoLabel;
}

}  // namespace dibs::naive
