// tests/fuzz/state.cpp -- a STATE whose bytes are not what a broker left: it is refused with a
// sentence, or it holds and can be served from.
//
// The base is the STATE of a random conversation of some three hundred turns. The input overwrites
// pieces of it: each begins with the table that is meant, a row, a place in the row, a size.
// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/crash/workload.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

namespace core = dibs::core;
namespace shm = dibs::shm;
using dibs::fuzz::Bytes;
using dibs::fuzz::expect;

constexpr core::Limits kLimits = {
    .pools = 9, .sessions = 6, .slots = 48, .claims = 20, .leases = 16, .arena_blocks = 48};

struct alignas(64) Line {
    std::byte bytes[64];
};

class Memory {
  public:
    Memory() : lines_(core::state_size(kLimits) / sizeof(Line)) {}
    std::span<std::byte> bytes() {
        return {reinterpret_cast<std::byte*>(lines_.data()), lines_.size() * sizeof(Line)};
    }

  private:
    std::vector<Line> lines_;
};

// A busy broker's, in the middle of a turn.
std::unique_ptr<Memory> make_base() {
    auto memory = std::make_unique<Memory>();
    core::format_state(memory->bytes(), kLimits);
    core::Core broker{memory->bytes()};
    dibs::tests::Workload workload{broker, 3};
    workload.set_up();
    expect(broker.find_pool("vault") != shm::kNoRow, "there is room for every pool");
    for (int turn = 0;; ++turn) {
        broker.begin_turn(workload.next_time());
        for (int i = 0; i < 4; ++i) {
            const auto drawn = workload.below(dibs::tests::kOperations);
            const auto operation = static_cast<dibs::tests::Operation>(drawn);
            if (operation == dibs::tests::Operation::kDrainAll) continue;
            (void)workload.apply(operation);
        }
        broker.decide();
        if (turn >= 300) break;
        broker.commit();
        broker.clear();
    }
    return memory;
}

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

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static const std::unique_ptr<Memory> base = make_base();
    static Memory memory;
    const std::span<std::byte> state = memory.bytes();
    std::memcpy(state.data(), base->bytes().data(), state.size());
    Bytes input(bytes, size);
    std::vector<std::pair<std::byte*, std::span<const uint8_t>>> pieces;
    while (!input.empty()) {
        size_t room = 0;
        std::byte* place = place_of(state, input, &room);
        const auto raw = input.take(input.take<uint8_t>() % 65U);
        pieces.emplace_back(place, raw.first(std::min(raw.size(), room)));
    }
    for (const auto& [place, raw] : pieces)
        std::memcpy(place, raw.data(), raw.size());
    if (!core::state_refusal(state).empty() || !core::rows_refusal(state).empty()) return 0;
    core::Core broker{state};
    if (!broker.check_all().empty()) return 0;
    // It holds: it can be served from.
    do {
        broker.begin_turn(broker.now() + 1);
        broker.decide();
        broker.commit();
        broker.clear();
    } while (broker.work_left());
    expect(broker.check_all().empty(), "a turn leaves good what was good");
    return 0;
}
