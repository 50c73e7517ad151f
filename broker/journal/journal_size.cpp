// broker/journal/journal_size.cpp -- counts a journal's rows before it runs.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/journal_size.hpp"

#include <algorithm>

#include "broker/config/quantity.hpp"
#include "broker/journal/journal_error.hpp"
#include "schemas/journal_generated.h"

namespace dibs::ctl {
namespace {

constexpr uint32_t kArenaBlockBytes = 508;
constexpr uint32_t kLogImages = 65536;  // so that a turn may hold thousands of commands
constexpr uint32_t kLogStores = 1024;
constexpr uint32_t kLabelSetsMax = 4096;  // every pair of them is a byte of memory
constexpr uint32_t kLabelSetBlocks = 1;

void add(uint32_t& rows, uint64_t more) {
    rows = static_cast<uint32_t>(std::min(rows + more, uint64_t{shm::kNoRow}));
}

// Routed, too; or null.
const journal::Claim* claim_of(const journal::Line& line) {
    return line.route() != nullptr ? line.route()->claim() : line.claim();
}

// Sets and account names that the line may bring.
void count_labels(core::Limits& needed, const journal::Line& line) {
    const bool claims = claim_of(line) != nullptr || line.update_claim() != nullptr;
    const bool workers = line.announce() != nullptr || line.report() != nullptr;
    uint32_t sets = claims ? 2 : workers ? 1 : 0;
    if (line.pull() != nullptr) sets = line.pull()->workers()->size();
    needed.label_sets = std::min(needed.label_sets + sets, kLabelSetsMax);
    add(needed.arena_blocks, sets * kLabelSetBlocks);
    if (claims || line.session() != nullptr) add(needed.accounts, 1);
    if (claim_of(line) != nullptr) add(needed.arena_blocks, 1);  // its cost, if it preempts
}

using Groups = flatbuffers::Vector<flatbuffers::Offset<journal::TaskGroup>>;

// Parts that their placeholders may be.
uint64_t slots_of(const Groups* groups) {
    uint64_t slots = 0;
    if (groups == nullptr) return slots;
    for (const journal::TaskGroup* group : *groups)
        slots += group->resource() == nullptr ? 0 : std::min(group->members(), shm::kGangMax);
    return slots;
}

// A group asks with a claim of its own; a task may come with its claim.
void count_gangs(core::Limits& needed, const journal::Line& line) {
    if (line.application() != nullptr) {
        const auto* groups = line.application()->groups();
        add(needed.applications, 1);
        add(needed.groups, groups == nullptr ? 0 : groups->size());
        add(needed.claims, groups == nullptr ? 0 : groups->size());
        add(needed.slots, slots_of(groups));
    }
    const bool has_member = claim_of(line) != nullptr && claim_of(line)->member() != nullptr;
    if (has_member || line.application_event() != nullptr) add(needed.tasks, 1);
}

void count(core::Limits& needed, const journal::Line& line, size_t size) {
    if (line.pool() != nullptr) {
        add(needed.pools, 1);
        add(needed.slots, uint64_t{line.pool()->slots()} + line.pool()->workers_max());
    }
    if (line.session() != nullptr) add(needed.sessions, 1);
    if (line.type() != nullptr) add(needed.types, 1);
    const bool brings_entry = line.process() != nullptr || line.update_claim() != nullptr;
    if (brings_entry) add(needed.entries, 1);
    if (line.announce() != nullptr || line.report() != nullptr) add(needed.slots, 1);
    if (line.pull() != nullptr) add(needed.slots, line.pull()->workers()->size());
    if (line.account() != nullptr) add(needed.accounts, 1);
    count_labels(needed, line);
    if (const journal::Claim* claim = claim_of(line); claim != nullptr) {
        const uint32_t pools = claim->also() == nullptr ? 1 : claim->also()->size() + 1;
        add(needed.claims, pools);
        add(needed.leases, pools);
        if (claim->min() != nullptr) add(needed.slots, 1);  // its part
        add(needed.arena_blocks, claim->payload_size().value_or(0) / kArenaBlockBytes);
    }
    count_gangs(needed, line);
    add(needed.arena_blocks, size / kArenaBlockBytes + 1);
    if (line.pool() != nullptr && line.pool()->slot_attributes() != nullptr) {
        add(needed.arena_blocks, line.pool()->slot_attributes()->size());
    }
}

void replace(uint32_t& needed, uint32_t given) {
    if (given != 0) needed = given;
}

// What the journal needs, or says that it needs.
core::Limits merged(core::Limits needed, const core::Limits& given) {
    needed.pools = std::min(needed.pools, shm::kPoolsMax);
    replace(needed.pools, given.pools);
    replace(needed.sessions, given.sessions);
    replace(needed.slots, given.slots);
    replace(needed.claims, given.claims);
    replace(needed.leases, given.leases);
    replace(needed.arena_blocks, given.arena_blocks);
    replace(needed.entries, given.entries);
    replace(needed.applications, given.applications);
    replace(needed.groups, given.groups);
    replace(needed.tasks, given.tasks);
    return needed;
}

}  // namespace

std::string more_than(uint64_t memory_max, uint64_t needed) {
    constexpr uint64_t kMiB = 1U << 20;
    return show_size((needed + kMiB - 1) / kMiB * kMiB) + " of rows, more than " +
           show_size(memory_max) + ": --memory-max SIZE allows more";
}

core::Limits limits_of(JournalReader& journal, uint64_t memory_max) {
    core::Limits needed{.pools = 1,
                        .sessions = 1,
                        .slots = 1,
                        .claims = 1,
                        .leases = 1,
                        .arena_blocks = 1,
                        .log_images = kLogImages,
                        .log_stores = kLogStores,
                        .accounts = 1,
                        .label_sets = 1,
                        .types = 1,
                        .entries = 1,
                        .applications = 1,
                        .groups = 1,
                        .tasks = 1};
    core::Limits given{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    uint32_t too_many = 0;  // the first line that is one too many
    uint64_t size = 0;
    try {
        while (const journal::Line* line = journal.next()) {
            if (line->state() != nullptr) break;  // it brings its own limits
            count(needed, *line, journal.buffer().size());
            if (line->limits() != nullptr) {
                given.pools = line->limits()->pools();
                given.sessions = line->limits()->sessions();
                given.slots = line->limits()->slots();
                given.claims = line->limits()->claims();
                given.leases = line->limits()->leases();
                given.arena_blocks = line->limits()->arena_blocks();
                given.entries = line->limits()->entries();
                given.applications = line->limits()->applications();
                given.groups = line->limits()->groups();
                given.tasks = line->limits()->tasks();
            }
            size = core::state_size(merged(needed, given));
            if (size <= memory_max) continue;
            too_many = journal.line();
            break;
        }
    } catch (const JournalError&) {
        // The error is reported when that line is replayed.
    }
    journal.rewind();
    if (too_many != 0) {
        while (journal.line() != too_many)
            journal.next();  // so that the message has its line
        throw JournalError("with this line the journal needs " + more_than(memory_max, size));
    }
    return merged(needed, given);
}

}  // namespace dibs::ctl
