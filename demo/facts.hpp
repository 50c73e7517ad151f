// demo/facts.hpp -- collects what must hold: each fact passes, fails or is skipped.
// A fact is one line, a skipped one with the reason. Times are no facts: they are printed elsewhere
// and never fail.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dibs::ctl::demo {

class Facts {
  public:
    enum class Verdict : uint8_t { kPassed, kFailed, kSkipped };
    struct Fact {
        Verdict verdict;
        std::string text;
    };

    void check(bool holds, std::string text);
    void skip(const std::string& text, const std::string& reason);

    [[nodiscard]] const std::vector<Fact>& all() const { return facts_; }
    [[nodiscard]] size_t count(Verdict verdict) const;
    // "ok   …", "FAIL …", "skip …", a line each.
    [[nodiscard]] std::string lines() const;
    // "9 passed, 0 failed, 1 skipped"
    [[nodiscard]] std::string last_line() const;

  private:
    std::vector<Fact> facts_;
};

}  // namespace dibs::ctl::demo
