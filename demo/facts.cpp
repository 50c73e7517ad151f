// demo/facts.cpp -- keeps the list of facts and prints it.
// SPDX-License-Identifier: Apache-2.0
#include "demo/facts.hpp"

#include <algorithm>
#include <utility>

namespace dibs::ctl::demo {

namespace {

const char* word_of(Facts::Verdict verdict) {
    switch (verdict) {
        case Facts::Verdict::kPassed:
            return "ok   ";
        case Facts::Verdict::kFailed:
            return "FAIL ";
        case Facts::Verdict::kSkipped:
            break;
    }
    return "skip ";
}

}  // namespace

void Facts::check(bool holds, std::string text) {
    facts_.push_back({holds ? Verdict::kPassed : Verdict::kFailed, std::move(text)});
}

void Facts::skip(const std::string& text, const std::string& reason) {
    facts_.push_back({Verdict::kSkipped, text + ": " + reason});
}

size_t Facts::count(Verdict verdict) const {
    return static_cast<size_t>(std::count_if(
        facts_.begin(), facts_.end(), [&](const Fact& fact) { return fact.verdict == verdict; }));
}

std::string Facts::lines() const {
    std::string text;
    for (const Fact& fact : facts_)
        text += word_of(fact.verdict) + fact.text + "\n";
    return text;
}

std::string Facts::last_line() const {
    return std::to_string(count(Verdict::kPassed)) + " passed, " +
           std::to_string(count(Verdict::kFailed)) + " failed, " +
           std::to_string(count(Verdict::kSkipped)) + " skipped";
}

}  // namespace dibs::ctl::demo
