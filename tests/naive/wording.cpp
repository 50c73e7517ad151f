// tests/naive/wording.cpp -- names, and the one-line texts of steps and decisions.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/wording.hpp"

#include <sstream>

#include "tests/naive/decision_line.hpp"

namespace dibs::naive {

using shm::Outcome;
using shm::Reason;
using shm::WhenBusy;
using Word = core::WorkerWord::Kind;

const char* name_of(WhenBusy when) {
    switch (when) {
        case WhenBusy::kWait:
            return "wait";
        case WhenBusy::kReject:
            return "reject";
        case WhenBusy::kCold:
            return "cold";
    }
    return "?";
}

const char* name_of(Word kind) {
    switch (kind) {
        case Word::kReady:
            return "ready";
        case Word::kConfirm:
            return "confirm";
        case Word::kRefuse:
            return "refuse";
        case Word::kDone:
            return "done";
        case Word::kWithdraw:
            return "withdraw";
        case Word::kProtect:
            return "protect";
        case Word::kUnprotect:
            return "unprotect";
    }
    return "?";
}

namespace {

// Writes " name=value", but nothing for a value that says nothing.
class Line {
  public:
    explicit Line(const char* head) { text_ << head; }
    template <class Value, class Empty>
    Line& add(const char* name, const Value& value, const Empty& empty) {
        if (value != static_cast<Value>(empty)) text_ << ' ' << name << '=' << value;
        return *this;
    }
    Line& say(const std::string& words) {
        text_ << ' ' << words;
        return *this;
    }
    [[nodiscard]] std::string text() const { return text_.str(); }

  private:
    std::ostringstream text_;
};

std::string slot_name(uint32_t label) {
    if (label < kCountedLabel || label == kNoLabel) return std::to_string(label);
    const bool is_order = label >= kOrderLabel;
    const uint32_t place = label - (is_order ? kOrderLabel : kCountedLabel);
    return (is_order ? "order" : "") + std::to_string(place / 65536) + "/" +
           std::to_string(place % 65536);
}

void say_amounts(Line& line, const std::vector<core::Amount>& amounts) {
    for (const core::Amount& amount : amounts)
        line.say(std::string(amount.name) + "=" + std::to_string(amount.amount));
}

void say_claim(Line& line, const Step& step) {
    const core::Claim& claim = step.claim;
    line.add("pool", step.pool, kNoLabel)
        .add("tag", claim.tag, kNoLabel)
        .add("units", claim.units, 1);
    line.add("deadline", claim.deadline_ns, shm::kNever);
    line.add("timeout", claim.timeout_ns, shm::kNever).add("interval", claim.interval_ns, 0);
    if (claim.by_word) line.say("by-word");
    line.add("key", int{claim.key[0]}, 0).add("payload", step.payload_size, 0);
    if (claim.when_busy_given) line.say(name_of(claim.when_busy));
    line.add("priority", claim.priority, 1);
    if (claim.refusal != Reason::kOk) line.say(name_of(claim.refusal));
    line.say(words_of(step.terms));
    if (step.gang.is_member) line.say(gang_words(step));
    const core::Route& route = step.route.route;
    for (const auto& [label, member] : step.route.members) {
        line.add("member", label, kNoLabel).add("rank", member.priority, 0);
        line.add("cap", member.cap, kNoLabel).add("idle-seen", member.idle_seen, 0);
    }
    if (step.route.members.empty()) return;
    line.add("version", int{route.version}, 3).add("group-cap", route.group_cap, kNoLabel);
    line.add("cool-down", route.cool_down_ns, core::Route::kCoolDownNs);
}

void say_announce(Line& line, const Step& step) {
    line.add("pool", step.pool, kNoLabel).add("name", step.name, "");
    line.add("worker-tag", step.announce.worker_tag, 0).add("attributes", step.attributes_size, 0);
    for (const std::string& label : step.labels)
        line.say("label:" + label);
    if (step.announce.is_protected) line.say("protected");
    if (step.announce.ready) line.say("ready");
    if (step.subject != kNoLabel) line.say("of=" + slot_name(step.subject));
    line.add("type", step.type_name, "");
    if (step.announce.refusal != Reason::kOk) line.say(name_of(step.announce.refusal));
}

void say_word(Line& line, const Step& step) {
    line.say(name_of(step.word.kind)).say("slot=" + slot_name(step.subject));
    line.add("round", step.distance, 0).add("code", step.word.code, 0);
    line.add("answer", step.answer_size, 0);
    if (step.word.try_again) line.say("try-again");
    if (step.word.then_ready) line.say("then-ready");
}

}  // namespace

std::string to_string(const Step& step) {
    Line line(name_of(step.kind));
    line.add("label", step.label, kNoLabel).add("session", step.session, kNoLabel);
    switch (step.kind) {
        case StepKind::kSetPool:
        case StepKind::kDied:
        case StepKind::kHolderDied:
            break;
        case StepKind::kChangePool:
            line.add("pool", step.pool, kNoLabel).say(to_string(step.change));
            break;
        case StepKind::kSetAccount:
        case StepKind::kDeleteAccount:
        case StepKind::kResetBalance:
            line.say(step.name).say(words_of(step.account));
            break;
        case StepKind::kReport:
        case StepKind::kPull:
        case StepKind::kUnassign:
        case StepKind::kUpdateClaim:
            line.say(report_words(step));
            if (step.terms.priority_given) line.add("priority", step.claim.priority, kNoLabel);
            break;
        case StepKind::kOpen:
            line.add("uid", step.open.uid, kNoLabel).add("pid", step.open.pid, 0);
            line.add("tags", step.open.tags_max, 0).add("account", step.name, "");
            break;
        case StepKind::kClaim:
            say_claim(line, step);
            say_amounts(line, step.least);
            if (!step.most.empty()) say_amounts(line.say("most"), step.most);
            line.add("offer", step.claim.offer, 0).add("meta", step.meta.size(), 0);
            for (const auto& [pool, units] : step.also)
                line.add("also", pool, kNoLabel).add("units", units, kNoLabel);
            break;
        case StepKind::kCancel:
            line.add("tag", step.tag, kNoLabel);
            break;
        case StepKind::kRelease:
            line.add("lease", step.subject, kNoLabel).add("fence", step.distance, 0);
            if (step.broken) line.say("broken");
            break;
        case StepKind::kKeepalive:
            line.add("lease", step.subject, kNoLabel).add("fence", step.distance, 0);
            line.add("interval", step.interval_ns, 0);
            break;
        case StepKind::kAdopt:
            line.add("lease", step.subject, kNoLabel).add("fence", step.distance, 0);
            line.add("tag", step.tag, kNoLabel);
            if (step.refusal != Reason::kOk) line.say(name_of(step.refusal));
            break;
        case StepKind::kKillFailed:
            line.add("lease", step.subject, kNoLabel);
            break;
        case StepKind::kHarvest:
            line.add("lease", step.subject, kNoLabel).add("takes", step.harvest.takes, 0);
            if (step.harvest.parked) line.say("parked");
            if (step.harvest.recalled) line.say("recalled");
            break;
        case StepKind::kTouch:
            line.add("lease", step.subject, kNoLabel).add("value", step.touched, kNoLabel);
            break;
        case StepKind::kAnnounce:
            say_announce(line, step);
            break;
        case StepKind::kWord:
            say_word(line, step);
            break;
        case StepKind::kDeletePool:
            line.say(step.on ? "when-unused" : "now").add("pool", step.pool, kNoLabel);
            break;
        case StepKind::kDrain:
            line.say(step.on ? "on" : "off").add("pool", step.pool, kNoLabel);
            line.add("number", step.number, kNoLabel);
            line.add("if-idle-for", step.if_idle_for_ns, shm::kNever);
            break;
        case StepKind::kSteer:
            line.add("kind", static_cast<uint64_t>(step.steer), kNoLabel);
            line.add("claim", step.subject, kNoLabel).add("tag", step.tag, kNoLabel);
            line.add("interval", step.interval_ns, 0);
            break;
        case StepKind::kSetType:
        case StepKind::kDeleteType:
        case StepKind::kProvide:
            line.add("pool", step.pool, kNoLabel).say(provision_words(step));
            break;
        case StepKind::kProvisioned:
            line.say(provision_words(step)).say("slot=" + slot_name(step.subject));
            break;
        case StepKind::kEntryReport:
        case StepKind::kQueueRead:
        case StepKind::kQueueOperation:
        case StepKind::kOperationDone:
        case StepKind::kWorkerReport:
        case StepKind::kProcess:
        case StepKind::kProbe:
        case StepKind::kBehaviour:
            line.add("pool", step.pool, kNoLabel).say(dispatch_words(step));
            break;
        case StepKind::kApplication:
        case StepKind::kApplicationEvent:
            line.add("pool", step.pool, kNoLabel).say(gang_words(step));
            break;
        case StepKind::kRestart:
            break;
        case StepKind::kTurnEnd:
            line.add("at", step.at_ns, kNoLabel);
            if (step.death == Death::kBeforeClear) line.say("restart-before-clear");
            if (step.death == Death::kAfterClear) line.say("restart-after-clear");
            break;
    }
    return line.text();
}

std::string to_string(const PoolSpec& pool) {
    const core::PoolConfig& config = pool.config;
    Line line(config.kind == shm::PoolKind::kCounted ? "counted" : "worker");
    line.say(pool.name).say(name_of(config.when_busy)).add("slots", config.slots, 0);
    line.add("units_max", config.units_max, 0).add("backlog_max", config.backlog_max, 0);
    line.add("unconfirmed_max", config.unconfirmed_max, 0)
        .add("payload_max", config.payload_max, 0);
    line.add("answer_max", config.answer_max, 0).add("attributes_max", config.attributes_max, 0);
    line.add("ttl", config.reservation_ttl_ns, 0).add("retry_after", config.retry_after_ns, 0);
    line.add("interval_max", config.interval_max_ns, 0).add("grace", config.grace_ns, 0);
    line.add("required", pool.required_label, "").add("quantum", config.quantum_ns, 0);
    if (config.park) line.say("park");
    say_amounts(line, pool.vector);
    if (!pool.create_min.empty()) say_amounts(line.say("create_min"), pool.create_min);
    if (config.release_is_ready) line.say("release_is_ready");
    if (config.expiry == shm::ExpiryMode::kStrict) line.say("strict");
    if (config.expiry == shm::ExpiryMode::kLazy) line.say("lazy");
    if (config.order == shm::PoolOrder::kPriority) line.say("priority");
    if (config.workers_max != 0) line.say(words_of_elastic(config));
    if (config.dispatch) line.say(words_of_dispatch(config));
    if (config.order == shm::PoolOrder::kAccount) line.say(words_of_account_order(config));
    return line.text();
}

std::string to_string(const DecisionLine& decision) {
    Line line(name_of(decision.kind));
    line.add("session", decision.session, kNoLabel).add("pool", decision.pool, kNoLabel);
    line.add("slot", decision.slot, kNoLabel).add("tag", decision.tag, 0);
    line.add("claim", decision.claim, 0).add("said", decision.user_data, 0);
    if (decision.outcome != Outcome::kNone) line.say(name_of(decision.outcome));
    line.say(name_of(decision.reason)).add("first", decision.first_claim, 0);
    line.add("fence", decision.fence, 0).add("value", decision.value, 0);
    line.add("round", decision.round, 0).add("place", decision.place, 0);
    line.add("part", decision.part, 0);
    if (!decision.slots.empty()) line.say("slots:");
    for (size_t from = 0, to = 0; from < decision.slots.size(); from = to) {
        for (to = from + 1; to < decision.slots.size(); ++to) {
            if (decision.slots[to] != decision.slots[to - 1] + 1) break;
        }
        const std::string first = std::to_string(decision.slots[from]);
        line.say(to == from + 1 ? first : first + ".." + std::to_string(decision.slots[to - 1]));
    }
    for (const auto amount : decision.resources)
        line.say("of:" + std::to_string(amount));
    line.add("answer", decision.answer.size(), 0).add("type", decision.type, "");
    line.add("entry", decision.entry, "");
    line.add("account", decision.account, shm::kNoRow).add("other", decision.other_claim, 0);
    if (decision.from_class != decision.to_class) {
        line.say(std::to_string(decision.from_class) + "->" + std::to_string(decision.to_class));
    }
    for (const int64_t cost : decision.cost)
        line.say(std::to_string(cost));
    if (decision.provision) line.say("provision");
    if (decision.may_park) line.say("may-park");
    if (decision.is_void) line.say("void");
    if (decision.holder != Holder{}) {
        line.add("holder-uid", decision.holder.uid, kNoLabel).add("pid", decision.holder.pid, 0);
        line.add("of-claim", decision.holder.claim, 0).add("age", decision.holder.age_ns, 0);
    }
    return line.text();
}

}  // namespace dibs::naive
