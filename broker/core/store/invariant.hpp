// broker/core/store/invariant.hpp -- states what holds for a row or a list; collects violations.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace dibs::core {

// Violations, a sentence each. Their number is bounded: each of a million rows may be wrong.
using Wrongs = std::vector<std::string>;
inline constexpr size_t kWrongsMax = 1000;

// What invariants are stated about. Text is composed for a violation only: a takeover checks every
// row.
class Subject {
  public:
    Subject(Wrongs* wrongs, const char* what, uint64_t number)
        : wrongs_(wrongs), what_(what), number_(number) {}
    Subject(Wrongs* wrongs, const char* what, std::string_view name = {})
        : wrongs_(wrongs), what_(what), name_(name) {}

    // `sentence` goes on behind the subject; or returns what does.
    template <class Sentence>
    void expect(bool holds, const Sentence& sentence) const {
        if (holds) [[likely]] {
            return;
        }
        if constexpr (std::is_invocable_v<Sentence>) {
            add(sentence());
        } else {
            add(sentence);
        }
    }
    void expect_count(const char* of, uint64_t counted, uint64_t stored) const {
        if (counted != stored) [[unlikely]]
            add_count(of, counted, stored);
    }

  private:
    [[gnu::cold, gnu::noinline]] void add(std::string_view sentence) const {
        if (wrongs_->size() >= kWrongsMax) return;
        std::string text = what_;
        if (!name_.empty()) text.append(" '").append(name_).append("'");
        if (number_ != kNoNumber) text.append(" ").append(std::to_string(number_));
        wrongs_->push_back(text.append(" ").append(sentence));
    }
    [[gnu::cold, gnu::noinline]] void add_count(const char* of,
                                                uint64_t counted,
                                                uint64_t stored) const {
        add(std::string(of) + ": counted " + std::to_string(counted) + ", stored " +
            std::to_string(stored));
    }

    static constexpr uint64_t kNoNumber = ~uint64_t{0};

    Wrongs* wrongs_;
    const char* what_;
    std::string_view name_ = {};
    uint64_t number_ = kNoNumber;
};

// A pool's or an account's.
template <class Row>
std::string_view name_of(const Row& row) {
    return {row.name, row.name_size};
}

}  // namespace dibs::core
