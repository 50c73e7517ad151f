// tests/naive/journal_of_workers.cpp -- what workers offer and say, in time and too late.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <vector>

#include "tests/naive/journal_writer.hpp"

namespace dibs::naive {

using Word = core::WorkerWord::Kind;

void Writer::announce() {
    Step step;
    step.kind = StepKind::kAnnounce;
    step.session = any_session();
    if (character_.accounts && !character_.attached) return;
    if (character_.elastic && dice_.percent(85)) return;  // its workers are made
    step.pool = dice_.percent(98) ? any_pool(dice_.percent(97)) : kNoLabel;
    step.announce.worker_tag = journal_.steps.size();
    step.announce.is_protected = dice_.percent(20);
    step.announce.ready = dice_.percent(70);
    if (dice_.percent(1)) step.announce.refusal = shm::Reason::kMalformed;
    if (dice_.percent(60)) step.name = "worker" + std::to_string(dice_.below(8));
    if (dice_.percent(75)) step.labels.emplace_back("gpu");
    if (dice_.percent(20)) step.labels.emplace_back("gpus");
    if (character_.labels) {
        for (const std::string& label : some_labels(4))
            step.labels.push_back(label);
    }
    // Of one that is reserved for a claim, which its labels may not fit any more.
    if (character_.labels && dice_.percent(30)) {
        for (const auto& [id, slot] : model().slots) {
            const bool reserved = slot.is == SlotIs::kReserved && slot.pool == step.pool;
            if (reserved && !slot.name.empty() && dice_.percent(50)) step.name = slot.name;
        }
    }
    if (step.pool != kNoLabel) {
        const uint32_t max = journal_.pools[step.pool].config.attributes_max;
        step.attributes_size = dice_.one_of<uint32_t>({0, 0, 0, max / 2, max, max});
        if (dice_.percent(3)) step.attributes_size = max + 1;
    }
    if (step.pool != kNoLabel) announce_vector(step);
    // Mostly as many slots as a pool of a journal's size can use.
    const bool enough = model().slots.size() > journal_.limits.slots * 3 / 4;
    if (enough && dice_.percent(50)) return;
    // Once more by whoever it belongs to.
    for (const auto& [id, slot] : model().slots) {
        if (slot.pool == step.pool && !slot.name.empty() && slot.name == step.name &&
            slot.session != shm::kNoRow && dice_.percent(70)) {
            step.session = label_of_session(slot.session);
        }
    }
    if (character_.elastic && dice_.percent(25)) step.type_name = any_type();
    put_announcement(step);
}

Word Writer::word_for(const Slot& slot) {
    static constexpr Word kWords[] = {Word::kReady,
                                      Word::kConfirm,
                                      Word::kRefuse,
                                      Word::kDone,
                                      Word::kWithdraw,
                                      Word::kProtect,
                                      Word::kUnprotect};
    const uint64_t unprotect = slot.is_protected ? 15 : 2;
    switch (slot.is) {
        case SlotIs::kIdle:
            return kWords[dice_.weighed({5, 4, 4, 4, 8, 12, 3})];
        case SlotIs::kReserved:
            if (is_too_late(slot)) return kWords[dice_.weighed({8, 40, 40, 3, 3, 4, unprotect})];
            return kWords[dice_.weighed({3, 80, 12, 3, 3, 7, unprotect})];
        case SlotIs::kKept:
        case SlotIs::kPlaceholder:
            return kWords[dice_.weighed({20, 4, 4, 4, 6, 5, unprotect})];
        case SlotIs::kLeased:
            return kWords[dice_.weighed({8, 5, 5, 60, 5, 8, unprotect})];
        case SlotIs::kRecovering:
            if (slot.is_taken_back) {
                return kWords[dice_.weighed({30, 50, 4, 3, 3, 6, unprotect})];
            }
            return kWords[dice_.weighed({90, 3, 3, 3, 2, 4, unprotect})];
        case SlotIs::kUnknown:
            return kWords[dice_.weighed({30, 30, 30, 5, 4, 6, unprotect})];
        case SlotIs::kOrdered:
            break;
        case SlotIs::kShared:
            return kWords[dice_.weighed({3, 3, 3, 3, 10, 20, unprotect})];
    }
    return Word::kReady;
}

// Reserved, and at or behind the end of its reservation or behind its claim's deadline, whose
// timers have not come yet.
bool Writer::is_too_late(const Slot& slot) const {
    if (slot.is != SlotIs::kReserved) return false;
    const Claim& claim = model().claims.at(slot.claim);
    return model().now >= claim.reserved_until_ns || model().now > claim.deadline_ns;
}

// Whose confirmation would come too late.
const Slot* Writer::any_late_slot() {
    std::vector<const Slot*> late;
    for (const auto& [id, slot] : model().slots) {
        const bool is_asked = is_too_late(slot) && !slot.has_confirmed;
        if (is_asked || slot.is == SlotIs::kUnknown || slot.is_taken_back) late.push_back(&slot);
    }
    return late.empty() ? nullptr : dice_.any(late);
}

// The first that is attached and promised, and not ready yet.
const Slot* Writer::promised_slot() const {
    for (const auto& [id, slot] : model().slots) {
        const bool is_away = slot.is == SlotIs::kRecovering && slot.session != shm::kNoRow;
        if (slot.promised_to != 0 && is_away) return &slot;
    }
    return nullptr;
}

void Writer::word() {
    if (model().slots.empty()) return;
    Step step;
    step.kind = StepKind::kWord;
    // Slots of counted pools are as many as they are, but nobody speaks for them.
    const Slot* slot = &dice_.any(model().slots).second;
    const auto label_of = [&](const Slot& known) {
        return known.part_of ? part_label(known.part_for) : label_of_slot_.at(known.id);
    };
    for (int i = 0; i < 4 && slot->session == shm::kNoRow; ++i)
        slot = &dice_.any(model().slots).second;
    // Where a claim waits for its workers, mostly go on with it.
    for (const auto& [number, claim] : model().claims) {
        for (const uint64_t id : claim.slots) {
            if (!model().slots.at(id).has_confirmed && dice_.percent(30))
                slot = &model().slots.at(id);
        }
    }
    const Slot* late = dice_.percent(25) ? any_late_slot() : nullptr;
    if (late != nullptr) slot = late;
    // And of one that is promised rather while others of its pool are asked.
    const Slot* promised = promised_slot();
    if (promised != nullptr) {
        const bool others_are_asked = core_->counters(promised->pool).unconfirmed != 0;
        if (others_are_asked && dice_.percent(50)) slot = promised;
        if (!others_are_asked && slot == promised && dice_.percent(70)) return;
    }
    // Leases that last are what can be preempted.
    if (character_.promises && slot->is == SlotIs::kLeased && dice_.percent(85)) return;
    if (slot->session == shm::kNoRow && dice_.percent(95)) return;
    // Only reported: it has no words.
    if (!slot->part_of && !label_of_slot_.contains(slot->id)) return;
    step.subject = label_of(*slot);
    step.session = any_session();
    if (slot->session != shm::kNoRow && dice_.percent(97))
        step.session = label_of_session(slot->session);
    step.word.kind = word_for(*slot);
    step.word.try_again = dice_.percent(55);
    step.word.then_ready = dice_.percent(60);
    step.distance = distance();
    if (dice_.percent(2)) step.subject = dice_.any(label_of_slot_).second;  // perhaps gone
    if (step.word.kind == Word::kRefuse) step.word.code = dice_.one_of<int64_t>({0, 5, -3});
    if (step.word.kind == Word::kConfirm || step.word.kind == Word::kDone) {
        const uint32_t max = journal_.pools[slot->pool].config.answer_max;
        step.answer_size =
            dice_.one_of<uint32_t>({0, 0, max, max / 2, dice_.percent(8) ? max + 1 : 0});
    }
    put(step);
}

// One of each claim's, so that several slots are kept for no claim.
void Writer::refuse_for_now() {
    const std::map<uint64_t, Claim> claims = model().claims;
    for (const auto& [number, claim] : claims) {
        if (claim.slots.empty() || dice_.percent(30)) continue;
        const Slot& slot = model().slots.at(dice_.any(claim.slots));
        if (!label_of_slot_.contains(slot.id) || slot.session == shm::kNoRow) continue;
        Step step;
        step.kind = StepKind::kWord;
        step.subject = label_of_slot_.at(slot.id);
        step.session = label_of_session(slot.session);
        step.word.kind = Word::kRefuse;
        step.word.try_again = true;
        put(step);
    }
}

}  // namespace dibs::naive
