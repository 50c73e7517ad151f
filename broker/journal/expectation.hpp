// broker/journal/expectation.hpp -- compares decisions and rows with what a scenario expects.
//
// An expectation names the fields that matter: each of them must be there with that value, other
// fields are not looked at. Decisions are taken one by one, in the order in which they were made,
// and all must be taken when the next turn opens; only "demand" may stay untaken, since it follows
// from the rest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <string>

namespace dibs::ctl {

// Slots without a name are printed as numbers, which the schema cannot mix with names: in a line
// that expects something they are turned into text. Other lines are returned as they are.
std::string with_slot_numbers_as_text(std::string line);

// Empty if `actual` has every field of `expected`; else the first that differs and how.
std::string difference(const std::string& expected, const std::string& actual);

class Expectations {
  public:
    void decided(std::string decision) { decided_.push_back(std::move(decision)); }

    // All throw JournalError when they do not hold. `line` is the whole line, as JSON.
    void expect_decision(const std::string& line);
    // No decision is left, or none of this kind.
    void expect_none(const std::string& kind);
    void expect_row(const std::string& line, const std::string& word, const std::string& row);
    // What is left is of no interest.
    void expect_rest();
    // Nothing may be left.
    void settle();

    [[nodiscard]] uint64_t held() const { return held_; }

  private:
    std::deque<std::string> decided_;
    uint64_t held_ = 0;
};

}  // namespace dibs::ctl
