// tests/naive/gang_pass.cpp -- placeholders take slots, and give them to members.
//
// What names a statement is written from it; what quotes is of docs/scheduling.md.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tests/naive/gangs.hpp"

namespace dibs::naive {

using core::PlaceholderNews;
using shm::AppState;

// "One application of a pool at a time holds a part of its placeholders." S4, settled: up to its
// deadline.
std::optional<uint64_t> half_reserved(const Model& model, uint32_t pool) {
    for (const auto& [number, app] : model.applications) {
        const bool reserves = app.pool == pool && app.state == AppState::kReserving;
        if (reserves && app.placeholders() != 0 && !app.is_whole()) return number;
    }
    return std::nullopt;
}

// "Its asks are served before all else of the pool", of the one that holds a part; and once more in
// their place, where they stay.
void Gangs::serve_half_reserved(uint32_t pool) {
    const std::optional<uint64_t> half = half_reserved(m_, pool);
    if (!half) return;
    for (const Group& group : m_.applications.at(*half).groups)
        if (m_.claims.contains(group.number)) take_placeholders(group.number);
}

// "In the order in which a claim would get them."
std::optional<uint64_t> Gangs::slot_for(const Claim& ask) {
    if (ask.wants_part) return core_.slot_for_part(ask);
    const std::vector<uint64_t> ready = core_.ready_for(ask);
    if (ready.empty()) return std::nullopt;
    return core_.is_elastic(ask.pool) ? ready.back() : ready.front();
}

std::pair<uint64_t, uint32_t> place_in_gang(const Model& model, const Slot& slot) {
    if (!slot.placeholder) return {};
    const PlaceholderName& name = *slot.placeholder;
    return {model.applications.at(name.application).groups.at(name.group).number, name.index};
}

// "It takes as many slots as are idle, up to its units; with none idle it has expired leases
// collected as a claim for one unit does."
void Gangs::take_placeholders(uint64_t number) {
    const std::optional<uint64_t> half = half_reserved(m_, m_.claims.at(number).pool);
    if (half && *half != m_.claims.at(number).application) {
        Application& other = m_.applications.at(*half);
        // "One that has lost its manager gives its part back for it."
        if (other.manager != shm::kNoRow || other.is_unmanaged) return;
        release_all(other, false);
        core_.gave_way_ = true;
    }
    while (m_.claims.contains(number)) {
        Claim& ask = m_.claims.at(number);
        std::optional<uint64_t> slot = slot_for(ask);
        if (!slot) {
            Claim one = ask;
            one.units = 1;
            core_.collect_for(one);
            slot = slot_for(ask);
        }
        if (!slot) return;
        bind(ask, *slot);
    }
}

void Gangs::bind(Claim& ask, uint64_t taken) {
    Application& app = m_.applications.at(ask.application);
    const auto at = std::find_if(app.groups.begin(), app.groups.end(), [&](const Group& group) {
        return group.number == ask.number;
    });
    PlaceholderName name{app.number, static_cast<size_t>(at - app.groups.begin()), 0};
    while (at->placeholders.contains(name.index))
        ++name.index;
    uint64_t id = taken;
    if (ask.wants_part) {
        Slot part = core_.part_from(taken, ask.most);
        part.part_for = ask.number;
        if (part.session != shm::kNoRow) part.round = 1;  // before its worker is asked
        m_.slots[part.id] = part;
        id = part.id;
    }
    Slot& slot = m_.slots.at(id);
    slot.is = SlotIs::kPlaceholder;
    slot.only_waits_for_admission = false;
    slot.placeholder = name;
    at->placeholders[name.index].slot = id;
    tell_placeholder(name, slot, PlaceholderNews::kBound);
    if (--ask.units == 0) m_.claims.erase(ask.number);
}

// "One that wants more than a placeholder has."
bool Gangs::wants_more(const Claim& claim, const Group& group) const {
    if (claim.units != 1 || claim.wants_part == group.resource.empty()) return true;
    for (size_t at = 0; at < group.resource.size(); ++at)
        if (claim.least[at] > group.resource[at]) return true;
    return false;
}

// S4.26. "In a counted pool granted at once, else its worker is asked."
void Gangs::replace(uint64_t number, const PlaceholderName& name) {
    Claim& claim = m_.claims.at(number);
    Application& app = m_.applications.at(name.application);
    Placeholder& placeholder = app.groups.at(name.group).placeholders.at(name.index);
    Slot& slot = m_.slots.at(placeholder.slot);
    claim.is_held_back = false;
    claim.slots = {slot.id};
    slot.part_for = number;
    placeholder.replaced_by = number;
    if (m_.pools.at(claim.pool).config.kind == shm::PoolKind::kCounted) {
        core_.grant(number);
    } else {
        core_.reserve(number);
    }
}

// S4.27: one of a group, while there are placeholders, has one of these or none. True: something
// has changed.
bool Gangs::look_at(Application& app, uint64_t number) {
    if (core_.is_draining(app.pool)) {
        core_.end_claim(number, shm::Outcome::kRejected, shm::Reason::kDraining, 0);
        return true;
    }
    Claim& claim = m_.claims.at(number);
    const std::optional<size_t> of = app.tasks.at(app.task_named(claim.task)->number).group;
    bool changed = false;
    while (of && app.placeholders() != 0) {
        Group& group = app.groups.at(*of);
        if (wants_more(claim, group)) {
            if (!release_group(app, *of, false)) return changed;
            changed = true;
            continue;
        }
        const bool counted = m_.pools.at(app.pool).config.kind == shm::PoolKind::kCounted;
        if (core_.lease_rows_free() == 0 || !(counted || core_.may_ask(app.pool, 1)))
            return changed;
        for (const auto& [index, placeholder] : group.placeholders) {
            if (placeholder.replaced_by != 0 || placeholder.is_away) continue;
            const Slot& slot = m_.slots.at(placeholder.slot);
            const Slot& whole = slot.part_of ? m_.slots.at(*slot.part_of) : slot;
            if (whole.is_protected || whole.is_unqualified || whole.is_draining) continue;
            if (slot.part_of && core_.must_answer(whole.id)) continue;
            replace(number, {app.number, *of, index});
            return true;
        }
        return changed;
    }
    // "As if it had waited there": what its pool has become too small for waits for nothing.
    const core::PoolConfig& pool = m_.pools.at(app.pool).config;
    if (pool.kind == shm::PoolKind::kCounted && claim.units > pool.slots) {
        core_.end_claim(number, shm::Outcome::kRejected, shm::Reason::kTooManyUnits, 0);
    } else {
        claim.is_held_back = false;
    }
    return true;
}

bool Gangs::look_at_held(Application& app) {
    std::vector<std::pair<int64_t, uint64_t>> held;
    for (const auto& [number, task] : app.tasks) {
        if (task.claim == 0 || !m_.claims.at(task.claim).is_held_back) continue;
        held.emplace_back(-int64_t{task.priority}, task.claim);
    }
    std::sort(held.begin(), held.end());
    bool changed = false;
    for (const auto& [order, claim] : held)
        changed = look_at(app, claim) || changed;
    return changed;
}

}  // namespace dibs::naive
