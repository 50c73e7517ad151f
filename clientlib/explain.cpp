// clientlib/explain.cpp -- asks the broker why a claim waits, over an admin conversation.
//
// The tables are those of schemas/admin.fbs; this file knows two shapes: a request about a tag,
// written as the bytes that it always has, and the explanation in the answer. A test compares both
// with the generated code.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"
#include "clientlib/clock.hpp"
#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

constexpr size_t kReasonsSize = 4096;

void tell(const WaitStory& story, dibs_explanation* why) {
    const WaitFacts& facts = story.facts;
    why->reason = facts.reason;
    why->obstacle = facts.obstacle;
    why->position = facts.position;
    why->waiting = facts.waiting;
    why->units = facts.units;
    why->confirmed = facts.confirmed;
    why->idle = facts.idle;
    why->slots = facts.slots;
    why->waited_ns = public_duration(facts.waited_ns);
    why->left_ns = public_duration(facts.left_ns);
    why->claim = facts.number;
    why->account_class = facts.at_class;
    why->class_reason = facts.class_reason;
    why->preempt = facts.preempt;
    why->better = facts.better;
    why->fitting = facts.fitting;
    why->fanout_max = facts.fanout_max;
    why->fanout_held = facts.fanout_held;
    why->label_limit = facts.label_limit;
    why->label_held = facts.label_held;
    memcpy(why->account, story.account, sizeof why->account);
    memcpy(why->label, story.label, sizeof why->label);
    why->holder = {};
    if (facts.holder_uid == shm::kNoRow) return;
    const bool hidden = facts.holder_uid == shm::kHiddenUid;
    why->holder.uid = hidden ? DIBS_HIDDEN_UID : facts.holder_uid;
    why->holder.pid = facts.holder_pid;
    why->holder.age_ns = public_duration(facts.holder_age_ns);
    why->holder.claim = facts.holder_number != 0 ? facts.holder_number : DIBS_HIDDEN_CLAIM;
}

// The broker knows of the claim once it has read it.
int wait_until_read(Session& session, uint64_t until_ns) {
    session.publish();
    while (shm::committed_submissions(*session.down) < session.submissions.tail()) {
        session.look_whether_ended();
        if (session.end_code != 0) return session.end_code;
        if (monotonic_ns() > until_ns) return DIBS_ENOBROKER;
        sched_yield();
    }
    return DIBS_OK;
}

int explain(Session& session, uint16_t tag, dibs_explanation* why) {
    const uint64_t until_ns = monotonic_ns() + kAnswerTimeoutNs;
    int code = wait_until_read(session, until_ns);
    if (code != DIBS_OK) return code;
    AdminConnection connection;
    connection.wait_until(until_ns);
    code = connection.reach(session.address);
    if (code == DIBS_OK) code = greet(connection);
    if (code != DIBS_OK) return code;
    ExplainRequest request;
    request.session = session.name;
    request.tag = tag;
    alignas(8) uint8_t answer[kReasonsSize];
    const int size = connection.ask(&request, sizeof request, answer, sizeof answer);
    if (size < 0) return size;
    if (size > static_cast<int>(sizeof answer)) return DIBS_EHANDSHAKE;
    WaitStory story;
    switch (read_explanation(answer, static_cast<size_t>(size), &story)) {
        case ExplanationFound::kFacts:
            tell(story, why);
            return DIBS_OK;
        case ExplanationFound::kNotFound:
            return DIBS_ENOTFOUND;
        case ExplanationFound::kNonsense:
            break;
    }
    return DIBS_EHANDSHAKE;
}

}  // namespace
}  // namespace dibs::client

int dibs_explain(dibs_session* session, uint64_t ticket, dibs_explanation* why) {
    const int code = dibs::client::check_open(session);
    if (code != DIBS_OK) return code;
    if (why == nullptr) return DIBS_EARGUMENT;
    if (why->size < sizeof *why) return DIBS_ESIZE;
    const auto tag = static_cast<uint32_t>(ticket);
    if (tag >= session->sizes.tags || session->tags[tag].use != ticket >> 32) return DIBS_ENOTFOUND;
    if (session->tags[tag].state != dibs::client::TagState::kClaiming) return DIBS_ENOTFOUND;
    return dibs::client::explain(*session, static_cast<uint16_t>(tag), why);
}
