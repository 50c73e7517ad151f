// tests/naive/turn_record.cpp -- plays, and looks at pools as anybody can.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/turn_record.hpp"

#include <string>

#include "broker/core/look.hpp"

namespace dibs::naive {

void TurnRecord::open(Player<core::Core>& player) {
    player.listen();
    turn_.heard.clear();
    turn_.opening_end = player.lines().size();
}

void TurnRecord::play(const Step& step, const core::Core& core, Player<core::Core>& player) {
    const bool drains_pool = step.kind == StepKind::kDrain && step.pool != kNoLabel;
    const bool is_played = player.can_take(step) && (!drains_pool || player.knows_pool(step.pool));
    const uint32_t row = step.pool == kNoLabel ? shm::kNoRow : player.pool_row(step.pool);
    Heard heard{&step, living_pool(core, row), row != shm::kNoRow, 0};
    player.play(step);
    heard.lines_end = player.lines().size();
    if (step.kind == StepKind::kSetPool && !player.pool_was_set()) return;
    // It names a pool by its name, and makes one that has been deleted.
    if (step.kind == StepKind::kChangePool) {
        const bool lives = living_pool(core, player.pool_row(step.pool)) == step.pool;
        heard.pool = lives ? step.pool : kNoLabel;
    }
    if (!step.route.members.empty() && is_played) {  // the pool that has it
        const auto session = player.sessions().find(step.session);
        const uint32_t has_it =
            session == player.sessions().end()
                ? shm::kNoRow
                : core::Look::pool_of_claim(core, session->second, step.claim.tag);
        heard.pool = living_pool(core, has_it);
    }
    if (step.kind == StepKind::kOpen && !player.session_is_open(step.label)) return;
    if (is_played) turn_.heard.push_back(heard);
}

// The label of the pool that has this row now.
uint32_t TurnRecord::living_pool(const core::Core& core, uint32_t row) const {
    for (uint32_t label = 0; row != shm::kNoRow && label < journal_.pools.size(); ++label) {
        if (core.find_pool(journal_.pools[label].name) == row && core.pool_lives(row)) return label;
    }
    return kNoLabel;
}

const Turn& TurnRecord::close(core::TimeNs now,
                              const core::Core& core,
                              const Player<core::Core>& player) {
    turn_.now = now;
    turn_.lines = player.lines();
    turn_.next_due = core.next_due();
    turn_.pools.clear();
    for (uint32_t label = 0; label < journal_.pools.size(); ++label) {
        PoolPicture picture;
        picture.row = player.pool_row(label);
        picture.lives = living_pool(core, picture.row) == label;
        if (picture.lives) {
            const shm::PoolRow& pool = core.pool(picture.row);
            picture.idle = pool.idle;
            picture.waiting = pool.waiting;
            picture.confirming = pool.confirming;
            picture.unconfirmed = pool.unconfirmed;
            picture.reserved = pool.reserved;
            picture.last_dispatch_ns = pool.last_dispatch_ns;
        }
        turn_.pools.push_back(picture);
    }
    return turn_;
}

}  // namespace dibs::naive
