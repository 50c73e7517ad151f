// tests/naive/journal.hpp -- a random journal: commands whose subjects have labels, not ids.
//
// A label is the name that the step which makes a thing gives it. Lease L is the lease of the
// claim labelled L, slot S the slot of the announcement labelled S. Fences and rounds are written
// as distances from what was last told. So a journal means the same to two cores whose rows
// differ, and goes on meaning something when steps are dropped from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/command.hpp"
#include "broker/core/core.hpp"

namespace dibs::naive {

inline constexpr uint32_t kNoLabel = 0xffffffffU;

// Slot `number` of counted pool `pool`: nobody announces it, so its label is made of its place.
inline constexpr uint32_t kCountedLabel = 0x40000000U;
inline constexpr uint32_t counted_label(uint32_t pool, uint32_t number) {
    return kCountedLabel + pool * 65536 + number;
}

struct PoolSpec {
    std::string name;
    std::string required_label;
    core::PoolConfig config;  // without its views
};

enum class StepKind {
    kSetPool,
    kOpen,
    kDied,
    kClaim,
    kCancel,
    kRelease,
    kKeepalive,
    kAdopt,
    kKillFailed,
    kAnnounce,
    kWord,
    kDrain,
    kSteer,
    kRestart,  // the core dies in the middle of a turn; another one takes that back and does it
               // again
    kTurnEnd,
};

// What becomes of the core at the end of a turn, and of every turn that it was cut into.
enum class Death { kNone, kBeforeClear, kAfterClear };

struct Step {
    StepKind kind = StepKind::kTurnEnd;
    uint32_t label = kNoLabel;    // of what it makes: pool, session, claim or slot
    uint32_t session = kNoLabel;  // who says it
    uint32_t pool = kNoLabel;     // drain: kNoLabel = the broker
    uint32_t subject = kNoLabel;  // the claim whose lease, or the announcement whose slot, it is of
    int32_t distance = 0;         // of its fence or round from the right one

    core::Claim claim;
    uint32_t payload_size = 0;               // claim
    uint16_t tag = 0;                        // cancel, adopt
    shm::Reason refusal = shm::Reason::kOk;  // adopt
    bool broken = false;                     // release
    uint64_t interval_ns = 0;                // keepalive
    core::Announce announce;                 // without its views
    std::string name;
    std::vector<std::string> labels;
    uint32_t attributes_size = 0;
    core::WorkerWord word;
    uint32_t answer_size = 0;
    bool on = true;  // drain
    core::Steer::Kind steer = core::Steer::Kind::kRelease;
    core::SessionOpen open;
    uint64_t at_ns = 0;  // turn end: the time of the turn that it opens
    Death death = Death::kNone;
};

struct Journal {
    uint64_t seed = 0;
    core::Limits limits;
    std::vector<PoolSpec> pools;
    std::vector<Step> steps;
};

std::string to_string(const Step& step);
std::string to_string(const PoolSpec& pool);

}  // namespace dibs::naive
