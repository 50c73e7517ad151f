// tests/fuzz/state.cpp -- a STATE whose bytes are not what a broker left: it is refused with a
// sentence, or it holds and can be served from.
//
// The first byte says which base (bases.hpp). What follows overwrites pieces of it: each begins
// with the table that is meant, a row, a place in the row, a size.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/fuzz/bases.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

namespace core = dibs::core;
namespace shm = dibs::shm;
using dibs::fuzz::Bytes;

std::byte* place_of(std::span<std::byte> state, Bytes& input, size_t* room) {
    const auto which = input.take<uint8_t>() % 20U;
    const auto row = input.take<uint8_t>();
    const auto at = input.take<uint8_t>();
    const auto* head = reinterpret_cast<const shm::StateHead*>(state.data());
    if (which >= static_cast<unsigned>(shm::Table::kCount)) {  // the head
        const size_t place = at % sizeof(shm::StateHead);
        *room = sizeof(shm::StateHead) - place;
        return state.data() + place;
    }
    const shm::TablePlace& table = head->table[which];
    const uint64_t offset =
        table.offset + uint64_t{row % table.rows} * table.row_size + at % table.row_size;
    *room = state.size() - offset;
    return state.data() + offset;
}

// Whether one look after the other says the same of a STATE as all of them on one way through it.
bool agree(std::span<std::byte> state, bool attached, const core::Core::Refusal& refusal) {
    if (!core::rows_refusal(state).empty()) return !attached && !refusal.unsound.empty();
    if (!refusal.unsound.empty()) return false;
    const bool holds = core::Core{state}.check_all().empty();
    return attached == holds && refusal.wrong.empty() == holds;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static const std::vector<shm::Lines> bases = [] {
        std::vector<shm::Lines> made;
        for (size_t base = 0; base < dibs::fuzz::kBases; ++base)
            made.push_back(dibs::fuzz::make_base(base, true));
        return made;
    }();
    static shm::Lines memory;
    Bytes input(bytes, size);
    const auto which = input.take<uint8_t>();
    memory = bases[which % dibs::fuzz::kBases];
    const std::span<std::byte> state = memory.bytes();
    std::vector<std::pair<std::byte*, std::span<const uint8_t>>> pieces;
    while (!input.empty()) {
        size_t room = 0;
        std::byte* place = place_of(state, input, &room);
        const auto raw = input.take(input.take<uint8_t>() % 65U);
        pieces.emplace_back(place, raw.first(std::min(raw.size(), room)));
    }
    for (const auto& [place, raw] : pieces)
        std::memcpy(place, raw.data(), raw.size());
    if (!core::state_refusal(state).empty()) return 0;
    static shm::Lines same;
    same = memory;
    core::Core::Refusal refusal;
    constexpr std::array<uint32_t, 3> kRowsAtOnce = {1, 3, core::Core::kRowsAtOnce};
    const auto broker =
        core::Core::attach(same.bytes(), 0, &refusal, kRowsAtOnce[which / dibs::fuzz::kBases % 3]);
    if (!agree(state, broker != nullptr, refusal)) std::abort();
    if (broker == nullptr) return 0;
    ++dibs::fuzz::understood;
    if (!dibs::fuzz::serves(*broker)) std::abort();
    return 0;
}
