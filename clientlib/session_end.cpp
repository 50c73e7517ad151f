// clientlib/session_end.cpp -- answers everything that is outstanding once a session is over.
// SPDX-License-Identifier: Apache-2.0
#include "clientlib/pool_set.hpp"
#include "clientlib/session.hpp"

namespace dibs::client {

void Session::end(int code, int reason) {
    if (end_code != 0) return;
    end_code = code;
    end_reason = reason == 0 ? DIBS_EMALFORMED : reason;
    parked_tag = kNone;
    for (uint32_t tag = 0; tag < sizes.tags; ++tag) {
        Tag& row = tags[tag];
        if (row.state == TagState::kLive) {
            if (row.event == 0) ++events_to_reap;
            row.event = shm::LeaseEvent::kEnded;
            row.state = TagState::kOver;
            row.end_code = code;
            if (row.requeue) --claims_open;
            row.requeue = false;
            --live;
            ++over;
        }
        if (row.state == TagState::kAdopting || row.state == TagState::kParked) free_tag_row(tag);
        if (row.state != TagState::kClaiming) continue;
        dibs_completion out = {};
        out.user_data = row.user_data;
        out.kind = DIBS_CLAIM_ENDED;
        out.outcome = DIBS_BROKER_LOST;
        out.code = code;
        out.pool = row.pool;
        SetWait::Member* member = member_of_tag(*this, tag);
        if (tag == awaited_tag) {
            *awaited = out;
            awaited_tag = kNone;
        } else if (member != nullptr) {
            take_set_end(*this, *member, out);
        } else if (!row.abandoned && !stash.full()) {
            stash.push(out);
        }
        free_tag_row(tag);
    }
    for (uint32_t index = 0; index < answers_max; ++index) {
        if (!answers[index].pending) continue;
        dibs_completion out = {};
        out.user_data = answers[index].user_data;
        out.kind = DIBS_RESULT;
        out.code = code;
        if (index == awaited_answer) {
            *awaited = out;
            awaited_answer = kNone;
        } else if (!answers[index].discarded && !stash.full()) {
            stash.push(out);
        }
        free_answer_row(index);
    }
}

}  // namespace dibs::client
