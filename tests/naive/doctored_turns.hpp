// tests/naive/doctored_turns.hpp -- turns of the core, to be changed before they are judged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/naive/player.hpp"
#include "tests/naive/state_bytes.hpp"
#include "tests/naive/statements.hpp"
#include "tests/naive/turn_record.hpp"

namespace dibs::naive {

// Sessions 100 (client) and 101 (worker), pool 0; the first turn is at 1000. Steps are written,
// then played to the core by play(); a test changes the turns that it made.
class DoctoredTurns : public testing::Test {
  protected:
    DoctoredTurns() {
        journal_.pools.resize(1);
        PoolSpec& pool = journal_.pools[0];
        pool.name = "pool";
        pool.config.reservation_ttl_ns = 10;
        pool.config.slots = 0;
        pool.config.kind = shm::PoolKind::kWorker;
    }

    core::PoolConfig& config() { return journal_.pools[0].config; }
    void counted(uint32_t slots) {
        config().kind = shm::PoolKind::kCounted;
        config().slots = slots;
        begin();
    }
    void begin() {
        put(StepKind::kSetPool, 0).label = 0;
        put(StepKind::kOpen, 100);
        put(StepKind::kOpen, 101);
    }
    Step& put(StepKind kind, uint32_t label = kNoLabel) {
        Step& step = journal_.steps.emplace_back();
        step.kind = kind;
        step.label =
            label == kNoLabel ? 1000 + static_cast<uint32_t>(journal_.steps.size()) : label;
        step.pool = 0;
        return step;
    }
    // Claims have labels from 1, which are their numbers and tags, too.
    Step& claim(uint64_t timeout_ns = shm::kNever) {
        Step& step = put(StepKind::kClaim, ++claims_);
        step.session = 100;
        step.claim.tag = static_cast<uint16_t>(claims_);
        step.claim.timeout_ns = timeout_ns;
        return step;
    }
    void release(uint32_t claim) {
        Step& step = put(StepKind::kRelease);
        step.session = 100;
        step.subject = claim;
    }
    // Slots have labels from 200, and numbers from 0.
    Step& announce(bool ready = true) {
        Step& step = put(StepKind::kAnnounce, 200 + slots_++);
        step.session = 101;
        step.announce.ready = ready;
        return step;
    }
    Step& say(core::WorkerWord::Kind kind, uint32_t slot) {
        Step& step = put(StepKind::kWord);
        step.session = 101;
        step.subject = 200 + slot;
        step.word.kind = kind;
        return step;
    }
    void refuse(uint32_t slot, bool try_again, int64_t code = 0) {
        Step& step = say(core::WorkerWord::Kind::kRefuse, slot);
        step.word.try_again = try_again;
        step.word.code = code;
    }
    void cancel(uint32_t claim) {
        Step& step = put(StepKind::kCancel);
        step.session = 100;
        step.tag = static_cast<uint16_t>(claim);
    }
    [[nodiscard]] size_t step() const { return journal_.steps.size() - 1; }
    Step& by(StepKind kind, uint32_t session) {
        Step& step = put(kind);
        step.session = session;
        return step;
    }
    void turn(uint64_t at_ns) { put(StepKind::kTurnEnd).at_ns = at_ns; }

    // Plays all that was written; as it is, no statement is broken.
    void play() {
        journal_.limits = {.pools = 2, .sessions = 4, .slots = 16, .claims = 16, .leases = 16};
        StateBytes bytes(journal_.limits);
        core::Core core(bytes.span());
        Player<core::Core> player(core, journal_);
        TurnRecord record(journal_);
        uint64_t now = 1000;
        core.begin_turn(now);
        record.open(player);
        for (size_t i = 0; i <= journal_.steps.size(); ++i) {
            const bool more = i < journal_.steps.size();
            if (more && journal_.steps[i].kind != StepKind::kTurnEnd) {
                record.play(journal_.steps[i], core, player);
                continue;
            }
            core.decide();
            player.listen();
            core.commit();
            core.clear();
            turns_.push_back(record.close(now, core, player));
            player.forget_lines();
            if (more) now = journal_.steps[i].at_ns;
            core.begin_turn(now);
            player.turn_opened();
            record.open(player);
        }
        ASSERT_EQ(judged(), "");
    }
    // The statement that is broken, and how; empty = none.
    std::string judged() {
        Statements statements(journal_);
        for (const Turn& turn : turns_) {
            const std::string broken = statements.judge(turn);
            if (!broken.empty()) return broken;
        }
        return {};
    }
    std::string broken() { return judged().substr(0, judged().find(':')); }

    Turn& last() { return turns_.back(); }
    // The last turn's first decision of the kind.
    DecisionLine& line(core::DecisionKind kind) {
        const auto found = std::find_if(last().lines.begin(), last().lines.end(), [&](auto& line) {
            return line.kind == kind;
        });
        return *found;
    }
    void drop(core::DecisionKind kind) {
        const auto at = &line(kind) - last().lines.data();
        last().lines.erase(last().lines.begin() + at);
        for (Heard& heard : last().heard)
            heard.lines_end -= heard.lines_end > static_cast<size_t>(at);
    }
    // Decided with the last turn's last command.
    void tell(DecisionLine line) {
        size_t& end = last().heard.back().lines_end;
        line.pool = 0;
        line.slot = 0;
        last().lines.insert(last().lines.begin() + static_cast<std::ptrdiff_t>(end), line);
        end += 1;
    }
    // What a worker said, and was told ok, was another word: it is judged as if the core had heard
    // that one, and had decided the same.
    void was(size_t step, core::WorkerWord::Kind kind) { journal_.steps[step].word.kind = kind; }
    // Of the claim that another one is.
    static void rename(DecisionLine& line, uint16_t claim) {
        line.claim = claim;
        line.tag = claim;
        line.user_data = claim;
    }

    Journal journal_;
    std::vector<Turn> turns_;
    uint32_t claims_ = 0;
    uint32_t slots_ = 0;
};

}  // namespace dibs::naive
