// broker/journal/replayer_steering.cpp -- replays an administrator's drains and steering, and what
// is said of applications.
// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "broker/journal/decision_text.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/journal_instant.hpp"
#include "broker/journal/journal_texts.hpp"
#include "broker/journal/json_text.hpp"
#include "broker/journal/offers_text.hpp"
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

// Who has no session is told by the scheduler's answer alone.
void Replayer::tell_administrator(std::string_view word,
                                  std::string_view application,
                                  shm::Reason reason,
                                  uint64_t value) {
    JsonText result;
    result.open_object();
    result.open_object("result");
    result.text("of", word);
    result.text("application", application);
    if (value != 0) result.number("value", value);
    result.text("reason", reason_word(reason));
    result.close_object();
    result.close_object();
    decisions_.push_back(result.line());
}

void Replayer::apply(const journal::Application& added) {
    std::vector<core::GroupSpec> groups;
    std::vector<std::vector<core::Amount>> resources;
    if (added.groups() != nullptr) {
        for (const journal::TaskGroup* group : *added.groups())
            resources.push_back(amounts_of(group->resource()));
        for (const journal::TaskGroup* group : *added.groups())
            groups.push_back({view(group->name()), group->members(), resources[groups.size()]});
    }
    const bool by_session = added.session() != nullptr;
    const std::string name(view(added.application()));
    core::AddApplication command{
        .uid = added.uid(),
        .application = name,
        .pool = pool_row(added.pool()),
        .priority = added.priority(),
        .groups = groups,
        .placeholder_timeout_ns = added.placeholder_timeout_ns(),
        .style = static_cast<shm::GangStyle>(added.style()),
        .parameters = view(added.parameters()),
        .tags = view(added.tags()),
        .created_ns = instant_or_now(added.created_ns()),
        .manager_timeout_ns = added.manager_timeout_ns(),
        .recover = added.recover(),
    };
    if (by_session) {
        command.session = map_.live_session(added.session()->str()).row;
        command.user_data = map_.add_operation({"application", "application", name});
    }
    uint64_t number = 0;
    const shm::Reason reason = core_->apply(command, &number);
    if (!by_session) tell_administrator("application", name, reason, number);
}

void Replayer::apply(const journal::ApplicationEvent& event) {
    const bool by_session = event.session() != nullptr;
    const std::string name(view(event.application()));
    const std::string word = journal::EnumNameApplicationWord(event.kind());
    core::ApplicationEvent command{
        .kind = static_cast<core::ApplicationEvent::Kind>(event.kind()),
        .uid = event.uid(),
        .application = name,
        .task = view(event.task()),
        .group = view(event.group()),
        .priority = event.priority(),
        .assigned = event.assigned(),
    };
    if (by_session) {
        command.session = map_.live_session(event.session()->str()).row;
        command.user_data = map_.add_operation({word, "application", name});
    }
    uint64_t value = 0;
    const shm::Reason reason = core_->apply(command, &value);
    if (!by_session) tell_administrator(word, name, reason, value);
}

}  // namespace dibs::ctl
