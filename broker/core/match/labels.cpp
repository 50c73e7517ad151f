// broker/core/match/labels.cpp -- interns label sets and compares them.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/match/labels.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace dibs::core {

using shm::kNoRow;

namespace {

constexpr uint32_t kSweepStep = 64;

// A set's text, put together without asking for memory: sets come with claims.
class SetText {
  public:
    explicit SetText(std::span<const std::string_view> labels) {
        assert(labels.size() <= shm::kLabelsMax);
        if (labels.size() == 1) {
            add(labels.front());
            return;
        }
        std::array<std::string_view, shm::kLabelsMax> set;
        const auto end = std::copy(labels.begin(), labels.end(), set.begin());
        std::sort(set.begin(), end);
        std::for_each(set.begin(), std::unique(set.begin(), end), [&](std::string_view label) {
            add(label);
        });
    }
    [[nodiscard]] std::string_view view() const { return {bytes_.data(), size_}; }
    [[nodiscard]] uint32_t count() const { return count_; }

  private:
    void add(std::string_view label) {
        std::memcpy(bytes_.data() + size_, label.data(), label.size());
        size_ += label.size();
        bytes_[size_++] = '\0';
        ++count_;
    }

    std::array<char, size_t{shm::kLabelsMax} * (shm::kNameMax + 1)> bytes_;
    size_t size_ = 0;
    uint32_t count_ = 0;
};

std::vector<std::string_view> sorted(std::span<const std::string_view> labels) {
    std::vector<std::string_view> set(labels.begin(), labels.end());
    std::sort(set.begin(), set.end());
    set.erase(std::unique(set.begin(), set.end()), set.end());
    return set;
}

std::vector<std::string_view> labels_of(std::string_view text) {
    std::vector<std::string_view> labels;
    each_label(text, [&](std::string_view label) { labels.push_back(label); });
    return labels;
}

std::string joined(std::span<const std::string_view> set) {
    std::string text;
    for (const std::string_view label : set) {
        text += label;
        text += '\0';
    }
    return text;
}

}  // namespace

LabelSets::LabelSets(State& state, Edit& edit, Arena& arena, uint64_t seed)
    : state_(state),
      edit_(edit),
      arena_(arena),
      texts_(state.label_sets.size()),
      uses_(state.label_sets.size()),
      covers_(size_t{state.label_sets.size()} * state.label_sets.size()),
      seed_(seed),
      by_text_(state.label_sets.size()) {
    for (uint32_t row = state.label_sets.size(); row-- > 0;) {
        const shm::LabelSetRow& set = state.label_sets[row];
        if (set.references == 0) {
            free_.push_back(row);
            continue;
        }
        texts_[row].resize(set.text_size);
        arena.copy(set.text, set.text_size, reinterpret_cast<std::byte*>(texts_[row].data()));
        by_text_.insert(hash_of(texts_[row]), row);
    }
}

uint64_t LabelSets::hash_of(std::string_view text) const {
    return text_hash(text, seed_);
}

bool LabelSets::are_well_formed(std::span<const std::string_view> labels) {
    if (labels.size() > shm::kLabelsMax) return false;
    return std::all_of(labels.begin(), labels.end(), [](std::string_view label) {
        return !label.empty() && label.size() <= shm::kNameMax && !has_zero(label);
    });
}

bool LabelSets::has_zero(std::string_view text) {
    for (const char letter : text) {
        if (letter == '\0') return true;
    }
    return false;
}

bool LabelSets::known(std::span<const std::string_view> labels) const {
    if (labels.empty() || !are_well_formed(labels)) return true;
    const SetText set(labels);
    const auto same = [&](uint32_t row) { return texts_[row] == set.view(); };
    return by_text_.find(hash_of(set.view()), same) != kNoRow;
}

bool LabelSets::find_or_make(std::span<const std::string_view> labels, uint32_t* row) {
    const SetText set(labels);
    const uint64_t hash = hash_of(set.view());
    *row = by_text_.find(hash, [&](uint32_t known) { return texts_[known] == set.view(); });
    return *row != kNoRow || make(set.view(), set.count(), hash, row);
}

bool LabelSets::make(std::string_view text, uint32_t count, uint64_t hash, uint32_t* row) {
    if (free_.empty()) sweep();
    if (free_.empty() || Arena::blocks_for(text.size()) > arena_.available()) return false;
    *row = free_.back();
    free_.pop_back();
    shm::LabelSetRow& made = edit_.row(state_.label_sets[*row], 1);
    assert(made.references == 0 && uses_[*row] == 0);
    put(made.references, 1);
    put(made.hash, static_cast<uint32_t>(hash_bytes(text.data(), text.size(), 0)));
    put(made.text, arena_.store({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
    assert(made.text != kNoRow);
    put(made.text_size, text.size());
    put(made.count, count);
    by_text_.insert(hash, *row);
    texts_[*row] = text;
    return true;
}

// A part of them at a time: their lines must fit the log beside those of a command.
void LabelSets::sweep() {
    uint32_t swept = 0;
    for (uint32_t row = 0; row < state_.label_sets.size() && swept < kSweepStep; ++row) {
        const shm::LabelSetRow& set = state_.label_sets[row];
        if (set.references == 0 || uses_[row] != 0) continue;
        arena_.free(set.text, set.text_size);
        put(edit_.row(set, 1).references, 0);
        ++swept;
        by_text_.remove(hash_of(texts_[row]), row);
        texts_[row].clear();
        free_.push_back(row);
        const size_t sets = uses_.size();
        for (size_t other = 0; other < sets; ++other) {
            covers_[row * sets + other] = Covers::kNotYet;
            covers_[other * sets + row] = Covers::kNotYet;
        }
    }
}

bool LabelSets::look(uint32_t set, uint32_t wanted) const {
    const auto has = labels_of(texts_[set]);
    const auto wants = labels_of(texts_[wanted]);
    return std::includes(has.begin(), has.end(), wants.begin(), wants.end());
}

uint64_t LabelSets::hash_of_union(uint32_t one, uint32_t other, uint64_t seed) const {
    std::vector<std::string_view> all = labels_of(text(one));
    const std::vector<std::string_view> more = labels_of(text(other));
    all.insert(all.end(), more.begin(), more.end());
    const std::string joined_text = joined(sorted(all));
    return hash_bytes(joined_text.data(), joined_text.size(), seed);
}

}  // namespace dibs::core
