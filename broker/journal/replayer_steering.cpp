// broker/journal/replayer_steering.cpp -- replays an administrator's drains and steering.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broker/journal/decision_text.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/replayer.hpp"

namespace dibs::ctl {

void Replayer::apply(const journal::Drained& named, bool on) {
    core::Drain drain{.on = on};
    if (named.pool() != nullptr) {
        drain.pool = pool_row(named.pool());
        if (drain.pool.is_none()) {
            throw JournalError("there is no pool " + json_string(named.pool()->str()));
        }
    }
    if (const auto number = named.number()) {
        if (named.pool() == nullptr) throw JournalError("a number without a pool names no slot");
        drain.number = *number;
        if (core_->find_number(drain.pool, drain.number) == shm::kNoRow) {
            throw JournalError("pool " + json_string(named.pool()->str()) + " has no slot " +
                               std::to_string(*number));
        }
    }
    if (!named.if_idle_for_ns()) return (void)core_->apply(drain);
    if (!on || named.pool() == nullptr || named.number()) {
        throw JournalError("\"if_idle_for_ns\" is of a pool's drain");
    }
    drain.if_idle_for_ns = *named.if_idle_for_ns();
    core::TimeNs left_ns = 0;
    const shm::Reason reason = core_->apply(drain, &left_ns);
    JsonText result;
    result.open_object();
    result.open_object("result");
    result.text("of", "drain");
    result.text("pool", named.pool()->str());
    result.text("reason", reason_word(reason));
    if (reason != shm::Reason::kOk) result.number("interval_ns", left_ns);
    result.close_object();
    result.close_object();
    decisions_.push_back(result.line());
}

void Replayer::apply(const journal::DeletedPool& pool) {
    const std::string name = pool.pool()->str();
    switch (core_->delete_pool(pool_row(pool.pool()), pool.when_unused())) {
        case shm::Reason::kUnknownPool:
            throw JournalError("there is no pool " + json_string(name));
        case shm::Reason::kState:
            throw JournalError("pool " + json_string(name) + " is in use");
        default:
            return;
    }
}

// What an administrator does has no result to expect, so that it must succeed.
void Replayer::apply(const journal::Steered& named, bool ends) {
    const NameMap::Claim& claim = map_.claim(named.claim()->str());
    core::Steer steer;
    steer.kind = !ends                    ? core::Steer::Kind::kRenew
                 : !claim.lease.is_none() ? core::Steer::Kind::kRelease
                                          : core::Steer::Kind::kCancel;
    steer.lease = claim.lease;
    steer.interval_ns = named.interval_ns();
    steer.session = map_.session_there(map_.session_name(claim)).row;
    steer.tag = map_.tag_of(claim);
    steer.number = claim.number;
    core::TimeNs granted_ns = 0;
    const shm::Reason reason = core_->apply(steer, &granted_ns);
    if (reason != shm::Reason::kOk) {
        throw JournalError("claim " + json_string(claim.name) + ": " +
                           std::string(reason_word(reason)));
    }
}

}  // namespace dibs::ctl
