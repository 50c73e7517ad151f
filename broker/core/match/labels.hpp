// broker/core/match/labels.hpp -- interns label sets, so that they compare as numbers.
//
// A set is its labels, sorted by bytes and without duplicates, each ended by a zero byte: a row of
// STATE with that text in the arena. Unused sets stay until the table is full, somebody finds no
// room in the arena or a session has ended, because the next claim is likely to bring the same one.
// Whether one set covers another is computed once for each pair and remembered. The empty set has
// no row: it is kNoRow.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "broker/core/store/arena.hpp"
#include "broker/core/store/edit.hpp"
#include "broker/core/store/index.hpp"

namespace dibs::core {

class LabelSets {
  public:
    // `seed` is the index's: clients choose labels.
    LabelSets(State& state, Edit& edit, Arena& arena, uint64_t seed);

    static bool has_zero(std::string_view text);
    static bool well_formed(std::span<const std::string_view> labels) {
        return labels.empty() || are_well_formed(labels);
    }

    // The set's row in *row. False if there is no room for another. `labels` are well formed.
    bool intern(std::span<const std::string_view> labels, uint32_t* row) {
        *row = shm::kNoRow;
        return labels.empty() || find_or_make(labels, row);
    }

    // Does intern() find the set, or is there none to be made of them?
    [[nodiscard]] bool known(std::span<const std::string_view> labels) const;
    [[nodiscard]] uint32_t unused() const { return static_cast<uint32_t>(uses_.size()) - used_; }

    void hold(uint32_t set) {
        if (set != shm::kNoRow && uses_[set]++ == 0) ++used_;
    }
    void drop(uint32_t set) {
        if (set != shm::kNoRow && --uses_[set] == 0) --used_;
    }
    // Gives back the rows that nothing holds.
    void sweep();

    [[nodiscard]] uint32_t count(uint32_t set) const {
        return set == shm::kNoRow ? 0 : state_.label_sets[set].count;
    }
    [[nodiscard]] std::string_view text(uint32_t set) const {
        return set == shm::kNoRow ? std::string_view{} : std::string_view{texts_[set]};
    }
    // Has `set` every label of `wanted`?
    [[nodiscard]] bool covers(uint32_t set, uint32_t wanted) {
        if (wanted == shm::kNoRow || set == wanted) return true;
        if (set == shm::kNoRow) return false;
        Covers& known = covers_[size_t{set} * uses_.size() + wanted];
        if (known == Covers::kNotYet) known = look(set, wanted) ? Covers::kYes : Covers::kNo;
        return known == Covers::kYes;
    }
    // A number for base ∪ provisionable that depends on the labels alone.
    [[nodiscard]] uint64_t hash_of_union(uint32_t one, uint32_t other, uint64_t seed) const;

  private:
    enum class Covers : uint8_t { kNotYet, kYes, kNo };
    [[nodiscard]] bool look(uint32_t set, uint32_t wanted) const;
    static bool are_well_formed(std::span<const std::string_view> labels);
    bool find_or_make(std::span<const std::string_view> labels, uint32_t* row);
    [[nodiscard]] bool make(std::string_view text, uint32_t count, uint64_t hash, uint32_t* row);
    [[nodiscard]] uint64_t hash_of(std::string_view text) const;

    State& state_;
    Edit& edit_;
    Arena& arena_;
    std::vector<std::string> texts_;
    std::vector<uint32_t> uses_;
    uint32_t used_ = 0;  // sets with uses
    std::vector<uint32_t> free_;
    std::vector<Covers> covers_;
    const uint64_t seed_;
    Index by_text_;
};

// Walks the labels of a text: calls visit(label).
template <class Visit>
void each_label(std::string_view text, const Visit& visit) {
    while (!text.empty()) {
        const size_t end = text.find('\0');
        visit(text.substr(0, end));
        if (end == std::string_view::npos) return;
        text.remove_prefix(end + 1);
    }
}

// What limits count: a slot's labels, and this one once, which every slot has for the key "*",
// whatever its worker says.
inline constexpr std::string_view kEverySlot = "*:";
template <class Visit>
void each_counted_label(std::string_view text, const Visit& visit) {
    each_label(text, [&](std::string_view label) {
        if (label != kEverySlot) visit(label);
    });
    visit(kEverySlot);
}

}  // namespace dibs::core
