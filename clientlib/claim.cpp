// clientlib/claim.cpp -- the synchronous claim: one line, one store and load, one spin.
// It spins on the line of the answer.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "clientlib/pool_set.hpp"
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
           options.account == nullptr && options.offer == nullptr && options.meta == nullptr &&
           options.application == nullptr && options.task == nullptr && options.group == nullptr &&
           (options.option_count | options.label_count | options.prefer_count) == 0 &&
           (options.least_count | options.most_count | options.also_count) == 0 &&
           (options.priority | options.preempt | options.requeue | options.keep) == 0 &&
           options.preempt_grace_ns == 0;
}

}  // namespace

// If the claim is granted all the same, the cancel ends its lease, and no event will say so.
void Session::cancel_sent(uint64_t ticket) {
    const auto tag = static_cast<uint32_t>(ticket);
    Tag& row = tags[tag];
    if (row.use != ticket >> 32) return;  // it has ended while there was no room for the cancel
    row.cancelled = true;
    if (row.state == TagState::kLive) lease_over(tag);
}

int Session::await_claim(uint32_t tag, int64_t wait_ns, dibs_completion& end) {
    awaited = &end;
    awaited_tag = tag;
    awaited_plainly = !tags[tag].requeue;
    publish();
    Wait wait(*this, wait_ns);
    const bool came = wait.until(Awaited::kClaim);
    awaited_plainly = false;
    if (awaited_tag != kNone) {
        // The broker has not said how it ended, or not so that it can be read: it is cancelled, and
        // should it have been granted meanwhile, that lease is released.
        awaited_tag = kNone;
        end = {};
        end.pool = tags[tag].pool;
        abandon(tag);
        if (came) return DIBS_EUNREAD;
        end.kind = DIBS_CLAIM_ENDED;
        end.outcome = DIBS_EXPIRED;
        return DIBS_OK;
    }
    if (end.outcome == DIBS_GRANTED) {
        shm::histogram_record(histogram->bucket, tick.to_ns(ticks() - wait.started_ticks()));
    }
    return DIBS_OK;
}

int Session::claim_of_pool(uint32_t pool,
                           const dibs_claim_options& options,
                           int64_t wait_ns,
                           dibs_completion& end) {
    if (parked_tag != kNone && wants_any_slot(options)) {
        if (take_parked(pool, end)) return DIBS_OK;
        if (end_code != 0) return end_code;
    }
    uint32_t tag = kNone;
    const int code = submit_claim(pool, options, 0, tag);
    return code == DIBS_OK ? await_claim(tag, wait_ns, end) : code;
}

}  // namespace dibs::client

using namespace dibs::client;

int dibs_claim(dibs_session* session,
               uint32_t pool,
               const dibs_claim_options* options,
               dibs_completion* end) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (end == nullptr) return DIBS_EARGUMENT;
    const bool is_set = (pool & DIBS_POOL_SET) != 0;
    if (options == nullptr && !is_set) {
        if (session->parked_tag != kNone) {
            if (session->take_parked(pool, *end)) return DIBS_OK;
            if (session->end_code != 0) return session->end_code;
        }
        uint32_t tag = kNone;
        code = submit_plain_claim(*session, pool, tag);
        return code == DIBS_OK ? session->await_claim(tag, DIBS_FOREVER, *end) : code;
    }
    dibs_claim_options known = kPlainClaim;
    if (options != nullptr) code = read_options(options, &known, sizeof known, kFirstClaimOptions);
    if (code != DIBS_OK) return code;
    if (is_set) return claim_of_set(*session, pool, known, *end);
    return session->claim_of_pool(pool, known, with_margin(known.timeout_ns), *end);
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
