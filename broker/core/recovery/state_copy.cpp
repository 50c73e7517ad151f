// broker/core/recovery/state_copy.cpp -- copies rows in table order, and again when they change.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/recovery/state_copy.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "broker/core/store/arena.hpp"
#include "broker/core/store/row_states.hpp"

namespace dibs::core {

namespace {

using shm::kNoRow;
using shm::Table;

// As they lie in STATE. The log is no part of a state between two turns.
constexpr std::array kCopiedTables = {Table::kCounters,
                                      Table::kPools,
                                      Table::kSessions,
                                      Table::kSlots,
                                      Table::kClaims,
                                      Table::kLeases,
                                      Table::kAccounts,
                                      Table::kLabelSets,
                                      Table::kSlotVectors,
                                      Table::kClaimVectors,
                                      Table::kTypes,
                                      Table::kElastics,
                                      Table::kEntries,
                                      Table::kApps,
                                      Table::kGroups,
                                      Table::kTasks,
                                      Table::kArena};

}  // namespace

StateCopy::StateCopy(std::span<std::byte> from, std::span<std::byte> to) : from_(from), to_(to) {
    assert(to.size() >= from_.head->size);
    next_ = part(0).begin;
}

StateCopy::Part StateCopy::part(size_t at) const {
    assert(at < kCopiedTables.size());
    const Table table = kCopiedTables[at];
    const shm::TablePlace& place = from_.head->table[static_cast<size_t>(table)];
    return {
        place.offset, place.offset + uint64_t{place.rows} * place.row_size, place.row_size, table};
}

void StateCopy::copy(uint64_t offset, uint64_t size) {
    assert(offset <= to_.size() && size <= to_.size() - offset);
    std::memcpy(to_.data() + offset, from_.base + offset, size);
}

bool StateCopy::step(size_t bytes) {
    if (part_ == kCopiedTables.size()) return true;
    if (part_ == 0) copy(0, sizeof(shm::StateHead));
    const Part now = part(part_);
    assert(next_ >= now.begin && next_ <= now.end);
    const uint64_t rows = std::max<uint64_t>(bytes / now.row_size, 1);
    const uint64_t end = std::min(next_ + rows * now.row_size, now.end);
    copy(next_, end - next_);
    next_ = end;
    if (end != now.end) return false;
    if (++part_ == kCopiedTables.size()) return true;
    next_ = part(part_).begin;
    return false;
}

void StateCopy::follow() {
    const uint32_t images = from_.head->log.images.load(std::memory_order_relaxed);
    assert(images <= from_.log_images_max);
    for (uint32_t image = 0; image < images; ++image) {
        const uint64_t offset = from_.log_offsets[image];
        if (offset >= next_ && part_ != kCopiedTables.size()) continue;
        for (size_t at = 0; at <= part_ && at < kCopiedTables.size(); ++at) {
            const Part of = part(at);
            if (offset < of.begin || offset >= of.end) continue;
            copy_row(of, offset - (offset - of.begin) % of.row_size);
            break;
        }
    }
}

// The links of the arena's free list come as rows of its own; the bytes of a chain with its owner.
void StateCopy::copy_row(const Part& of, uint64_t offset) {
    copy(offset, of.row_size);
    const std::byte* row = from_.base + offset;
    switch (of.table) {
        case Table::kPools: {
            const auto* pool = reinterpret_cast<const shm::PoolRow*>(row);
            if ((pool->flags & shm::PoolFlag::kResources) == 0) return;
            return copy_chain(pool->resources, pool->resources_size);
        }
        case Table::kSlots: {
            const auto* slot = reinterpret_cast<const shm::SlotRow*>(row);
            if (slot->state == shm::SlotState::kFree) return;
            return copy_chain(slot->attributes, slot->attributes_size);
        }
        case Table::kClaims: {
            const auto* claim = reinterpret_cast<const shm::ClaimRow*>(row);
            if (claim->state == shm::ClaimState::kFree) return;
            copy_chain(claim->payload, claim->payload_size);
            copy_chain(claim->meta, claim->meta_size);
            if (from_.pools[claim->pool].order != shm::PoolOrder::kAccount) return;
            return copy_chain(claim->carried_cost, sizeof(int64_t) * shm::kClasses);
        }
        case Table::kLeases: {
            const auto* lease = reinterpret_cast<const shm::LeaseRow*>(row);
            if (lease->state == shm::LeaseState::kFree) return;
            return copy_chain(meta_of(*lease).chain, meta_of(*lease).size);
        }
        case Table::kApps: {
            const auto* app = reinterpret_cast<const shm::AppRow*>(row);
            if (app->state == shm::AppState::kFree) return;
            return copy_chain(app->tags, app->tags_size);
        }
        case Table::kAccounts: {
            const auto* account = reinterpret_cast<const shm::AccountRow*>(row);
            if (account->state == 0) return;
            return copy_chain(account->label_limits, account->label_limits_size);
        }
        case Table::kLabelSets: {
            const auto* set = reinterpret_cast<const shm::LabelSetRow*>(row);
            if (set->references == 0) return;
            return copy_chain(set->text, set->text_size);
        }
        default:
            return;
    }
}

void StateCopy::copy_chain(uint32_t first, uint64_t size) {
    for (uint64_t left = Arena::blocks_for(size); left != 0 && first != kNoRow; --left) {
        const shm::ArenaBlock& block = from_.arena[first];
        const auto offset =
            static_cast<uint64_t>(reinterpret_cast<const std::byte*>(&block) - from_.base);
        copy(offset, sizeof(block));
        first = block.next;
    }
}

}  // namespace dibs::core
