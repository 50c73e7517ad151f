// broker/journal/decoder.cpp -- applies recorded commands to a core, one function per command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/decoder.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_texts.hpp"

namespace dibs::ctl {
namespace {

using journal::Given;
using journal::GivenKind;

std::span<const uint8_t> bytes_of(const flatbuffers::Vector<uint8_t>* bytes) {
    if (bytes == nullptr) return {};
    return {bytes->data(), bytes->size()};
}

// The value of an enum whose last one is `last`.
template <class Enum>
Enum checked(uint8_t value, Enum last, const char* field) {
    if (value > static_cast<uint8_t>(last)) {
        throw JournalError("\"" + std::string(field) + "\" " + std::to_string(value) + " is none");
    }
    return static_cast<Enum>(value);
}

uint32_t open_session(const core::Core& core, const Given& given) {
    if (given.session() >= core.sessions_max() ||
        core.session(given.session()).state != shm::SessionState::kOpen) {
        throw JournalError("there is no open session in row " + std::to_string(given.session()));
    }
    return given.session();
}

shm::Reason refusal_of(const Given& given) {
    const auto refusal = static_cast<journal::Reason>(given.refusal());
    if (*journal::EnumNameReason(refusal) == '\0') {
        throw JournalError("\"refusal\" " + std::to_string(given.refusal()) + " is none");
    }
    return static_cast<shm::Reason>(refusal);
}

void give_session(core::Core& core, const Given& given) {
    std::string why;
    const uint32_t row = core.open_session({.uid = given.uid(),
                                            .gid = given.gid(),
                                            .pid = given.pid(),
                                            .start_time = given.start_time(),
                                            .tags_max = given.tags_max(),
                                            .submission_entries = given.submission_entries(),
                                            .completion_entries = given.completion_entries(),
                                            .up_payload_size = given.up_payload_size(),
                                            .down_payload_size = given.down_payload_size(),
                                            .account = view(given.account())},
                                           &why);
    if (row == shm::kNoRow) throw JournalError(why);
}

// Here, too, it is published before its turn, without a client.
void pledge(core::Core& core, const core::Claim& claim) {
    core::Core::Foreseen seen{};
    if (!core.foresee(claim, &seen)) {
        throw JournalError("a grant that was told before its turn cannot be foreseen");
    }
    shm::Completion told;
    told.sequence = core.session(claim.session).completion_tail + 1;
    told.user_data = claim.user_data;
    shm::set_grant(told, 1, claim.tag, claim.room * static_cast<uint32_t>(shm::kLineSize));
    told.id = seen.lease;
    told.fence = seen.fence;
    told.value = seen.interval_ns;
    told.claim = seen.claim;
    core.pledge(claim, told);
}

void give_claim(core::Core& core, const Given& given) {
    core::Claim claim;
    claim.session = open_session(core, given);
    claim.tag = given.tag();
    claim.units = given.units();
    claim.pool = given.pool();
    claim.user_data = given.user_data();
    claim.timeout_ns = given.timeout_ns();
    claim.deadline_ns = given.deadline_ns();
    claim.interval_ns = given.interval_ns();
    const std::span<const uint8_t> key = bytes_of(given.key());
    if (key.size() > claim.key.size()) throw JournalError("\"key\" is longer than 16 bytes");
    std::copy(key.begin(), key.end(), claim.key.begin());
    claim.when_busy_given = given.when_busy_given();
    claim.when_busy = checked(given.when_busy(), shm::WhenBusy::kCold, "when_busy");
    claim.payload = bytes_of(given.bytes());
    claim.room = given.room();
    claim.room_lines = given.room_lines();
    claim.refusal = refusal_of(given);
    claim.priority = given.priority();
    const std::vector<std::string_view> labels = views(given.labels());
    const std::vector<std::string_view> provisionable = views(given.provisionable());
    const core::ClaimTerms terms{
        .account = view(given.account()),
        .labels = labels,
        .provisionable = provisionable,
        .preempt_mode = checked(given.preempt_mode(), shm::PreemptMode::kForbidden, "preempt_mode"),
        .preempt_grace_ns = given.grace_ns(),
        .requeue = given.requeue(),
        .enqueued_ns = given.enqueued_ns(),
        .confirmed_ns = given.event_ns(),
    };
    if (given.terms()) claim.terms = &terms;
    if (given.pledged()) pledge(core, claim);
    core.apply(claim);
}

void give_adopt(core::Core& core, const Given& given) {
    core::Adopt adopt;
    adopt.session = open_session(core, given);
    adopt.tag = given.tag();
    adopt.lease = given.lease();
    adopt.fence = given.fence();
    adopt.user_data = given.user_data();
    adopt.room = given.room();
    adopt.room_lines = given.room_lines();
    adopt.refusal = refusal_of(given);
    core.apply(adopt);
}

void give_announce(core::Core& core, const Given& given) {
    const std::vector<std::string_view> labels = views(given.labels());
    const std::span<const uint8_t> attributes = bytes_of(given.bytes());
    core::Announce announce;
    announce.session = open_session(core, given);
    announce.pool = given.pool();
    announce.worker_tag = given.worker_tag();
    announce.name = view(given.name());
    announce.labels = labels;
    announce.attributes = {reinterpret_cast<const char*>(attributes.data()), attributes.size()};
    announce.is_protected = given.protected_();
    announce.ready = given.ready();
    announce.room = given.room();
    announce.user_data = given.user_data();
    announce.refusal = refusal_of(given);
    core.apply(announce);
}

void give_word(core::Core& core, const Given& given) {
    core::WorkerWord word;
    word.kind = checked(given.word(), core::WorkerWord::Kind::kUnprotect, "word");
    word.try_again = given.try_again();
    word.then_ready = given.then_ready();
    word.session = open_session(core, given);
    word.slot = given.slot();
    word.round = given.round();
    word.code = given.code();
    word.user_data = given.user_data();
    word.answer = bytes_of(given.bytes());
    core.apply(word);
}

void give_steer(core::Core& core, const Given& given) {
    core::Steer steer;
    steer.kind = checked(given.steer(), core::Steer::Kind::kCancel, "steer");
    steer.lease = given.lease();
    steer.interval_ns = given.interval_ns();
    steer.session = given.session();
    steer.tag = given.tag();
    steer.number = given.number();
    core::TimeNs unused = 0;
    (void)core.apply(steer, &unused);
}

void give_report(core::Core& core, const Given& given) {
    const std::vector<std::string_view> labels = views(given.labels());
    core::Report report;
    report.kind = checked(given.report(), core::Report::Kind::kAbsent, "report");
    report.pool = given.pool();
    report.worker = view(given.name());
    report.claim = given.number();
    report.labels = labels;
    report.event_ns = given.event_ns();
    report.user_data = given.user_data();
    core.apply(report);
}

void give_pull(core::Core& core, const Given& given) {
    std::vector<std::vector<std::string_view>> labels;
    std::vector<core::Pull::Worker> workers;
    if (given.pullers() != nullptr) {
        labels.reserve(given.pullers()->size());
        for (const journal::PullingWorker* puller : *given.pullers()) {
            labels.push_back(views(puller->labels()));
            workers.push_back({view(puller->worker()), labels.back()});
        }
    }
    core.apply(core::Pull{.pool = given.pool(),
                          .workers = workers,
                          .event_ns = given.event_ns(),
                          .user_data = given.user_data()});
}

void give_pool_goes(core::Core& core, const Given& given) {
    if (given.pool() >= core.pools() ||
        core.delete_pool(given.pool(), given.on()) != shm::Reason::kOk) {
        throw JournalError("the pool in row " + std::to_string(given.pool()) + " cannot go");
    }
}

void give_unassign(core::Core& core, const Given& given) {
    core.apply(core::Unassign{.pool = given.pool(),
                              .claim = given.number(),
                              .worker = view(given.name()),
                              .event_ns = given.event_ns(),
                              .error = view(given.error()),
                              .user_data = given.user_data()});
}

void give_update(core::Core& core, const Given& given) {
    const std::vector<std::string_view> labels = views(given.labels());
    const std::vector<std::string_view> provisionable = views(given.provisionable());
    core.apply(core::UpdateClaim{.claim = given.number(),
                                 .account_given = given.account_given(),
                                 .account = view(given.account()),
                                 .labels_given = given.labels_given(),
                                 .labels = labels,
                                 .provisionable_given = given.provisionable_given(),
                                 .provisionable = provisionable,
                                 .event_ns = given.event_ns(),
                                 .user_data = given.user_data()});
}

}  // namespace

void give(core::Core& core, const Given& given) {
    switch (given.command()) {
        case GivenKind::session:
            return give_session(core, given);
        case GivenKind::session_dies:
            return core.session_died(given.session());
        case GivenKind::claim:
            return give_claim(core, given);
        case GivenKind::cancel:
            return core.apply(
                core::Cancel{open_session(core, given), given.tag(), given.user_data()});
        case GivenKind::release:
            return core.apply(core::Release{open_session(core, given),
                                            given.broken(),
                                            given.lease(),
                                            given.fence(),
                                            given.user_data()});
        case GivenKind::keepalive:
            return core.apply(core::Keepalive{open_session(core, given),
                                              given.lease(),
                                              given.fence(),
                                              given.interval_ns(),
                                              given.user_data()});
        case GivenKind::adopt:
            return give_adopt(core, given);
        case GivenKind::kill_failed:
            return core.apply(core::KillFailed{given.lease()});
        case GivenKind::announce:
            return give_announce(core, given);
        case GivenKind::word:
            return give_word(core, given);
        case GivenKind::drain:
            return core.apply(core::Drain{
                given.pool(),
                given.on(),
                given.number() == 0 ? shm::kNoRow : static_cast<uint32_t>(given.number() - 1)});
        case GivenKind::steer:
            return give_steer(core, given);
        case GivenKind::report:
            return give_report(core, given);
        case GivenKind::pull:
            return give_pull(core, given);
        case GivenKind::unassign:
            return give_unassign(core, given);
        case GivenKind::update_claim:
            return give_update(core, given);
        case GivenKind::pool_goes:
            return give_pool_goes(core, given);
        case GivenKind::none:
            break;
    }
    throw JournalError("\"given\" names no command");
}

}  // namespace dibs::ctl
