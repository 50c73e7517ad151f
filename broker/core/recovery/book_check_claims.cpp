// broker/core/recovery/book_check_claims.cpp -- checks crowds, accounts and the next crossing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "broker/core/recovery/book_check.hpp"

namespace dibs::core {

using shm::ClaimState;

void BookCheck::crowds() {
    std::vector<uint32_t> of_pool(state_.pools.size());
    std::vector<uint32_t> of_fanout(book_.fanouts.size());
    for (uint32_t place = 0; place < book_.crowds.size(); ++place) {
        const Crowd& known = book_.crowds[place];
        if (!known.in_use) continue;
        of_pool[known.pool] += known.waiting != 0 ? 1 : 0;
        ++of_fanout[known.fanout];
        crowd(place);
    }
    for (uint32_t pool = 0; pool < state_.pools.size(); ++pool) {
        expect(book_.crowds_of_pool[pool].size() == of_pool[pool], [&] {
            return name_of(state_.pools[pool]) + " has another number of crowds that wait";
        });
    }
    for (uint32_t row = 0; row < book_.fanouts.size(); ++row) {
        const Fanout& fanout = book_.fanouts[row];
        expect((fanout.in_use ? fanout.crowds : 0) == of_fanout[row],
               [&] { return "fan-out " + std::to_string(row) + " counts its crowds wrong"; });
    }
    for (uint32_t row = 0; row < state_.claims.size(); ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        const bool is_there = claim.state != ClaimState::kFree && parts_.by_account(claim.pool);
        expect(is_there == (book_.crowd_of_claim[row] != kNoRow),
               [&] { return "claim row " + std::to_string(row) + " is in a crowd and not there"; });
        expect(!is_there || parts_.find_claim(claim.arrival) == row, [&] {
            return "claim " + std::to_string(claim.arrival) + " is not found by its number";
        });
    }
}

void BookCheck::crowd(uint32_t place) {
    const Crowd& known = book_.crowds[place];
    const std::string who = "crowd " + std::to_string(place);
    const std::vector<uint32_t>& waiting = book_.crowds_of_pool[known.pool];
    const bool stands = known.place < waiting.size() && waiting[known.place] == place;
    expect(stands == (known.waiting != 0),
           [&] { return who + " is at another place of its pool"; });
    expect(known.quality == book_.labels.count(known.base),
           [&] { return who + " counts its labels wrong"; });
    for (const uint32_t set : {known.base, known.preferred}) {
        expect(set == kNoRow || state_.label_sets[set].references != 0,
               [&] { return who + " has labels that are forgotten"; });
    }
    const Fanout& fanout = book_.fanouts[known.fanout];
    expect(fanout.in_use && fanout.pool == known.pool && fanout.account == known.account &&
               fanout.labels ==
                   book_.labels.hash_of_union(known.base, known.preferred, parts_.hash_seed),
           [&] { return who + " counts for another fan-out"; });
    if (known.tenant != kNoRow) {
        const Tenant& tenant = book_.tenants[known.tenant];
        expect(tenant.in_use && tenant.pool == known.pool && tenant.account == known.account,
               [&] { return who + " runs for another tenant"; });
    }
    const uint64_t hash =
        numbers_hash(known.pool, known.account, known.base, known.preferred, known.units);
    const uint32_t found =
        book_.crowd_by_key.find(hash, [&](uint32_t row) { return row == place; });
    expect(found == place, [&] { return who + " is not found by its terms"; });
    stalls_of_crowd(known, who);
}

// What has been worked out of a list of stalls that is still the same.
void BookCheck::stalls_of_crowd(const Crowd& known, const std::string& who) {
    if (known.stalls_version != book_.stall_bits[known.pool].version) return;
    uint64_t served = 0;
    uint64_t provisioned = 0;
    const std::vector<uint32_t>& places = book_.stalls_of_pool[known.pool];
    for (size_t place = 0; place < places.size() && place < 64; ++place) {
        const uint32_t set = book_.stalls[places[place]].labels;
        if (!book_.labels.covers(set, known.base)) continue;
        served |= uint64_t{1} << place;
        if (book_.labels.covers(set, known.preferred)) provisioned |= uint64_t{1} << place;
    }
    expect(served == known.served_by && provisioned == known.provisioned_by,
           [&] { return who + " takes another stall for one that serves it"; });
}

void BookCheck::accounts() {
    std::vector<uint8_t> is_changed(state_.accounts.size());
    for (const uint32_t row : book_.changed)
        ++is_changed[row];
    std::vector<uint8_t> is_above(state_.accounts.size());
    for (const uint32_t row : book_.above)
        ++is_above[row];
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        const auto who = [&] { return "account row " + std::to_string(row); };
        expect(is_changed[row] == book_.is_changed[row],
               [&] { return who() + " is marked as changed and not listed"; });
        if (state_.accounts[row].state == 0) continue;
        expect(is_above[row] == book_.above_cap[row],
               [&] { return who() + " is marked as above its cap and not listed"; });
        account(row);
    }
}

void BookCheck::account(uint32_t row) {
    const shm::AccountRow& known = state_.accounts[row];
    const std::string_view name{known.name, known.name_size};
    const std::string who = "account '" + std::string{name} + "'";
    expect(parts_.find_account(name) == row, [&] { return who + " is not found by its name"; });
    bool above = false;
    for (uint32_t p = 0; p < shm::kClasses; ++p) {
        const __int128 cap =
            static_cast<__int128>(known.rate[p]) * (known.charge_max_ns / 1000) / 1'000'000;
        expect(book_.caps[row][p] == cap, [&] { return who + " has another cap"; });
        above = above || (known.rate[p] > 0 && known.running[p] > 0 && known.balance[p] > cap);
    }
    expect(!above || book_.above_cap[row] != 0,
           [&] { return who + " is above its cap and not stepped turn by turn"; });
    limits_of(row, who);
}

// "key", a zero byte, four bytes of limit; one after the other.
void BookCheck::limits_of(uint32_t row, const std::string& who) {
    const shm::AccountRow& known = state_.accounts[row];
    std::string stored(known.label_limits_size, '\0');
    if (!stored.empty()) {
        parts_.arena.copy(known.label_limits,
                          known.label_limits_size,
                          reinterpret_cast<std::byte*>(stored.data()));
    }
    std::string kept;
    for (const LabelLimit& limit : book_.limits[row]) {
        kept += limit.prefix.substr(0, limit.prefix.size() - 1);
        kept += '\0';
        kept.append(reinterpret_cast<const char*>(&limit.limit), sizeof(limit.limit));
    }
    expect(stored == kept, [&] { return who + " is held to other limits"; });
}

namespace {

// Slots with a label that an account holds in a pool.
struct OfLabel {
    uint32_t units = 0;
    uint32_t limit = kNoRow;  // the lowest that it is held to
    bool newcomers = false;   // some of them came under it
};

uint32_t lowest_limit(const std::vector<LabelLimit>& limits, std::string_view label) {
    uint32_t lowest = kNoRow;
    for (const LabelLimit& limit : limits) {
        if (label.starts_with(limit.prefix)) lowest = std::min(lowest, limit.limit);
    }
    return lowest;
}

}  // namespace

// Where it has limits.
void BookCheck::label_units() {
    std::vector<std::unordered_map<uint64_t, OfLabel>> counted(state_.accounts.size());
    for (uint32_t row = 0; row < state_.claims.size(); ++row) {
        const shm::ClaimRow& claim = state_.claims[row];
        if (claim.state == ClaimState::kFree || !parts_.by_account(claim.pool)) continue;
        if (claim.account == kNoRow || book_.limits[claim.account].empty()) continue;
        for (uint32_t slot = parts_.occupied_slot(row); slot != kNoRow;
             slot = parts_.next_occupied(row, slot)) {
            const bool came = book_.held_since[slot] == book_.limits_set[claim.account];
            each_counted_label(
                book_.labels.text(state_.slots[slot].label_set), [&](std::string_view label) {
                    OfLabel& held = counted[claim.account][label_key(claim.pool, label)];
                    if (held.units++ == 0) {
                        held.limit = lowest_limit(book_.limits[claim.account], label);
                    }
                    held.newcomers = held.newcomers || came;
                });
        }
    }
    for (uint32_t row = 0; row < state_.accounts.size(); ++row) {
        bool agree = true;
        uint32_t found = 0;
        for (const auto& [key, units] : book_.label_units[row]) {
            const auto there = counted[row].find(key);
            agree = agree && units == (there == counted[row].end() ? 0 : there->second.units);
            found += units != 0 ? 1 : 0;
        }
        expect(agree && found == counted[row].size(),
               [&] { return "account row " + std::to_string(row) + " counts its labels wrong"; });
        const bool within =
            std::none_of(counted[row].begin(), counted[row].end(), [](const auto& label) {
                return label.second.newcomers && label.second.units > label.second.limit;
            });
        expect(within, [&] {
            return "account row " + std::to_string(row) + " holds more of a label than its limit";
        });
    }
}

// An instant that is remembered is what would be worked out now.
void BookCheck::crossing() {
    if (!book_.crossing_known) return;
    const uint64_t remembered_ns = book_.crossing_ns;
    book_.crossing_known = false;
    const uint64_t crossing_ns = parts_.next_crossing();
    book_.crossing_ns = remembered_ns;
    expect_count(
        &wrongs_,
        [] { return std::string("when a balance changes what may be granted"); },
        crossing_ns,
        remembered_ns);
}

}  // namespace dibs::core
