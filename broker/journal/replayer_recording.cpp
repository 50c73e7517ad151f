// broker/journal/replayer_recording.cpp -- replays a live broker's turns and compares decisions.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include "broker/journal/decoder.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/snapshot/load.hpp"

namespace dibs::ctl {

std::vector<uint8_t> Replayer::snapshot() {
    return snapshot::dump(state());
}

void Replayer::go_on_from(std::span<const uint8_t> bytes) {
    if (turn_open_) throw JournalError("a state begins between turns only: close the turn first");
    try {
        const snapshot::Loader loader(bytes);
        const uint64_t size = core::state_size(loader.limits());
        if (size > memory_max_) {
            throw JournalError("the snapshot needs " + more_than(memory_max_, size));
        }
        shm::Lines state(size);
        loader.fill(state.bytes());
        core_.reset();
        state_ = std::move(state);
    } catch (const snapshot::SnapshotError& error) {
        throw JournalError(std::string("the snapshot: ") + error.what());
    }
    core_ = std::make_unique<core::Core>(Replayer::state());
    now_ = std::max(now_, core_->now());
}

void Replayer::apply(const journal::State& state) {
    // In its line it stands where bytes may stand; its own tables want more.
    const std::vector<uint8_t> aligned(state.snapshot()->begin(), state.snapshot()->end());
    go_on_from(aligned);
    for (const std::string& broken : core_->check_all())
        throw JournalError("the snapshot: " + broken);
    for (uint32_t row = 0; row < core_->pools(); ++row) {
        const shm::PoolRow& pool = core_->pool(row);
        map_.name_pool(row, {pool.name, pool.name_size});
    }
    recording_ = true;
    // An attached core looks at every pool once, and finds what the broker has found before.
    open_turn();
    settle_turn();
    decisions_.clear();
    sums_.clear();
    told_.clear();
}

bool Replayer::of_recording(const journal::Line& line) {
    return line.turn_opens() != nullptr || line.given() != nullptr ||
           line.turn_closed() != nullptr || line.recording_ends() != nullptr;
}

void Replayer::apply_recorded(const journal::Line& line) {
    if (!recording_) throw JournalError("only in a recording, which begins with \"state\"");
    if (ended_) throw JournalError("something follows the recording's end");
    if (line.turn_opens() != nullptr || line.recording_ends() != nullptr) {
        if (turn_open_) throw JournalError("the turn before is not closed");
        ended_ = line.recording_ends() != nullptr;
        if (ended_ && line.recording_ends()->turns() != recorded_turns_) {
            throw JournalError(std::to_string(line.recording_ends()->turns()) +
                               " turns were recorded, here are " + std::to_string(recorded_turns_));
        }
        if (ended_) return;
        now_ = line.turn_opens()->now_ns();
        if (now_ == shm::kNever) throw JournalError("time passes its end");
        return open_turn();
    }
    if (!turn_open_) throw JournalError("no turn is open");
    if (line.turn_closed() != nullptr) return apply(*line.turn_closed());
    if (line.given() == nullptr) throw JournalError("no recording holds this command");
    const journal::Given& given = *line.given();
    const bool ends = given.session_dies() != nullptr || given.holder_dies() != nullptr;
    if (core_->turn_full() && !ends) {
        throw JournalError("no broker's turn holds as much as this");
    }
    give(*core_, given);
    if (given.pool() != nullptr) learn_pool(*given.pool());
    collect();
}

void Replayer::apply(const journal::TurnClosed& closed) {
    settle_turn();
    ++recorded_turns_;
    compare(closed);
    sums_.clear();
    told_.clear();
}

void Replayer::compare(const journal::TurnClosed& closed) const {
    const auto differ = [&](const std::string& how) {
        throw JournalError("turn " + std::to_string(recorded_turns_) +
                           " is not as it was recorded: " + how);
    };
    const size_t recorded = closed.decided() == nullptr ? 0 : closed.decided()->size();
    for (uint32_t at = 0; at < std::min(recorded, sums_.size()); ++at) {
        if (closed.decided()->Get(at) == sums_[at]) continue;
        differ("decision " + std::to_string(at + 1) + " of " + std::to_string(recorded) +
               " was another one than\n  " + told_[at]);
    }
    if (sums_.size() > recorded) {
        differ(std::to_string(recorded) + " decisions, and not\n  " + told_[recorded]);
    }
    if (sums_.size() < recorded) {
        differ(std::to_string(recorded) + " decisions, here are " + std::to_string(sums_.size()));
    }
    if (closed.cut() != core_->cut()) {
        differ(closed.cut() ? "it was cut, and is not here" : "it is cut here");
    }
}

}  // namespace dibs::ctl
