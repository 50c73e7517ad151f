// broker/turn/application/operations.cpp -- translates what managers of applications submit into
// commands of the core.
//
// A manager is told of each state of its application. It has all of them within the completions
// that are kept for each of its applications, however late it reads: so one that would need more
// than its session has is refused.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "broker/core/look.hpp"
#include "broker/turn/operations.hpp"
#include "schemas/application_generated.h"
#include "shm/app_state.hpp"
#include "shm/operation.hpp"

namespace dibs {

using core::Look;
using shm::Reason;

namespace {

bool is_result_of(const core::Decision& decision,
                  const Session& session,
                  const shm::Submission& entry) {
    return decision.kind == core::DecisionKind::kResult && decision.session.number == session.row &&
           decision.user_data == entry.user_data;
}

}  // namespace

// Those that it manages no more are forgotten, so no row stands there twice.
uint64_t Operations::words_of_applications(Session& session) const {
    std::erase_if(session.applications, [&](uint32_t row) {
        const shm::AppRow& app = Look::application(core_, row);
        return app.state == shm::AppState::kFree || app.manager != session.row ||
               has_ended(app.state);
    });
    return uint64_t{shm::kCompletionsPerApplication} * session.applications.size();
}

bool Operations::may_manage(Session& session) const {
    const uint64_t credit = session.sizes.completion_entries - session.sizes.submission_entries;
    return words_of_applications(session) + shm::kCompletionsPerApplication +
               words_of_roles(session) + shm::kCompletionsPerSlot * uint64_t{session.slots} <=
           credit;
}

Reason Operations::application_refusal(const Session& session, const shm::Submission& entry) const {
    const core::AddApplication& added = applications_.added();
    if (!quotas_.names(session, entry.pool)) return Reason::kNotAllowed;
    if (!Quotas::priority(session, added.priority)) return Reason::kNotAllowed;
    const Reason reason = quotas_.application(session.peer.uid, added.groups.size());
    if (reason != Reason::kOk) return reason;
    uint32_t most = 0;
    if (!quotas_.may_reserve(session.peer, added.application, added.groups, &most))
        return Reason::kLimit;
    return quotas_.bring(session, entry.pool, added.tags.size(), {});
}

void Operations::application(Session& session,
                             const shm::Submission& entry,
                             std::span<const uint8_t> payload) {
    if (!applications_.read(payload)) return own_result(session, entry, Reason::kPayload);
    const wire::AppWord word = applications_.word();
    const bool adds = word == wire::AppWord::add;
    Reason refusal = adds ? application_refusal(session, entry) : Reason::kOk;
    if (word == wire::AppWord::add_task) refusal = quotas_.task(session.peer.uid);
    const bool manages = adds || word == wire::AppWord::adopt;
    if (refusal == Reason::kOk && manages && !may_manage(session)) refusal = Reason::kNoRoom;
    if (refusal != Reason::kOk) return own_result(session, entry, refusal);
    // The result may stand behind what the command has decided, and claims of this turn before it.
    const size_t first = core_.decisions().size();
    if (adds) {
        core::AddApplication command = applications_.added();
        command.session = session.row;
        command.pool = uint32_t{entry.pool};
        command.user_data = entry.user_data;
        const core::TimeNs age_ns = applications_.age_ns();
        if (age_ns != 0) command.created_ns = core_.now() - std::min(core_.now(), age_ns);
        core_.apply(command);
    } else {
        core::ApplicationEvent command = applications_.event();
        command.session = session.row;
        command.user_data = entry.user_data;
        core_.apply(command);
    }
    const auto decisions = core_.decisions();
    size_t place = first;
    while (place < decisions.size() && !is_result_of(decisions[place], session, entry))
        ++place;
    const Reason reason = after(entry, place);
    if (reason != Reason::kOk || !manages) return;
    const std::string_view name =
        adds ? applications_.added().application : applications_.event().application;
    const uint32_t row = Look::find_application(core_, session.peer.uid, name);
    if (row == shm::kNoRow) return;
    session.applications.push_back(row);
    if (!adds) adopted_.push_back({place, Look::application(core_, row).number});
}

}  // namespace dibs
