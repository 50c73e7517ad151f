// broker/ctl/admin/reason.cpp -- reasons in words.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/reason.hpp"

#include "broker/ctl/sheet.hpp"

namespace dibs::ctl {

using core::WaitReason;

namespace {

std::string count(uint64_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string holder(const admin::ExplanationT& told) {
    const admin::WaitFacts& facts = *told.facts;
    if (told.holder_account.empty()) return "";
    std::string text = "The longest holder is " + told.holder_account;
    if (facts.holder_pid() != 0) text += ", process " + std::to_string(facts.holder_pid());
    if (facts.holder_number() != 0) text += ", lease " + std::to_string(facts.holder_number());
    return text + ", for " + duration_text(facts.holder_age_ns()) + ". ";
}

// Of the first in line.
std::string obstacle(const admin::ExplanationT& told, WaitReason reason) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string pool = told.pool;
    switch (reason) {
        case WaitReason::kHeld:
            return "All " + count(facts.slots(), "slot") + " of " + pool + " are taken. " +
                   holder(told) + "A slot must be given back, or its lease end.";
        case WaitReason::kUnits:
            return "Only " + count(facts.idle(), "slot") + " of " + pool +
                   " are idle, too few for the first in line. " + holder(told) +
                   "More must be given back.";
        case WaitReason::kConfirming:
            return "Its slots are chosen: " + std::to_string(facts.confirmed()) + " of " +
                   count(facts.units(), "worker") +
                   " have confirmed. The others must confirm, or it waits again.";
        case WaitReason::kUnconfirmed:
            return "As many workers of " + pool +
                   " are being asked at once as its unconfirmed_max allows. One of them must "
                   "answer.";
        case WaitReason::kLeases:
            return "The broker's lease rows are used up. " + holder(told) +
                   "A lease must end, or limits.leases be raised in dibsd's configuration.";
        case WaitReason::kRecovering:
            return "None of the " + count(facts.slots(), "slot") + " of " + pool +
                   " is held, and none is ready. A worker must say ready.";
        case WaitReason::kNoSlots:
            return "Pool " + pool + " has no slots. A worker must announce one.";
        case WaitReason::kNextTurn:
            return "A slot is idle: the broker's next turn grants it.";
        case WaitReason::kBehind:
        case WaitReason::kNone:
            break;
    }
    return "";
}

}  // namespace

std::string_view wait_word(WaitReason reason) {
    static constexpr std::string_view kWords[] = {"none",
                                                  "behind",
                                                  "held",
                                                  "units",
                                                  "confirming",
                                                  "unconfirmed-max",
                                                  "leases-full",
                                                  "recovering",
                                                  "no-slots",
                                                  "next-turn"};
    const auto index = static_cast<size_t>(reason);
    return index < std::size(kWords) ? kWords[index] : "unknown";
}

std::string wait_sentence(const admin::ExplanationT& told) {
    const admin::WaitFacts& facts = *told.facts;
    const auto reason = static_cast<WaitReason>(facts.reason());
    const auto first = static_cast<WaitReason>(facts.obstacle());
    std::string text;
    if (reason == WaitReason::kBehind) {
        text = count(facts.position() - 1, "claim") +
               (facts.position() == 2 ? " stands" : " stand") + " before it. ";
    }
    return text + obstacle(told, first);
}

}  // namespace dibs::ctl
