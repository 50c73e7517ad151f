// broker/journal/replayer.cpp -- replays turns, with one function per command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/replayer.hpp"

#include <algorithm>
#include <utility>

#include "broker/core/decision_fields.hpp"
#include "broker/core/decision_sum.hpp"
#include "broker/journal/decoder.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_instant.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/offers_text.hpp"

namespace dibs::ctl {
namespace {

using Bytes = flatbuffers::Vector<uint8_t>;
constexpr uint32_t kPayloadSizeMax = 1048576;  // far above what any pool takes

using WordKind = core::WorkerWord::Kind;

std::span<const uint8_t> bytes_of(std::string_view text) {
    return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::span<const uint8_t> bytes_of(const flatbuffers::String* text, const Bytes* bytes) {
    if (text != nullptr && bytes != nullptr) throw JournalError("the bytes are given twice");
    if (bytes != nullptr) return {bytes->data(), bytes->size()};
    return bytes_of(view(text));
}

core::Key key_of(const flatbuffers::String* text) {
    core::Key key{};
    const std::string_view bytes = view(text);
    if (bytes.size() > key.size()) throw JournalError("\"key\" is longer than 16 bytes");
    std::copy(bytes.begin(), bytes.end(), key.begin());
    return key;
}

template <class Code>
shm::Reason reason_of(const flatbuffers::Optional<Code>& code) {
    return code ? static_cast<shm::Reason>(*code) : shm::Reason::kOk;
}

core::MemberOf member_of(const journal::MemberOf* member) {
    if (member == nullptr) return {};
    return {.application = view(member->application()),
            .task = view(member->task()),
            .group = view(member->group()),
            .priority = member->priority()};
}

core::ClaimTerms terms_of(const journal::Claim& claim,
                          std::span<const std::string_view> labels,
                          std::span<const std::string_view> provisionable) {
    shm::PreemptMode mode = shm::PreemptMode::kForbidden;
    if (claim.preemptible()) {
        mode = claim.grace_ns() == 0 ? shm::PreemptMode::kAtOnce : shm::PreemptMode::kWithGrace;
    }
    return {
        .account = view(claim.account()),
        .labels = labels,
        .provisionable = provisionable,
        .preempt_mode = mode,
        .preempt_grace_ns = claim.grace_ns(),
        .requeue = claim.requeue(),
        .enqueued_ns = instant_or_now(claim.enqueued_ns()),
        .confirmed_ns = instant_or_now(claim.event_ns()),
    };
}

}  // namespace

Replayer::Replayer(const core::Limits& limits, uint64_t memory_max)
    : memory_max_(memory_max), state_(core::state_size(limits)) {
    core::format_state(state(), limits);
    core_ = std::make_unique<core::Core>(state());
}

// --- the turn

void Replayer::apply(const journal::Line& line) {
    const bool first = std::exchange(first_, false);
    if (line.limits() != nullptr) {
        if (!first) throw JournalError("\"limits\" is not the journal's first command");
        return;  // the creator of this replayer has read them
    }
    if (line.state() != nullptr) {
        if (!first) throw JournalError("\"state\" is not the journal's first command");
        return apply(*line.state());
    }
    if (recording_ || of_recording(line)) return apply_recorded(line);
    if (line.advance() != nullptr) return apply(*line.advance());
    open_turn();
    if (line.turn() != nullptr) return close_turn();
    if (line.pool() != nullptr) apply(*line.pool());
    if (line.session() != nullptr) apply(*line.session());
    if (line.session_dies() != nullptr) session_dies(*line.session_dies());
    if (line.holder_dies() != nullptr) holder_dies(*line.holder_dies());
    if (line.claim() != nullptr) apply(*line.claim());
    if (line.place() != nullptr) apply(*line.place());
    if (line.route() != nullptr) apply(*line.route());
    if (line.cancel() != nullptr) apply(*line.cancel());
    if (line.release() != nullptr) apply(*line.release(), "release");
    if (line.fail() != nullptr) apply(*line.fail(), "fail");
    if (line.keepalive() != nullptr) apply(*line.keepalive());
    if (line.adopt() != nullptr) apply(*line.adopt());
    if (line.kill_failed() != nullptr) apply(*line.kill_failed());
    if (line.harvest() != nullptr) apply(*line.harvest());
    if (line.touch() != nullptr) apply(*line.touch());
    if (line.announce() != nullptr) apply(*line.announce());
    if (line.ready() != nullptr) apply(*line.ready(), WordKind::kReady, "ready");
    if (line.confirm() != nullptr) apply(*line.confirm());
    if (line.refuse() != nullptr) apply(*line.refuse());
    if (line.done() != nullptr) apply(*line.done());
    if (line.withdraw() != nullptr) apply(*line.withdraw(), WordKind::kWithdraw, "withdraw");
    if (line.protect() != nullptr) apply(*line.protect(), WordKind::kProtect, "protect");
    if (line.unprotect() != nullptr) apply(*line.unprotect(), WordKind::kUnprotect, "unprotect");
    if (line.drain() != nullptr) apply(*line.drain(), true);
    if (line.undrain() != nullptr) apply(*line.undrain(), false);
    if (line.delete_pool() != nullptr) apply(*line.delete_pool());
    if (line.revoke() != nullptr) apply(*line.revoke(), true);
    if (line.renew() != nullptr) apply(*line.renew(), false);
    if (line.application() != nullptr) apply(*line.application());
    if (line.application_event() != nullptr) apply(*line.application_event());
    if (line.account() != nullptr) give(*core_, *line.account());
    if (line.delete_account() != nullptr) give(*core_, *line.delete_account());
    if (line.reset_balance() != nullptr) give(*core_, *line.reset_balance());
    if (line.report() != nullptr) apply(*line.report());
    if (line.pull() != nullptr) apply(*line.pull());
    if (line.unassign() != nullptr) apply(*line.unassign());
    if (line.update_claim() != nullptr) apply(*line.update_claim());
    if (line.type() != nullptr) give(*core_, *line.type());
    if (line.delete_type() != nullptr) give(*core_, *line.delete_type());
    if (line.provide() != nullptr) apply(*line.provide());
    if (line.provisioned() != nullptr) apply(*line.provisioned());
    if (line.queue_read() != nullptr) apply(*line.queue_read());
    if (line.queue_operation() != nullptr) apply(*line.queue_operation());
    if (line.operation_done() != nullptr) apply(*line.operation_done());
    if (line.process() != nullptr) apply(*line.process());
    if (line.probe() != nullptr) apply(*line.probe());
    if (line.behaviour() != nullptr) apply(*line.behaviour());
    collect();
    if (core_->turn_full()) {
        throw JournalError("the turn holds more than its undo log can take back: close it earlier");
    }
}

void Replayer::open_turn() {
    if (turn_open_) return;
    turn_open_ = true;
    collected_ = 0;
    core_->begin_turn(now_);
    if (tells_turns_) {
        decisions_.push_back(R"({"turn":{"now_ns":)" + std::to_string(core_->now()) + "}}");
    }
    // Where that alone fills the turn's log, as much as it takes goes before the journal's
    // commands.
    if (recording_ || !core_->turn_full()) return;
    settle_turn();
    run_work_left();
    open_turn();
}

void Replayer::close_turn() {
    settle_turn();
    run_work_left();
}

void Replayer::settle_turn() {
    core_->decide();
    collect();
    core_->commit();
    core_->clear();
    turn_open_ = false;
}

void Replayer::run_work_left() {
    while (core_->work_left()) {
        open_turn();
        settle_turn();
    }
}

void Replayer::collect() {
    const std::span<const core::Decision> decisions = core_->decisions();
    std::vector<uint32_t> numbers;
    for (; collected_ < decisions.size(); ++collected_) {
        const core::Decision& decision = decisions[collected_];
        numbers.clear();
        for (const core::DecidedSlot& slot : core_->decided_slots(decision))
            numbers.push_back(slot.number);
        learn_account(decision);
        learn_type(decision);
        if (!recording_) map_.learn(decision);
        std::span<const int64_t> amounts;
        const bool has_parts = decision.resources_count != 0;
        if (has_parts || core::lists(decision.kind, core::Form::kCost)) {
            amounts = core_->decided_amounts(decision);
        }
        if (has_parts || decision.reason == shm::Reason::kUnavailable) {
            map_.name_resources(decision.pool, core_->resources(decision.pool));
        }
        decisions_.push_back(decision_text(decision, numbers, map_.names(), amounts));
        if (!recording_) continue;
        sums_.push_back(core::sum_of(*core_, decision));
        told_.push_back(decisions_.back());
    }
}

std::vector<std::string> Replayer::take_decisions() {
    return std::exchange(decisions_, {});
}

void Replayer::finish() const {
    if (recording_ && !ended_) {
        throw JournalError("the recording was cut: it has no end behind turn " +
                           std::to_string(recorded_turns_));
    }
    if (turn_open_) throw JournalError(R"(the journal ends inside a turn: close it, {"turn":{}})");
}

// The scheduler takes no later time from its rows for sound.
constexpr core::TimeNs kLastInstant = (uint64_t{1} << 62U) - 1;

void Replayer::apply(const journal::Advance& advance) {
    if (turn_open_) throw JournalError("time moves between turns only: close the turn first");
    if (advance.to_ns().has_value() == advance.by_ns().has_value()) {
        throw JournalError("\"advance\" has exactly one of \"to_ns\" and \"by_ns\"");
    }
    if (advance.by_ns() && *advance.by_ns() > shm::kNever - now_) {
        throw JournalError("time passes its end");
    }
    const core::TimeNs to = advance.to_ns() ? *advance.to_ns() : now_ + *advance.by_ns();
    if (to < now_) {
        throw JournalError("time goes back: from " + std::to_string(now_) + " to " +
                           std::to_string(to));
    }
    if (to > kLastInstant) throw JournalError("time passes its end");
    while (advance.timers() && core_->next_turn() <= to) {
        now_ = std::max(now_, core_->next_turn());
        open_turn();
        close_turn();
    }
    now_ = to;
}

// --- pools and sessions

void Replayer::apply(const journal::Pool& pool) {
    give(*core_, pool);
    learn_pool(pool);
}

void Replayer::learn_pool(const journal::Pool& pool) {
    map_.name_pool(pool_row(pool.name()), pool.name()->str());
}

void Replayer::apply(const journal::Session& session) {
    if (session.tags_max() == 0 || session.tags_max() > shm::kTagsMax) {
        throw JournalError("\"tags_max\" is " + std::to_string(session.tags_max()) +
                           ": it is 1 to " + std::to_string(shm::kTagsMax));
    }
    ++sessions_;
    std::string why;
    const uint32_t row = core_->open_session({.uid = session.uid(),
                                              .gid = session.gid(),
                                              .pid = session.pid().value_or(sessions_),
                                              .start_time = session.start_time(),
                                              .tags_max = session.tags_max(),
                                              .account = view(session.account())},
                                             &why);
    if (row == shm::kNoRow) throw JournalError(why);
    map_.add_session(session.name()->str(), row, session.tags_max());
}

void Replayer::session_dies(const journal::SessionName& session) {
    core_->session_died(map_.session_died(session.session()->str()));
}

void Replayer::holder_dies(const journal::SessionName& session) {
    core_->session_died(map_.holder_died(session.session()->str()), true);
}

core::PoolId Replayer::pool_row(const flatbuffers::String* name) const {
    return core_->find_pool(view(name));
}

core::SessionId Replayer::speaker(const flatbuffers::String* named, const std::string& otherwise) {
    return map_.live_session(named == nullptr ? otherwise : named->str()).row;
}

// --- claims and leases

void Replayer::apply(const journal::Claim& claim) {
    if (claim.pool() == nullptr) throw JournalError("the claim has no \"pool\"");
    claim_from(claim, {.pool = pool_row(claim.pool())});
}

void Replayer::claim_from(const journal::Claim& claim, const Routed& routed) {
    if (claim.payload_size() && (claim.payload() != nullptr || claim.payload_bytes() != nullptr)) {
        throw JournalError("the bytes are given twice");
    }
    if (claim.payload_size().value_or(0) > kPayloadSizeMax) {
        throw JournalError("\"payload_size\" is over " + std::to_string(kPayloadSizeMax));
    }
    if (claim.timeout_ns() && claim.deadline_ns()) {
        throw JournalError("the deadline is given twice: as \"timeout_ns\" and \"deadline_ns\"");
    }
    const std::vector<uint8_t> zeroes(claim.payload_size().value_or(0));
    const NameMap::Claim& named = map_.add_claim(
        claim.claim()->str(), claim.session()->str(), core_->counters().arrival_next);
    const core::MemberOf member = member_of(claim.member());
    const std::vector<std::string_view> labels = views(claim.labels());
    const std::vector<std::string_view> provisionable = views(claim.provisionable());
    const core::ClaimTerms terms = terms_of(claim, labels, provisionable);
    const std::vector<core::Amount> least = amounts_of(claim.min());
    const std::vector<core::Amount> most = amounts_of(claim.max());
    std::vector<core::PoolUnits> also;
    if (claim.also() != nullptr) {
        for (const journal::PoolUnits* units : *claim.also())
            also.push_back({pool_row(units->pool()), units->units()});
    }
    core_->apply(core::Claim{
        .session = map_.live_session(claim.session()->str()).row,
        .tag = named.tag,
        .units = claim.units(),
        .pool = routed.pool,
        .user_data = named.number,
        .timeout_ns = claim.timeout_ns().value_or(shm::kNever),
        .deadline_ns = claim.deadline_ns().value_or(shm::kNever),
        .interval_ns = claim.interval_ns(),
        .key = key_of(claim.key()),
        .when_busy_given = claim.when_busy().has_value(),
        .when_busy =
            static_cast<shm::WhenBusy>(claim.when_busy().value_or(journal::WhenBusy::wait)),
        .payload = claim.payload_size() ? std::span<const uint8_t>(zeroes)
                                        : bytes_of(claim.payload(), claim.payload_bytes()),
        .refusal = claim.refusal() ? reason_of(claim.refusal()) : routed.refusal,
        .terms = &terms,
        .priority = claim.priority(),
        .by_word = claim.by_word(),
        .least = least,
        .most = most,
        .meta = claim.meta() == nullptr ? std::string_view() : claim.meta()->string_view(),
        .offer = claim.offer() ? *claim.offer() + 1 : 0,
        .route = routed.route,
        .also = also,
        .member = claim.member() == nullptr ? nullptr : &member,
    });
}

void Replayer::apply(const journal::ClaimName& cancel) {
    const NameMap::Claim& claim = map_.claim(cancel.claim()->str());
    core_->apply(core::Cancel{
        .session = speaker(cancel.session(), map_.session_name(claim)),
        .tag = map_.tag_of(claim),
        .user_data = map_.add_operation({"cancel", "claim", claim.name}),
    });
}

void Replayer::apply(const journal::Release& release, std::string_view word) {
    const NameMap::Claim& claim = map_.claim(release.claim()->str());
    core_->apply(core::Release{
        .session = speaker(release.session(), map_.session_name(claim)),
        .broken = word == "fail",
        .lease = release.lease().value_or(claim.lease),
        .fence = release.fence().value_or(claim.fence),
        .user_data = map_.add_operation({std::string(word), "claim", claim.name}),
    });
}

void Replayer::apply(const journal::Keepalive& keepalive) {
    const NameMap::Claim& claim = map_.claim(keepalive.claim()->str());
    core_->apply(core::Keepalive{
        .session = speaker(keepalive.session(), map_.session_name(claim)),
        .lease = keepalive.lease().value_or(claim.lease),
        .fence = keepalive.fence().value_or(claim.fence),
        .interval_ns = keepalive.interval_ns(),
        .user_data = map_.add_operation({"keepalive", "claim", claim.name}),
    });
}

void Replayer::apply(const journal::Adopt& adopt) {
    const NameMap::Claim& claim = map_.claim(adopt.claim()->str());
    const NameMap::Session& session = map_.live_session(adopt.session()->str());
    core_->apply(core::Adopt{
        .session = session.row,
        .tag = NameMap::lowest_free_tag(session),
        .lease = adopt.lease().value_or(claim.lease),
        .fence = adopt.fence().value_or(claim.fence),
        .user_data = map_.add_operation({"adopt", "claim", claim.name}),
        .refusal = reason_of(adopt.refusal()),
    });
}

void Replayer::apply(const journal::KillFailed& failed) {
    core_->apply(core::KillFailed{
        .lease = failed.lease().value_or(map_.claim(failed.claim()->str()).lease)});
}

void Replayer::apply(const journal::Harvest& harvest) {
    core_->apply(core::Harvest{
        .lease = harvest.lease().value_or(map_.claim(harvest.claim()->str()).lease),
        .takes = harvest.takes(),
        .parked = harvest.parked(),
        .recalled = harvest.recalled(),
    });
}

void Replayer::apply(const journal::Touch& touch) {
    core_->apply(core::Touch{
        .lease = touch.lease().value_or(map_.claim(touch.claim()->str()).lease),
        .value = touch.value(),
    });
}

// --- workers

void Replayer::apply(const journal::Announce& announce) {
    const std::string session = announce.session()->str();
    const core::SessionId row = map_.live_session(session).row;
    const NameMap::Slot& slot = map_.add_slot(announce.slot()->str(), session);
    const std::vector<std::string_view> labels = views(announce.labels());
    const std::string attributes = joined_attributes(announce.attributes());
    const std::vector<core::Amount> resources = amounts_of(announce.vector());
    const uint64_t operation = map_.add_operation({"announce", "slot", slot.name});
    core_->apply(core::Announce{
        .session = row,
        .pool = pool_row(announce.pool()),
        .worker_tag = operation,
        .name = announce.name() == nullptr ? std::string_view(slot.name) : view(announce.name()),
        .labels = labels,
        .attributes = attributes,
        .resources = resources,
        .parts = announce.parts(),
        .is_protected = announce.protected_(),
        .ready = announce.ready(),
        .user_data = operation,
        .refusal = reason_of(announce.refusal()),
        .order =
            announce.order() == nullptr ? core::SlotId{} : map_.slot(announce.order()->str()).id,
        .type = view(announce.type()),
    });
}

core::WorkerWord Replayer::worker_word(WordKind kind,
                                       std::string_view word,
                                       const std::string& slot,
                                       const flatbuffers::String* session,
                                       flatbuffers::Optional<uint32_t> round) {
    const NameMap::Slot& named = map_.slot(slot);
    return {
        .kind = kind,
        .session = speaker(session, named.session),
        .slot = named.id,
        .round = round.value_or(named.round),
        .user_data = map_.add_operation({std::string(word), "slot", named.name}),
    };
}

void Replayer::apply(const journal::SlotWord& slot, WordKind kind, std::string_view word) {
    core_->apply(worker_word(kind, word, slot.slot()->str(), slot.session(), slot.round()));
}

void Replayer::apply(const journal::Confirm& confirm) {
    core::WorkerWord word = worker_word(
        WordKind::kConfirm, "confirm", confirm.slot()->str(), confirm.session(), confirm.round());
    word.answer = bytes_of(confirm.answer(), confirm.answer_bytes());
    core_->apply(word);
}

void Replayer::apply(const journal::Refuse& refuse) {
    core::WorkerWord word = worker_word(
        WordKind::kRefuse, "refuse", refuse.slot()->str(), refuse.session(), refuse.round());
    word.try_again = refuse.try_again();
    word.code = refuse.code();
    core_->apply(word);
}

void Replayer::apply(const journal::Answer& done) {
    core::WorkerWord word =
        worker_word(WordKind::kDone, "done", done.slot()->str(), done.session(), done.round());
    word.answer = bytes_of(done.answer(), done.answer_bytes());
    word.then_ready = done.then_ready();
    core_->apply(word);
}

}  // namespace dibs::ctl
