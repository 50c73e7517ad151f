// broker/ctl/admin/reason.cpp -- puts the reasons why a claim waits into words.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/reason.hpp"

#include <algorithm>

#include "broker/config/quantity.hpp"
#include "broker/core/match/labels.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/text/line_wrap.hpp"
#include "dibs/dibs.h"

namespace dibs::ctl {

using core::ClassReason;
using core::PauseReason;
using core::PreemptReason;
using core::WaitReason;

namespace {

// What has outlived the longest holder, and how it can be ended.
std::string outlived(const Explained& told) {
    constexpr size_t kNamed = 4;
    std::string text = "Its process has ended, and what that had started runs on";
    std::string pids;
    for (size_t at = 0; at < std::min(told.left.size(), kNamed); ++at) {
        text += (at == 0 ? ": " : ", ") + told.left[at].text;
        pids += " " + std::to_string(told.left[at].pid);
    }
    if (told.left.size() > kNamed) {
        text += " and " + std::to_string(told.left.size() - kNamed) + " more";
    }
    if (told.holder_lives) text += ". Some of it could not be killed";
    if (!pids.empty()) text += ". Its user can end it (kill" + pids + ")";
    const uint64_t number = told.facts->holder_number();
    if (number != 0 && !told.holder_killed) {
        text += (pids.empty() ? ". " : ", and ") + std::string("dibs release ") +
                number_text(Letter::kLease, number) + " has all of it killed";
    }
    return text + ". ";
}

std::string holder(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    if (told.holder_account.empty()) return "";
    std::string text = "The longest holder is " + told.holder_account;
    if (facts.holder_pid() != 0) {
        text += ", " + process_text(facts.holder_pid(), told.holder_command, facts.holder_uid());
    }
    if (facts.holder_number() != 0) {
        text += ", lease " + number_text(Letter::kLease, facts.holder_number());
    }
    text += ", for " + duration_text(facts.holder_age_ns()) + ". ";
    if (told.holder_outlived) return text + outlived(told);
    if (!told.holder_killed) return text;
    return text + (told.holder_lives
                       ? "Its time is over, and it could not be killed: an administrator must end "
                         "it. "
                       : "Its time is over, and it is being killed. ");
}

bool of_classes(const admin::WaitFacts& facts) {
    return static_cast<ClassReason>(facts.class_reason()) != ClassReason::kNone;
}

// Those that could be its.
uint32_t told_slots(const admin::WaitFacts& facts) {
    return of_classes(facts) ? facts.fitting() : facts.slots();
}

std::string with_labels(const admin::WaitFacts& facts) {
    return told_slots(facts) != facts.slots() ? " with its labels" : "";
}

// It wants more than there are, so that nothing given back is enough; empty: it does not.
std::string too_few_slots(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    const bool own = static_cast<WaitReason>(facts.reason()) != WaitReason::kBehind;
    const uint32_t slots = told_slots(facts);
    if (!own || slots == 0 || facts.units() <= slots) return "";
    return "Pool " + told.pool + " has " + counted(slots, "slot") + with_labels(facts) +
           ", and it wants " + std::to_string(facts.units()) + ". Workers must announce more.";
}

// Held, reserved or protected.
std::string none_idle(const Explained& told) {
    const uint32_t slots = told_slots(*told.facts);
    const std::string with = with_labels(*told.facts);
    if (slots == 1) return "The only slot of " + told.pool + with + " is not idle. ";
    return "None of the " + counted(slots, "slot") + " of " + told.pool + with + " is idle. ";
}

std::string left_out(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string end = " and takes nothing for free. ";
    if (static_cast<ClassReason>(facts.class_reason()) == ClassReason::kFanout) {
        return "Account " + told.account + " holds " + std::to_string(facts.fanout_held()) +
               " of " + counted(facts.fanout_max(), "slot") + " with its labels" + end +
               "It must give one back, or its fan-out be raised.";
    }
    return "Account " + told.account + " has used up all" + end + "Its balance must rise above 0.";
}

std::string few_idle(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    if (of_classes(facts)) {
        return "Fewer slots of " + told.pool + " that it could use are idle than it wants. " +
               holder(told) + "More must be given back.";
    }
    const std::string few = "Only " + counted(facts.idle(), "slot") + " of " + told.pool +
                            (facts.idle() == 1 ? " is" : " are") +
                            " idle, too few for the first in line. ";
    if (facts.idle() == facts.slots()) {
        return few + "The pool has no more. Workers must announce more, or that claim must end.";
    }
    return few + holder(told) + "More must be given back.";
}

std::string limited_slots(const Explained& told, uint32_t count) {
    const std::string slots = counted(count, "slot") + " of " + told.pool;
    return told.label == core::kEverySlot ? slots : slots + " with the label " + told.label;
}

std::string limit_name(const Explained& told) {
    return told.label == core::kEverySlot ? "running_max" : "label limit";
}

std::string label_limit(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string held =
        "Account " + told.account + " holds " + limited_slots(told, facts.label_held());
    const std::string end = " back, or its " + limit_name(told) + " be raised.";
    if (facts.label_held() >= facts.label_limit()) {
        return held + ", as many as it may at once. It must give one" + end;
    }
    return held + " and may hold " + std::to_string(facts.label_limit()) +
           " at once; the claim wants " + std::to_string(facts.units()) + ". It must give some" +
           end;
}

std::string over_limit(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    return "The claim wants " + limited_slots(told, facts.units()) + ", and the " +
           limit_name(told) + " of account " + told.account + " is " +
           std::to_string(facts.label_limit()) +
           ". It can never be served until that is raised; else cancel it, and claim fewer.";
}

std::string pause_reason(const Explained& told) {
    switch (static_cast<PauseReason>(told.pause)) {
        case PauseReason::kThrottle:
            return "its provisioner is overloaded, or has as many orders as it may";
        case PauseReason::kPool:
            return "all its types are at capacity";
        case PauseReason::kCapacity:
            return "type " + told.type + " is at capacity";
        case PauseReason::kFailed:
            return "a start of type " + told.type + " has failed";
        case PauseReason::kNone:
            break;
    }
    return "it pauses";
}

// Why an elastic pool has too few workers, and no more are made.
std::string few_workers(const Explained& told, WaitReason reason) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string pool = told.pool;
    const std::string workers = counted(facts.slots(), "worker");
    const std::string left = told.pause_ns != 0 ? duration_text(told.pause_ns) : "";
    if (reason == WaitReason::kNoProvisioner) {
        if (told.type.empty()) return "Pool " + pool + " has no type of worker. One must be added.";
        return holder(told) + "No provisioner makes workers of pool " + pool + ": dibs worker " +
               pool + ":N --type " + told.type + " -- COMMAND.";
    }
    if (reason == WaitReason::kBeingMade) {
        return "A worker of pool " + pool + " is being made: " + std::to_string(told.ordered) +
               (told.ordered == 1 ? " is" : " are") + " ordered, and must come.";
    }
    if (reason == WaitReason::kPausing) {
        return "No worker of pool " + pool + " can be ordered for " + left + ": " +
               pause_reason(told) + ".";
    }
    if (reason == WaitReason::kLimit) {
        return "After an overload or a quota, " + counted(told.limit, "slot") + " of pool " + pool +
               " may be held at once for now. " + holder(told) +
               "One must be given back, or the limit rise again.";
    }
    if (told.limit != 0) {
        return "Pool " + pool + " has " + workers + ", as many as its workers_max allows. " +
               holder(told) + "A slot must be given back, or workers_max be raised.";
    }
    return "Pool " + pool + " is at its provider's quota with " + workers + ". " + holder(told) +
           "A slot must be given back; another worker is tried in " + left +
           ", or when one has gone.";
}

std::string gang_count(const Explained& told) {
    return std::to_string(told.gang_held) + " of " + counted(told.gang_members, "placeholder");
}

// What an application keeps waiting. Of another user's its name is not known.
std::string of_application(const Explained& told, WaitReason reason) {
    const std::string app =
        told.application.empty() ? "An application" : "Application " + told.application;
    const std::string show =
        told.application.empty() ? "" : ": dibs app show " + told.application + " shows it";
    switch (reason) {
        case WaitReason::kGang:
            if (told.gang_members == 0) return app + " is about to run" + show + ".";
            return app + " reserves its gang, with " + gang_count(told) + " so far. " +
                   holder(told) + "All must be there, or its time-out come" + show + ".";
        case WaitReason::kNoManager:
            return app +
                   " has no manager, or is being recovered. A session of its user must adopt "
                   "it, or say that it has recovered" +
                   show + ".";
        case WaitReason::kPlaceholder:
            return "No placeholder of group " + told.group + " of application " + told.application +
                   " is free. The task waits in line like any claim once none is left in any "
                   "group: tasks have taken the last one, or its time-out has released it" +
                   show + ".";
        default:
            return app + " reserves the slots of pool " + told.pool +
                   " that come next for its "
                   "gang, with " +
                   gang_count(told) + " so far. " + holder(told) +
                   "It must be whole, or its time-out come" + show + ".";
    }
}

// Of the first in line; in a pool ordered by account, its own.
std::string obstacle(const Explained& told, WaitReason reason) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string pool = told.pool;
    const bool more_wanted = reason == WaitReason::kHeld || reason == WaitReason::kUnits ||
                             reason == WaitReason::kRecovering;
    if (const std::string few = too_few_slots(told); more_wanted && !few.empty()) return few;
    switch (reason) {
        case WaitReason::kHeld:
            return none_idle(told) + holder(told) + "A slot must be given back, or its lease end.";
        case WaitReason::kUnits:
            return few_idle(told);
        case WaitReason::kConfirming:
            return "Its slots are chosen: " + std::to_string(facts.confirmed()) + " of " +
                   counted(facts.units(), "worker") +
                   " have confirmed. The others must confirm, or it waits again.";
        case WaitReason::kUnconfirmed:
            return "As many workers of " + pool +
                   " are being asked at once as its unconfirmed_max allows. One of them must "
                   "answer.";
        case WaitReason::kLeases:
            return "The broker's lease rows are used up. " + holder(told) +
                   "A lease must end, or limits.leases be raised in dibsd's configuration.";
        case WaitReason::kRecovering:
            if (told.holder_killed) {
                return none_idle(told) + holder(told) +
                       (told.holder_outlived ? "The slot is free when the last one has ended."
                                             : "The slot is free when it is dead.");
            }
            return "None of the " + counted(facts.slots(), "slot") + " of " + pool +
                   " is held, and none is ready. A worker must say ready.";
        case WaitReason::kNoSlots:
            return "Pool " + pool + " has no slots. A worker must announce one.";
        case WaitReason::kNextTurn:
            return "A slot is idle: the broker's next turn grants it.";
        case WaitReason::kPromised:
            return "A slot of " + pool + " has been taken from another for it. " +
                   (told.holder_account.empty()
                        ? "Its worker must say ready, and is asked as soon as the pool's "
                          "unconfirmed_max allows."
                        : holder(told) +
                              "It must be given back, at the latest when its holder's "
                              "grace ends.");
        case WaitReason::kLeftOut:
            return left_out(told);
        case WaitReason::kLabels:
            return told.label.empty() ? "No slot of " + pool +
                                            " has all of its labels. A worker must announce one."
                                      : "No slot of " + pool + " has the label " + told.label +
                                            ". A worker must announce one.";
        case WaitReason::kLabelLimit:
            return label_limit(told);
        case WaitReason::kOverLimit:
            return over_limit(told);
        case WaitReason::kHeldBack:
            return "The idle slots of " + pool +
                   " that it could use are kept together for a claim of several. That must be "
                   "served or end.";
        case WaitReason::kDrained:
            return "Every slot of " + pool +
                   " is drained. An administrator must end that: dibs undrain " + pool +
                   "/NUMBER, and dibs ls slots shows them.";
        case WaitReason::kOnHold:
            return "Its priority is 0: it is on hold until it gets another one.";
        case WaitReason::kLacks:
            if (told.resource.empty()) {
                return "No slot of " + pool + " has all that it wants free at once. " +
                       holder(told) + "A lease must give some of it back.";
            }
            return "No slot of " + pool + " has as much " + told.resource +
                   " free as it wants at least: " + show_amount(told.wanted) + " is wanted, and " +
                   show_amount(told.most_free) + " is the most that one slot has free. " +
                   holder(told) + "A lease must give some of it back.";
        case WaitReason::kSlotRows:
            return "The broker's slot rows are used up: each part of a slot takes one. The lease "
                   "of "
                   "a part must end, or limits.slots be raised in dibsd's configuration.";
        case WaitReason::kOtherPools:
            return "The idle slots of " + pool +
                   " are held back for a claim over several pools. It must get a slot of each of "
                   "its other pools, too, or end.";
        case WaitReason::kGang:
        case WaitReason::kNoManager:
        case WaitReason::kPlaceholder:
        case WaitReason::kBehindGang:
            return of_application(told, reason);
        case WaitReason::kNoProvisioner:
        case WaitReason::kBeingMade:
        case WaitReason::kAtQuota:
        case WaitReason::kPausing:
        case WaitReason::kLimit:
            return few_workers(told, reason);
        case WaitReason::kBehind:
        case WaitReason::kNone:
            break;
    }
    return "";
}

// Why it is of its class.
std::string standing(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    const std::string name = class_name(facts.at_class());
    switch (static_cast<ClassReason>(facts.class_reason())) {
        case ClassReason::kBalance:
            return "It is of class " + name + ", the first of which account " + told.account +
                   " has anything. ";
        case ClassReason::kNoAccount:
            return "It is of the free class: " + told.account +
                   " is no account that is configured. ";
        case ClassReason::kNoBalance:
            return "It is of the free class: account " + told.account + " has used up all. ";
        case ClassReason::kFanout:
            return "It is of the free class: account " + told.account + " holds " +
                   std::to_string(facts.fanout_held()) + " of " +
                   counted(facts.fanout_max(), "slot") + " with its labels. ";
        case ClassReason::kNone:
            break;
    }
    return "";
}

std::string preemption(const Explained& told) {
    switch (static_cast<PreemptReason>(told.facts->preempt())) {
        case PreemptReason::kBanned:
            return " It takes nobody's slot while account " + told.account +
                   " itself runs something of a worse class.";
        case PreemptReason::kNoCandidate:
            return " Nothing that it could take runs at a worse class.";
        case PreemptReason::kBalance:
            return " To take a slot, account " + told.account +
                   " must have more than the cheapest claim of a worse class has cost.";
        case PreemptReason::kNextTurn:
            return " The broker's next turn takes one for it.";
        case PreemptReason::kUnits:
            return " A claim of several slots takes none from others.";
        case PreemptReason::kDisabled:
        case PreemptReason::kForFree:
        case PreemptReason::kNone:
            break;
    }
    return "";
}

template <size_t kCount>
std::string_view word(const std::string_view (&words)[kCount], uint8_t index) {
    return index < kCount ? words[index] : "unknown";
}

}  // namespace

std::string_view wait_word(WaitReason reason) {
    return dibs_wait_name(static_cast<int>(reason));
}

std::string_view class_word(ClassReason reason) {
    static constexpr std::string_view kWords[] = {
        "none", "balance", "no-account", "no-balance", "fan-out"};
    return word(kWords, static_cast<uint8_t>(reason));
}

std::string_view preempt_word(PreemptReason reason) {
    static constexpr std::string_view kWords[] = {
        "none", "for-free", "disabled", "units", "banned", "no-candidate", "balance", "next-turn"};
    return word(kWords, static_cast<uint8_t>(reason));
}

std::string class_name(uint8_t at_class) {
    return at_class < shm::kClasses ? "P" + std::to_string(at_class) : "free";
}

std::string wait_sentence(const Explained& told) {
    const admin::WaitFacts& facts = *told.facts;
    const auto reason = static_cast<WaitReason>(facts.reason());
    const auto first = static_cast<WaitReason>(facts.obstacle());
    const bool stands = first != WaitReason::kLeftOut && first != WaitReason::kPromised;
    std::string text = stands ? standing(told) : "";
    if (reason == WaitReason::kBehind) {
        text += counted(facts.position() - 1, "claim") +
                (facts.position() == 2 ? " stands" : " stand") + " before it";
        if (facts.better() != 0) {
            text += ", " + std::to_string(facts.better()) + " of a better class";
        }
        text += ". ";
    }
    text += obstacle(told, first);
    if (told.drained != 0 && first != WaitReason::kDrained && first != WaitReason::kNextTurn) {
        text += " " + counted(told.drained, "slot") + " of the pool" +
                (told.drained == 1 ? " is" : " are") + " drained.";
    }
    return text + preemption(told);
}

}  // namespace dibs::ctl
