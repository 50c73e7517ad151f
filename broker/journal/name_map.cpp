// broker/journal/name_map.cpp -- adds names to the map and learns ids from decisions.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/name_map.hpp"

#include <algorithm>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {
namespace {

template <class NameMap>
void set_at(NameMap& names, uint64_t place, const std::string& name) {
    if (names.size() <= place) names.resize(place + 1);
    names[place] = name;
}

void refuse_empty(const std::string& name) {
    if (name.empty()) throw JournalError("a name is empty");
}

}  // namespace

void NameMap::add_session(const std::string& name, core::SessionId row, uint16_t tags_max) {
    refuse_empty(name);
    const Session* old = find_session(name);
    if (old != nullptr && old->alive) {
        throw JournalError("there is a session " + json_string(name) + " already");
    }
    session_by_name_[name] = sessions_.size();
    sessions_.push_back({.name = name, .row = row, .tags = std::vector<bool>(tags_max)});
    set_at(names_.sessions, row, name);
}

NameMap::Claim& NameMap::add_claim(const std::string& name,
                                   const std::string& session,
                                   core::ClaimNumber number) {
    refuse_empty(name);
    Session& owner = live_session(session);
    if (!claim_by_name_.emplace(name, claims_.size()).second) {
        throw JournalError("there is a claim " + json_string(name) + " already");
    }
    claim_by_number_[number] = claims_.size();
    const uint16_t tag = lowest_free_tag(owner);
    if (tag < owner.tags.size()) owner.tags[tag] = true;
    claims_.push_back({.name = name,
                       .number = number,
                       .session = session_by_name_.at(session),
                       .tag = tag,
                       .holds_tag = tag < owner.tags.size()});
    set_at(names_.claims, number, name);
    return claims_.back();
}

NameMap::Slot& NameMap::add_slot(const std::string& name, const std::string& session) {
    refuse_empty(name);
    Slot& slot = slots_[name];
    slot.name = name;
    slot.session = session;
    return slot;
}

NameMap::Session& NameMap::session_there(const std::string& name) {
    const auto found = session_by_name_.find(name);
    if (found == session_by_name_.end()) {
        throw JournalError("there is no session " + json_string(name));
    }
    Session& session = sessions_[found->second];
    if (!session.alive) throw JournalError("the session " + json_string(name) + " has died");
    return session;
}

NameMap::Session& NameMap::live_session(const std::string& name) {
    Session& session = session_there(name);
    if (!session.outlived) return session;
    throw JournalError("the holder of session " + json_string(name) + " has died");
}

core::SessionId NameMap::session_died(const std::string& name) {
    Session& session = session_there(name);
    session.alive = false;
    return session.row;
}

core::SessionId NameMap::holder_died(const std::string& name) {
    Session& session = live_session(name);
    session.outlived = true;
    return session.row;
}

const NameMap::Claim& NameMap::claim(const std::string& name) const {
    const Claim* found = find_claim(name);
    if (found == nullptr) throw JournalError("there is no claim " + json_string(name));
    return *found;
}

const NameMap::Slot& NameMap::slot(const std::string& name) const {
    const Slot* found = find_slot(name);
    if (found == nullptr) throw JournalError("there is no slot " + json_string(name));
    return *found;
}

const NameMap::Claim* NameMap::find_claim(const std::string& name) const {
    const auto found = claim_by_name_.find(name);
    return found == claim_by_name_.end() ? nullptr : &claims_[found->second];
}

const NameMap::Slot* NameMap::find_slot(const std::string& name) const {
    const auto found = slots_.find(name);
    return found == slots_.end() ? nullptr : &found->second;
}

const NameMap::Session* NameMap::find_session(const std::string& name) const {
    const auto found = session_by_name_.find(name);
    return found == session_by_name_.end() ? nullptr : &sessions_[found->second];
}

uint16_t NameMap::lowest_free_tag(const Session& session) {
    const auto free = std::find(session.tags.begin(), session.tags.end(), false);
    return static_cast<uint16_t>(free - session.tags.begin());
}

uint16_t NameMap::tag_of(const Claim& claim) const {
    return claim.holds_tag ? claim.tag : lowest_free_tag(sessions_[claim.session]);
}

uint64_t NameMap::add_operation(Operation operation) {
    names_.operations.push_back(std::move(operation));
    return names_.operations.size() - 1;
}

void NameMap::name_pool(core::PoolId row, const std::string& name) {
    set_at(names_.pools, row, name);
}

void NameMap::name_account(core::AccountId row, const std::string& name) {
    set_at(names_.accounts, row, name);
}

void NameMap::name_type(core::TypeId row, const std::string& name) {
    set_at(names_.types, row, name);
}

void NameMap::learn_worker(const std::string& name,
                           core::PoolId pool,
                           uint32_t number,
                           core::SlotId id) {
    Slot& slot = slots_[name];
    slot.name = name;
    slot.id = id;
    slot_by_id_[id] = name;
    names_.slots[{pool, number}] = name;
}

void NameMap::free_tag(Claim& claim) {
    if (!claim.holds_tag) return;
    claim.holds_tag = false;
    sessions_[claim.session].tags[claim.tag] = false;
}

NameMap::Claim* NameMap::claim_of(const core::Decision& decision) {
    const auto found = claim_by_number_.find(decision.claim);
    return found == claim_by_number_.end() ? nullptr : &claims_[found->second];
}

void NameMap::learn(const core::Decision& decision) {
    using core::DecisionKind;
    Claim* claim = claim_of(decision);
    switch (decision.kind) {
        case DecisionKind::kResult:
            learn_result(decision);
            break;
        case DecisionKind::kAnnounced: {
            Slot& slot = slots_[names_.operations.at(decision.user_data).name];
            slot.id = decision.id;
            if (const auto order = slot_by_id_.find(decision.id); order != slot_by_id_.end()) {
                slot.provisioner = slots_[order->second].provisioner;
            }
            slot_by_id_[decision.id] = slot.name;
            names_.slots[{decision.pool, decision.slot_number}] = slot.name;
            break;
        }
        case DecisionKind::kCreate:
            add_order(decision);
            break;
        case DecisionKind::kAssign:
            if (const auto slot = slot_by_id_.find(decision.id); slot != slot_by_id_.end()) {
                slots_[slot->second].round = decision.round;
            } else if (claim != nullptr) {
                add_part(decision);
            }
            break;
        case DecisionKind::kGrant:
            if (claim == nullptr || decision.part != 0) break;
            claim->lease = decision.id;
            claim->fence = decision.fence;
            break;
        case DecisionKind::kAdopted:
            if (claim != nullptr && decision.part == 0) move_claim(decision);
            break;
        case DecisionKind::kEnd:
        case DecisionKind::kLeaseEnd:
            // What was adopted is another session's by now; what waits again keeps its tag.
            if (claim != nullptr && decision.reason != shm::Reason::kAdopted &&
                (decision.kind == DecisionKind::kEnd || decision.value == 0)) {
                free_tag(*claim);
            }
            break;
        default:
            break;
    }
}

// Named by its type and its number, until its worker announces it by another name.
void NameMap::add_order(const core::Decision& created) {
    const std::string name = names_.type(created.type) + "/" + std::to_string(created.slot_number);
    Slot& order = add_slot(name, {});
    order.id = created.id;
    order.provisioner = names_.session(created.session);
    slot_by_id_[created.id] = name;
    names_.slots[{created.pool, created.slot_number}] = name;
}

// Named by its slot and the claim that it is reserved for first.
void NameMap::add_part(const core::Decision& assigned) {
    const auto whole = names_.slots.find({assigned.pool, assigned.slot_number});
    if (whole == names_.slots.end()) return;
    const std::string name = whole->second + "/" + claim_of(assigned)->name;
    Slot& part = add_slot(name, slots_[whole->second].session);
    part.id = assigned.id;
    part.round = assigned.round;
    slot_by_id_[assigned.id] = name;
}

void NameMap::move_claim(const core::Decision& adopted) {
    Claim& claim = *claim_of(adopted);
    free_tag(claim);
    claim.session = session_by_name_.at(names_.session(adopted.session));
    claim.tag = adopted.tag;
    claim.holds_tag = true;
    sessions_[claim.session].tags[claim.tag] = true;
}

// A lease that its holder ends is reported by the result only.
void NameMap::learn_result(const core::Decision& decision) {
    if (decision.reason != shm::Reason::kOk) return;
    const Operation& operation = names_.operations.at(decision.user_data);
    if (operation.subject != "claim") return;
    if (operation.word != "release" && operation.word != "fail" && operation.word != "cancel") {
        return;
    }
    free_tag(claims_[claim_by_name_.at(operation.name)]);
}

}  // namespace dibs::ctl
