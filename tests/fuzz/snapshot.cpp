// tests/fuzz/snapshot.cpp -- a snapshot whose bytes nobody wrote: it is refused with a sentence, or
// what it makes can be served from, and is dumped as the same bytes again and again.
//
// The base is the snapshot of a random conversation of some three hundred turns. The input
// overwrites pieces of it, each behind its place and size; behind the last, it may cut it short.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/snapshot/load.hpp"
#include "tests/crash/workload.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

namespace core = dibs::core;
namespace snapshot = dibs::snapshot;
using dibs::fuzz::Bytes;
using dibs::fuzz::expect;

constexpr core::Limits kLimits = {.pools = 9,
                                  .sessions = 6,
                                  .slots = 48,
                                  .claims = 20,
                                  .leases = 16,
                                  .arena_blocks = 48,
                                  .accounts = 8,
                                  .label_sets = 8};
// What a hostile table size may cost here.
constexpr uint64_t kStateMax = 16 << 20;

struct alignas(64) Line {
    std::byte bytes[64];
};
using Memory = std::vector<Line>;

std::span<std::byte> bytes_of(Memory& memory) {
    return {memory.front().bytes, memory.size() * sizeof(Line)};
}

std::vector<uint8_t> make_base() {
    Memory memory(core::state_size(kLimits) / sizeof(Line));
    core::format_state(bytes_of(memory), kLimits);
    core::Core broker{bytes_of(memory)};
    dibs::tests::Workload workload{broker, 3};
    workload.set_up();
    expect(broker.find_pool("vault") != dibs::shm::kNoRow, "there is room for every pool");
    for (int turn = 0; turn < 300; ++turn) {
        broker.begin_turn(workload.next_time());
        for (int i = 0; i < 4; ++i) {
            const auto drawn = workload.below(dibs::tests::kOperations);
            (void)workload.apply(static_cast<dibs::tests::Operation>(drawn));
        }
        broker.decide();
        broker.commit();
        broker.clear();
    }
    return snapshot::dump(bytes_of(memory));
}

std::vector<uint8_t> edited(const std::vector<uint8_t>& base, Bytes input) {
    std::vector<uint8_t> bytes = base;
    while (!input.empty()) {
        const size_t place = input.take<uint16_t>() % bytes.size();
        const auto size = input.take<uint8_t>();
        if (size == 255) {
            bytes.resize(place);
            return bytes;
        }
        const auto raw = input.take(size % 9U);
        std::copy_n(raw.begin(),
                    std::min(raw.size(), bytes.size() - place),
                    bytes.begin() + static_cast<ptrdiff_t>(place));
    }
    return bytes;
}

void serve_from(Memory& memory) {
    core::Core broker{bytes_of(memory)};
    if (!broker.check_all().empty()) return;
    const std::vector<uint8_t> dumped = snapshot::dump(bytes_of(memory));
    Memory again(memory.size());
    snapshot::Loader(dumped).fill(bytes_of(again));
    expect(snapshot::dump(bytes_of(again)) == dumped, "a load gives back what was dumped");
    do {
        broker.begin_turn(broker.now() + 1);
        broker.decide();
        broker.commit();
        broker.clear();
    } while (broker.work_left());
    expect(broker.check_all().empty(), "a turn leaves good what was good");
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static const std::vector<uint8_t> base = make_base();
    const std::vector<uint8_t> input = edited(base, Bytes(bytes, size));
    try {
        const snapshot::Loader loader(input);
        const uint64_t state_size = core::state_size(loader.limits());
        if (state_size > kStateMax) return 0;
        Memory memory((state_size + sizeof(Line) - 1) / sizeof(Line));
        loader.fill(bytes_of(memory));
        serve_from(memory);
    } catch (const snapshot::SnapshotError& error) {
        expect(error.what()[0] != '\0', "a refusal says why");
    }
    return 0;
}
