// tests/fuzz/snapshot.cpp -- a snapshot whose bytes nobody wrote: it is refused with a sentence, or
// what it makes can be served from, and is dumped as the same bytes again and again.
//
// The first byte says of which base (bases.hpp) it is, and how often all is checked that is served.
// What follows overwrites pieces of it, each behind its place and size; behind the last, it may cut
// it short.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/snapshot/load.hpp"
#include "tests/fuzz/bases.hpp"
#include "tests/fuzz/bytes.hpp"
#include "tests/fuzz/put_back.hpp"

namespace {

namespace core = dibs::core;
namespace snapshot = dibs::snapshot;
using dibs::fuzz::Bytes;
using dibs::fuzz::expect;
using dibs::shm::Lines;

// What a hostile table size may cost here.
constexpr uint64_t kStateMax = 16 << 20;

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

// Zeroed memory for a STATE: what an earlier one of its size was made in, where there was one.
class Memory {
  public:
    std::span<std::byte> zeroed(uint64_t size) {
        if (lines_.bytes().size() != size) {
            lines_ = Lines(size);
        } else {
            dibs::fuzz::put_back(lines_.bytes());
        }
        return lines_.bytes();
    }

  private:
    Lines lines_;
};

void serve_from(std::span<std::byte> state, bool each) {
    core::Core broker{state};
    if (!broker.check_all().empty()) return;
    const std::vector<uint8_t> dumped = snapshot::dump(state);
    static Memory memory;
    const std::span<std::byte> again = memory.zeroed(state.size());
    snapshot::Loader(dumped).fill(again);
    expect(snapshot::dump(again) == dumped, "a load gives back what was dumped");
    dibs::fuzz::serve(broker, each);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static const std::vector<std::vector<uint8_t>> bases = [] {
        std::vector<std::vector<uint8_t>> made;
        for (size_t base = 0; base < dibs::fuzz::kBases; ++base) {
            Lines left = dibs::fuzz::make_base(base, false);
            made.push_back(snapshot::dump(left.bytes()));
        }
        return made;
    }();
    Bytes asked(bytes, size);
    const auto which = asked.take<uint8_t>();
    const std::vector<uint8_t>& base = bases[which % bases.size()];
    const std::vector<uint8_t> input = edited(base, asked);
    try {
        const snapshot::Loader loader(input);
        const uint64_t state_size = core::state_size(loader.limits());
        if (state_size > kStateMax) return 0;
        static Memory memory;
        const std::span<std::byte> state = memory.zeroed(state_size);
        loader.fill(state);
        ++dibs::fuzz::understood;
        serve_from(state, which / bases.size() % 4 == 0);
    } catch (const snapshot::SnapshotError& error) {
        expect(error.what()[0] != '\0', "a refusal says why");
    }
    return 0;
}
