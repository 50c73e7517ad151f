// tests/sim/auditor_limits.cpp -- fan-out and label limits, counted from the rows.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/auditor.hpp"

namespace dibs::sim {

using shm::kNoRow;

// For whom its account's limits count it: it runs, confirms, or is promised a slot.
bool Auditor::counts(uint32_t row) const {
    const shm::ClaimRow& claim = core_->claim(row);
    switch (claim.state) {
        case shm::ClaimState::kReserved:
        case shm::ClaimState::kPromised:
            return true;
        case shm::ClaimState::kRunning:
            return (core_->lease(claim.lease).flags & shm::LeaseFlag::kTaken) == 0;
        default:
            return false;
    }
}

// Each ended by a zero byte, as they stand in STATE.
std::string Auditor::labels_in(uint32_t set) const {
    if (set == kNoRow) return {};
    const shm::StateHead& head = core_->head();
    const shm::TablePlace& place = head.table[static_cast<size_t>(shm::Table::kLabelSets)];
    const auto* rows = reinterpret_cast<const shm::LabelSetRow*>(
        reinterpret_cast<const std::byte*>(&head) + place.offset);
    std::string text(rows[set].text_size, '\0');
    core_->copy_chain(
        rows[set].text, rows[set].text_size, reinterpret_cast<std::byte*>(text.data()));
    return text;
}

// Those that it must have and those that it prefers, each once, in their order.
std::string Auditor::labels_of(const shm::ClaimRow& claim) const {
    std::set<std::string> labels;
    for (const uint32_t set : {claim.label_set, claim.preferred_set}) {
        const std::string text = labels_in(set);
        for (size_t at = 0; at < text.size(); at = text.find('\0', at) + 1)
            labels.insert(text.c_str() + at);
    }
    std::string all;
    for (const std::string& label : labels)
        all += label + '\0';
    return all;
}

// Claims whose labels are the same hold no more than fanout_max, but for what they held before
// that.
void Auditor::count_crowds() {
    std::map<Crowd, Held> crowds;
    std::map<Crowd, uint32_t> limits;
    promised_.clear();
    for (uint32_t row = 0; row < core_->claims_max(); ++row) {
        const shm::ClaimRow& claim = core_->claim(row);
        if (claim.state == shm::ClaimState::kFree || claim.account == kNoRow) continue;
        if (core_->pool(claim.pool).order != shm::PoolOrder::kAccount || !counts(row)) continue;
        if (claim.state == shm::ClaimState::kPromised) promised_[claim.first_slot] = row;
        if (claim.account_class >= shm::kClasses) continue;
        const Crowd crowd{name_of(claim.account), claim.pool, labels_of(claim)};
        crowds[crowd].units += claim.units;
        crowds[crowd].claims.insert(claim.arrival);
        crowds[crowd].sets.insert({claim.label_set, claim.preferred_set});
        limits[crowd] = is_configured(claim.account) ? core_->account(claim.account).fanout_max : 0;
    }
    for (const auto& [crowd, held] : crowds) {
        if (limits[crowd] != 0 && held.sets.size() > 1) ++seen_["a fan-out of several sets"];
        if (limits[crowd] == 0 || held.units <= limits[crowd]) continue;
        ++seen_["above a limit of later"];
        const std::set<uint64_t>& before = crowds_[crowd].claims;
        expect(std::includes(before.begin(), before.end(), held.claims.begin(), held.claims.end()),
               "account " + std::get<0>(crowd) + " holds " + std::to_string(held.units) +
                   " slots in pool " + std::to_string(std::get<1>(crowd)) + ", some of them anew");
    }
    crowds_ = std::move(crowds);
}

// The claim that the slot counts for, or kNoRow.
uint32_t Auditor::claim_on(uint32_t row) const {
    if (const auto promised = promised_.find(row); promised != promised_.end()) {
        return promised->second;
    }
    const shm::SlotRow& slot = core_->slot(row);
    if (slot.state == shm::SlotState::kReserved) {
        return slot.holder;
    }
    if (slot.state != shm::SlotState::kLeased) return kNoRow;
    const uint32_t claim = core_->find_claim(core_->lease(slot.holder).arrival);
    return claim != kNoRow && counts(claim) ? claim : kNoRow;
}

// Slots of an account with a label are no more than its limit, but for what it held before that; a
// worker may also come to say other labels of a slot that is somebody's already.
void Auditor::count_labels() {
    std::map<Label, std::set<Place>> labels;
    std::set<Place> all;
    std::map<uint32_t, std::vector<std::pair<std::string, uint32_t>>> limits;  // by account
    std::map<Label, uint32_t> limit_of;
    for (uint32_t row = 0; row < core_->slots_max(); ++row) {
        const shm::SlotRow& slot = core_->slot(row);
        if (slot.state == shm::SlotState::kFree) continue;
        if (core_->pool(slot.pool).order != shm::PoolOrder::kAccount) continue;
        const uint32_t claim = claim_on(row);
        if (claim == kNoRow || core_->claim(claim).account == kNoRow) continue;
        all.insert({core_->claim(claim).arrival, slot.number});
        if (slot.label_set == kNoRow) continue;
        const uint32_t account = core_->claim(claim).account;
        if (!limits.contains(account)) {
            if (is_configured(account)) {
                limits[account] = core_->label_limits(account);
            } else {
                limits[account].clear();
            }
        }
        std::string_view rest = core_->slot_labels(row);
        while (!rest.empty()) {
            const std::string label(rest.substr(0, rest.find('\0')));
            rest.remove_prefix(std::min(rest.size(), label.size() + 1));
            const Label place{name_of(account), slot.pool, label};
            labels[place].insert({core_->claim(claim).arrival, slot.number});
            for (const auto& [key, limit] : limits[account]) {
                if (label.starts_with(key + ":")) limit_of[place] = limit;
            }
        }
    }
    for (const auto& [label, places] : labels) {
        const auto limit = limit_of.find(label);
        if (limit == limit_of.end() || places.size() <= limit->second) continue;
        ++seen_["above a limit of later"];
        for (const Place& place : places) {
            if (!labels_[label].contains(place) && places_.contains(place))
                ++seen_["labelled anew"];
        }
        expect(std::includes(places_.begin(), places_.end(), places.begin(), places.end()),
               "account " + std::get<0>(label) + " holds " + std::to_string(places.size()) +
                   " slots with label " + std::get<2>(label) + ", some of them anew");
    }
    labels_ = std::move(labels);
    places_ = std::move(all);
}

}  // namespace dibs::sim
