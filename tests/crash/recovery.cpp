// tests/crash/recovery.cpp -- recovering from an image, and comparing.
// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/recovery.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "broker/core/store/state.hpp"
#include "shm/lines.hpp"

namespace dibs::tests {

using core::Core;
using core::State;

namespace {

class Digest {
  public:
    void add(const void* bytes, size_t size) {
        const auto* in = static_cast<const unsigned char*>(bytes);
        for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), in += sizeof(uint64_t)) {
            uint64_t word = 0;
            std::memcpy(&word, in, sizeof(word));
            add(word);
        }
        for (; size > 0; --size, ++in)
            add(*in);
    }
    [[nodiscard]] uint64_t value() const { return value_; }

  private:
    void add(uint64_t word) { value_ = std::rotl(value_ ^ word, 29) * 0x100000001b3ULL; }

    uint64_t value_ = 0xcbf29ce484222325ULL;
};

template <class Row>
void add_rows(Digest* digest, const core::Rows<Row>& rows, uint32_t count) {
    for (uint32_t row = 0; row < count; ++row) {
        Row copy;
        std::memcpy(static_cast<void*>(&copy), &rows[row], sizeof(Row));
        copy.head.touched = 0;
        // Of a free row only its hot line means anything.
        const bool free = static_cast<int>(copy.state) == 0;
        digest->add(&copy, free ? shm::kLineSize : sizeof(Row));
    }
}

}  // namespace

uint64_t digest_of(std::span<std::byte> bytes) {
    const State state{bytes};
    Digest digest;
    auto counters = *state.counters;
    counters.head.touched = 0;
    digest.add(&counters, sizeof(counters));
    add_rows(&digest, state.pools, state.counters->pools);
    add_rows(&digest, state.sessions, state.sessions.size());
    add_rows(&digest, state.slots, state.slots.size());
    add_rows(&digest, state.claims, state.claims.size());
    add_rows(&digest, state.leases, state.leases.size());
    add_rows(&digest, state.accounts, state.accounts.size());
    for (uint32_t row = 0; row < state.label_sets.size(); ++row) {
        shm::LabelSetRow set = state.label_sets[row];
        set.head.touched = 0;
        digest.add(&set, sizeof(set));
    }
    const auto add_chain = [&](uint32_t chain, uint32_t size) {
        for (uint32_t at = 0; at < size; at += 508) {
            digest.add(state.arena[chain].bytes, std::min(508U, size - at));
            chain = state.arena[chain].next;
        }
    };
    for (uint32_t row = 0; row < state.claims.size(); ++row) {
        const shm::ClaimRow& claim = state.claims[row];
        if (static_cast<int>(claim.state) == 0) continue;
        add_chain(claim.payload, claim.payload_size);
        // In other pools the field means nothing.
        const bool pays = state.pools[claim.pool].order == shm::PoolOrder::kAccount;
        if (pays && claim.carried_cost != shm::kNoRow) {
            add_chain(claim.carried_cost, sizeof(shm::LeaseRow::cost));
        }
    }
    for (uint32_t row = 0; row < state.accounts.size(); ++row) {
        const shm::AccountRow& account = state.accounts[row];
        if (account.state != 0) add_chain(account.label_limits, account.label_limits_size);
    }
    for (uint32_t row = 0; row < state.label_sets.size(); ++row) {
        const shm::LabelSetRow& set = state.label_sets[row];
        if (set.references != 0) add_chain(set.text, set.text_size);
    }
    for (uint32_t row = 0; row < state.slots.size(); ++row) {
        const shm::SlotRow& slot = state.slots[row];
        if (static_cast<int>(slot.state) != 0) add_chain(slot.attributes, slot.attributes_size);
    }
    return digest.value();
}

core::Limits small() {
    core::Limits limits;
    limits.pools = 15;
    limits.entries = 8;
    limits.applications = 8;
    limits.groups = 10;
    limits.tasks = 16;
    limits.sessions = 6;
    limits.slots = 56;
    limits.claims = 20;
    limits.leases = 16;
    limits.arena_blocks = 96;
    limits.accounts = 6;
    limits.label_sets = 10;
    return limits;
}

void Images::take(std::span<const std::byte> state) {
    if (count_ == images_.size()) images_.emplace_back();
    Image& image = images_[count_++];
    const auto* head = reinterpret_cast<const shm::StateHead*>(state.data());
    image.bytes.assign(state.begin(), state.end());
    image.phase = head->log.phase.load();
    image.pledged_turn = head->log.pledged_turn;
}

std::string wrong_with(const Image& image, const Turn& turn) {
    // The same memory for every image: a sanitizer's takes longer to give than all that follows.
    static shm::Lines memory(image.bytes.size());
    if (memory.bytes().size() != image.bytes.size()) memory = shm::Lines(image.bytes.size());
    std::memcpy(memory.bytes().data(), image.bytes.data(), image.bytes.size());
    const bool committed = image.phase == shm::LogPhase::kCommitted;
    // What has been told is granted, wherever the turn stood.
    const bool owed = !committed && turn.pledged != 0 && image.pledged_turn == turn.pledged;
    for (int recovery = 1; recovery <= 2; ++recovery) {
        const Core recovered{memory.bytes()};
        const std::string when = recovery == 1 ? "recovered: " : "recovered again: ";
        for (const std::string& wrong : recovered.check_all())
            return when + wrong;
        const uint64_t digest = digest_of(memory.bytes());
        if (committed && digest != turn.after) return when + "committed, but not the turn's end";
        if (owed && digest != turn.after) return when + "pledged, but not granted";
        if (!owed && image.phase == shm::LogPhase::kOpen && digest != turn.before) {
            return when + "not committed, but not as before the turn";
        }
        if (image.phase == shm::LogPhase::kIdle && digest != turn.before && digest != turn.after) {
            return when + "between turns, but neither as before nor as after this one";
        }
        const auto left = static_cast<uint32_t>(recovered.staged_stores().size());
        if (committed && left != turn.staged) return when + "a staged store is missing";
        if (image.phase == shm::LogPhase::kOpen && left != (owed ? 1U : 0U)) {
            return when + "a store is left over, or the pledge's is missing";
        }
    }
    Core serving{memory.bytes()};
    do {
        serving.begin_turn(1);
        serving.decide();
        serving.commit();
        serving.clear();
    } while (serving.work_left());
    for (const std::string& wrong : serving.check_all())
        return "serving: " + wrong;
    return {};
}

void stage_one_per_decision(Core* core) {
    for (const core::Decision& decision : core->decisions()) {
        if (decision.pledged) continue;  // its store stands there already
        shm::LogStore store{};
        store.session = decision.session;
        store.position = decision.claim;
        std::memcpy(store.entry, &decision.id, sizeof(decision.id));
        core->stage_store(store);
    }
}

// Confirmations are what leases of workers come from; drains and deaths are rarer than life, and
// what ends a drain is as frequent as what begins it. A lease lapses in one turn alone.
Operation draw(Workload* workload) {
    constexpr std::array kOften = {Operation::kAnnounce,
                                   Operation::kReady,
                                   Operation::kConfirm,
                                   Operation::kConfirm,
                                   Operation::kRefuseRetry,
                                   Operation::kRefuse,
                                   Operation::kDone,
                                   Operation::kUndrainAll,
                                   Operation::kClaim,
                                   Operation::kOpenSession};
    if (workload->lapses() && workload->below(4) == 0) return Operation::kTouch;
    if (workload->below(2) == 0) return kOften[workload->below(kOften.size())];
    const auto operation = static_cast<Operation>(workload->below(kOperations));
    const bool heavy = operation == Operation::kDrainAll || operation == Operation::kSessionDeath ||
                       operation == Operation::kHolderDeath;
    return heavy && workload->below(6) != 0 ? Operation::kClaim : operation;
}

}  // namespace dibs::tests
