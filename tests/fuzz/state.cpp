// tests/fuzz/state.cpp -- a STATE whose bytes are not what a broker left: it is refused with a
// sentence, or it holds and can be served from.
//
// The first byte says which base (bases.hpp), how many rows are attached to at once, and how often
// all is checked that is served. What follows overwrites pieces of it: each begins with the table
// that is meant, a row, a place in the row, a size.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "broker/core/core.hpp"
#include "tests/fuzz/bases.hpp"
#include "tests/fuzz/bytes.hpp"
#include "tests/fuzz/put_back.hpp"

namespace {

namespace core = dibs::core;
namespace shm = dibs::shm;
using dibs::fuzz::Bytes;

struct Piece {
    size_t place;
    std::span<const uint8_t> raw;
};

// One of the bases, and what an input has made of it.
class Changed {
  public:
    explicit Changed(const shm::Lines& base) : base_(base), memory_(base) {}

    // Without what an earlier input has done.
    std::span<std::byte> with(const std::vector<Piece>& pieces) {
        put_back();
        for (const Piece& piece : pieces) {
            std::memcpy(memory_.bytes().data() + piece.place, piece.raw.data(), piece.raw.size());
            written_.emplace_back(piece.place, piece.raw.size());
        }
        return memory_.bytes();
    }

  private:
    void put_back() {
        // In every 4096th place it is made sure that this is all.
        const bool looked = ++times_ % 4096 == 0;
        // Where the tables were told to lie elsewhere, a core has written anywhere.
        const bool all = moved() && core::state_refusal(memory_.bytes()).empty();
        const std::span<const std::byte> base = base_.bytes();
        if (all) {
            memory_ = base_;
        } else {
            dibs::fuzz::put_back(memory_.bytes(), base);
            for (const auto& [place, size] : written_)
                std::memcpy(memory_.bytes().data() + place, base.data() + place, size);
        }
        written_.clear();
        if (looked) {
            dibs::fuzz::expect(std::memcmp(memory_.bytes().data(), base.data(), base.size()) == 0,
                               "nothing is left of an earlier input");
        }
    }

    [[nodiscard]] bool moved() const {
        const auto tables = [](const shm::Lines& of) {
            return of.bytes().subspan(offsetof(shm::StateHead, table),
                                      sizeof shm::StateHead::table);
        };
        return !std::ranges::equal(tables(memory_), tables(base_));
    }

    const shm::Lines& base_;
    shm::Lines memory_;
    std::vector<std::pair<size_t, size_t>> written_;
    uint64_t times_ = 0;
};

// A place in the base, and how many bytes of the state are left there.
size_t place_of(std::span<const std::byte> state, Bytes& input, size_t* room) {
    constexpr auto kTables = static_cast<unsigned>(shm::Table::kCount);
    const auto which = input.take<uint8_t>() % (kTables + 1);
    const auto row = input.take<uint8_t>();
    const auto at = input.take<uint8_t>();
    const auto* head = reinterpret_cast<const shm::StateHead*>(state.data());
    if (which == kTables) {  // the head
        const size_t place = at % sizeof(shm::StateHead);
        *room = sizeof(shm::StateHead) - place;
        return place;
    }
    const shm::TablePlace& table = head->table[which];
    const uint64_t offset =
        table.offset + uint64_t{row % table.rows} * table.row_size + at % table.row_size;
    *room = state.size() - offset;
    return offset;
}

// Whether one look after the other says the same of a STATE as all of them on one way through it.
bool agree(std::span<std::byte> state, bool attached, const core::Core::Refusal& refusal) {
    if (!core::rows_refusal(state).empty()) return !attached && !refusal.unsound.empty();
    if (!refusal.unsound.empty()) return false;
    const bool holds = core::Core{state}.check_all().empty();
    return attached == holds && refusal.wrong.empty() == holds;
}

struct Base {
    explicit Base(size_t base)
        : left(dibs::fuzz::make_base(base, true)), looked(left), served(left) {}

    const shm::Lines left;
    Changed looked;  // is looked at in one way
    Changed served;  // is looked at in another one, and served from
};

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    static std::array<Base, dibs::fuzz::kBases> bases = {Base(0), Base(1), Base(2), Base(3)};
    static std::vector<Piece> pieces;
    Bytes input(bytes, size);
    const auto which = input.take<uint8_t>();
    Base& base = bases[which % dibs::fuzz::kBases];
    pieces.clear();
    while (!input.empty()) {
        size_t room = 0;
        const size_t place = place_of(base.left.bytes(), input, &room);
        const auto raw = input.take(input.take<uint8_t>() % 65U);
        pieces.push_back({place, raw.first(std::min(raw.size(), room))});
    }
    const std::span<std::byte> state = base.looked.with(pieces);
    if (!core::state_refusal(state).empty()) return 0;
    core::Core::Refusal refusal;
    constexpr std::array<uint32_t, 3> kRowsAtOnce = {1, 3, core::Core::kRowsAtOnce};
    const auto broker = core::Core::attach(
        base.served.with(pieces), 0, &refusal, kRowsAtOnce[which / dibs::fuzz::kBases % 3]);
    if (!agree(state, broker != nullptr, refusal)) std::abort();
    if (broker == nullptr) return 0;
    ++dibs::fuzz::understood;
    dibs::fuzz::serve(*broker, which / 9 % 4 == 0);
    return 0;
}
