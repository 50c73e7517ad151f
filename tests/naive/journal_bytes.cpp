// tests/naive/journal_bytes.cpp -- patterns, and their comparison with the arena.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/journal_bytes.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

namespace dibs::naive {

namespace {

constexpr uint32_t kPeriod = 251;  // prime, so that no block of the arena looks like the next

constexpr auto make_pattern() {
    std::array<uint8_t, shm::kPayloadMax + 1 + kPeriod> pattern = {};
    for (size_t i = 0; i < pattern.size(); ++i)
        pattern[i] = static_cast<uint8_t>(i % kPeriod);
    return pattern;
}
constexpr auto kPattern = make_pattern();

bool chain_holds(const core::Core& core, uint32_t chain, uint32_t size, const void* bytes) {
    std::vector<std::byte> found(size);
    if (size != 0) core.copy_chain(chain, size, found.data());
    return size == 0 || std::memcmp(found.data(), bytes, size) == 0;
}

const Step* step_with(const Journal& journal, StepKind kind, uint64_t label) {
    // Labels are places in the journal as it was generated; a shrunk one is searched below them.
    const auto end = journal.steps.begin() +
                     static_cast<std::ptrdiff_t>(std::min<size_t>(label + 1, journal.steps.size()));
    const auto found = std::find_if(journal.steps.begin(), end, [&](const Step& step) {
        return step.kind == kind && step.label == label;
    });
    return found == end ? nullptr : &*found;
}

}  // namespace

std::span<const uint8_t> payload_of(const Step& step) {
    return std::span(kPattern).subspan(step.label % kPeriod, step.payload_size);
}

std::string attributes_of(const Step& step) {
    const uint32_t size = step.attributes_size;
    if (size < 4) return std::string(size, '\0');
    std::string text = "k=" + std::string(size - 3, static_cast<char>('a' + step.label % 26));
    text.push_back('\0');
    return text;
}

std::string wrong_bytes(const core::Core& core, const Journal& journal) {
    for (uint32_t row = 0; row < core.claims_max(); ++row) {
        const shm::ClaimRow& claim = core.claim(row);
        if (claim.state == shm::ClaimState::kFree || claim.lease != shm::kNoRow) continue;
        if (claim.session == shm::kNoRow) continue;  // an application's ask
        // One that waits again after it was adopted has its adopter's words.
        if (step_with(journal, StepKind::kAdopt, claim.user_data) != nullptr) continue;
        const Step* step = step_with(journal, StepKind::kClaim, claim.user_data);
        if (step == nullptr || claim.payload_size != step->payload_size ||
            !chain_holds(core, claim.payload, claim.payload_size, payload_of(*step).data())) {
            return "payload of claim " + std::to_string(claim.arrival);
        }
    }
    for (uint32_t row = 0; row < core.slots_max(); ++row) {
        const shm::SlotRow& slot = core.slot(row);
        if (slot.state == shm::SlotState::kFree || slot.session == shm::kNoRow) continue;
        if (slot.part_of != shm::kNoRow) continue;
        const Step* step = step_with(journal, StepKind::kAnnounce, slot.worker_tag);
        const std::string expected = step == nullptr ? "" : attributes_of(*step);
        if (step == nullptr || slot.attributes_size != expected.size() ||
            !chain_holds(core, slot.attributes, slot.attributes_size, expected.data())) {
            return "attributes of slot " + std::to_string(slot.number);
        }
    }
    return {};
}

}  // namespace dibs::naive
