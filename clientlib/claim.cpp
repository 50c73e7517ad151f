// clientlib/claim.cpp -- the synchronous claim: one line, one store and load, one spin.
// It spins on the line of the answer.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "clientlib/session.hpp"
#include "shm/histogram.hpp"

namespace dibs::client {
namespace {

// What a claim without options asks for.
constexpr dibs_claim_options kPlainClaim = [] {
    dibs_claim_options plain = {};
    plain.size = sizeof plain;
    plain.timeout_ns = DIBS_FOREVER;
    return plain;
}();

// The claim without options, in few steps: a caller waits for its line.
int submit_plain_claim(Session& session, uint32_t pool, uint32_t& tag) {
    if (!session.ready_for_claim(pool)) [[unlikely]]
        return session.submit_checked_claim(pool, kPlainClaim, 0, tag);
    tag = session.take_claim_tag(pool, 1, 0);
    dibs::shm::Submission entry;
    entry.user_data = claim_name(tag, session.tags[tag]);
    dibs::shm::set_operation(entry,
                             dibs::shm::Op::kClaim,
                             0,
                             static_cast<uint16_t>(pool),
                             1,
                             static_cast<uint16_t>(tag));
    entry.id = dibs::shm::kNever;
    session.push(entry);
    return DIBS_OK;
}

// Nothing but when to give up: a lease that was put aside will do. Not if the options are wrong.
bool wants_any_slot(const dibs_claim_options& options) {
    constexpr uint8_t kNoKey[sizeof options.key] = {};
    return options.units <= 1 && options.interval_ns == 0 && options.timeout_ns >= 0 &&
           options.when_busy >= DIBS_BUSY_AS_POOL && options.when_busy <= DIBS_BUSY_COLD &&
           memcmp(options.key, kNoKey, sizeof kNoKey) == 0 && options.body_size == 0 &&
           options.account == nullptr &&
           (options.option_count | options.label_count | options.prefer_count) == 0 &&
           (options.least_count | options.most_count) == 0 &&
           (options.priority | options.preempt | options.requeue | options.keep) == 0 &&
           options.preempt_grace_ns == 0;
}

int64_t with_margin(int64_t timeout_ns) {
    return timeout_ns > DIBS_FOREVER - kOutcomeMarginNs ? DIBS_FOREVER
                                                        : timeout_ns + kOutcomeMarginNs;
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_claim(dibs_session* session,
               uint32_t pool,
               const dibs_claim_options* options,
               dibs_completion* end) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (end == nullptr) return DIBS_EARGUMENT;
    uint32_t tag = kNone;
    int64_t timeout_ns = DIBS_FOREVER;
    if (options == nullptr) {
        if (session->parked_tag != kNone) {
            if (session->take_parked(pool, *end)) return DIBS_OK;
            if (session->end_code != 0) return session->end_code;
        }
        code = submit_plain_claim(*session, pool, tag);
    } else {
        dibs_claim_options known;
        code = read_options(options, &known, sizeof known, kFirstClaimOptions);
        if (code == DIBS_OK && session->parked_tag != kNone && wants_any_slot(known)) {
            if (session->take_parked(pool, *end)) return DIBS_OK;
            code = session->end_code;
        }
        if (code == DIBS_OK) code = session->submit_claim(pool, known, 0, tag);
        timeout_ns = known.timeout_ns;
    }
    if (code != DIBS_OK) return code;
    session->awaited = end;
    session->awaited_tag = tag;
    session->awaited_plainly = !session->tags[tag].requeue;
    session->publish();
    Wait wait(*session, with_margin(timeout_ns));
    const bool came = wait.until(Awaited::kClaim);
    session->awaited_plainly = false;
    if (session->awaited_tag != kNone) {
        // The broker has not said how it ended, or not so that it can be read: it is cancelled, and
        // should it have been granted meanwhile, that lease is released.
        session->awaited_tag = kNone;
        session->abandon(tag);
        *end = {};
        if (came) return DIBS_EUNREAD;
        end->kind = DIBS_CLAIM_ENDED;
        end->outcome = DIBS_EXPIRED;
        return DIBS_OK;
    }
    if (end->outcome == DIBS_GRANTED) {
        dibs::shm::histogram_record(session->histogram->bucket,
                                    session->tick.to_ns(ticks() - wait.started_ticks()));
    }
    return DIBS_OK;
}

int dibs_cancel(dibs_session* session, uint64_t ticket) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    const auto tag = static_cast<uint32_t>(ticket);
    if (tag >= session->sizes.tags || session->tags[tag].use != ticket >> 32) return DIBS_ENOTFOUND;
    if (session->tags[tag].state != TagState::kClaiming) return DIBS_ENOTFOUND;
    dibs::shm::Submission entry;
    entry.op = dibs::shm::Op::kCancel;
    entry.tag = static_cast<uint16_t>(tag);
    uint32_t index = kNone;
    code = session->submit(entry, 0, Told::kNobody, index);
    if (code != DIBS_OK) return code;
    session->cancel_sent(ticket);
    session->publish();
    return code;
}
