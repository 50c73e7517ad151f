// clientlib/batch.cpp -- submits and reaps many operations at a time; serves event loops.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>
#include <sys/socket.h>

#include "clientlib/session.hpp"

namespace dibs::client {
namespace {

using shm::Op;

int submit_lease_op(Session& session, const dibs_op& op, Told told, shm::Submission& entry) {
    if (op.lease == nullptr) return DIBS_EARGUMENT;
    if (op.interval_ns < 0) return DIBS_ENEGATIVE;
    entry.id = op.lease->id;
    entry.fence = op.lease->fence;
    if (op.kind == DIBS_OP_KEEPALIVE) {
        shm::set_key_word(entry, static_cast<uint64_t>(op.interval_ns));
    }
    const uint64_t now = op.kind == DIBS_OP_KEEPALIVE ? monotonic_ns() : 0;
    const bool known = op.lease->session == session.name && op.lease->tag < session.sizes.tags &&
                       op.lease->id != 0;
    Tag* row = known ? &session.tags[op.lease->tag] : nullptr;
    const bool of_tag = row != nullptr && row->lease == op.lease->id &&
                        (row->state == TagState::kLive || row->state == TagState::kOver);
    const bool held = of_tag && row->fence == op.lease->fence;
    if (held && op.kind != DIBS_OP_KEEPALIVE) name_claim(entry, op.lease->tag, *row);
    const uint32_t use = held ? row->use : 0;
    uint32_t index = kNone;
    const int code = session.submit(entry, op.user_data, told, index);
    if (code != DIBS_OK) return code;
    if (index != kNone) {
        session.answers[index].lease = *op.lease;
        session.answers[index].sent_ns = now;
    }
    if (op.kind == DIBS_OP_KEEPALIVE) return code;
    if (held) {
        session.give_up(op.lease->tag, use, shm::key_word(entry));
        return code;
    }
    const bool again = row != nullptr && row->state == TagState::kClaiming;
    if (again && row->was_lease == op.lease->id) {
        session.abandon(op.lease->tag);
    } else {
        (void)session.give_up_untold(*op.lease);
    }
    return code;
}

int submit_cancel(Session& session, const dibs_op& op, Told told, shm::Submission& entry) {
    const auto tag = static_cast<uint32_t>(op.ticket);
    if (tag >= session.sizes.tags || session.tags[tag].use != op.ticket >> 32 ||
        session.tags[tag].state != TagState::kClaiming) {
        return DIBS_ENOTFOUND;
    }
    entry.tag = static_cast<uint16_t>(tag);
    uint32_t index = kNone;
    const int code = session.submit(entry, op.user_data, told, index);
    if (code == DIBS_OK) session.cancel_sent(op.ticket);
    return code;
}

int submit_word(Session& session, const dibs_op& op, Told told, shm::Submission& entry) {
    entry.id = op.slot;
    entry.fence = op.round;
    if (op.kind == DIBS_OP_REFUSE) {
        shm::set_key_word(entry, static_cast<uint64_t>(op.worker_code));
        if ((op.flags & DIBS_TRY_AGAIN) != 0) entry.flags |= shm::OpFlag::kTryAgain;
    }
    if (op.kind == DIBS_OP_DONE && (op.flags & DIBS_THEN_READY) != 0) {
        entry.flags |= shm::OpFlag::kThenReady;
    }
    if (op.kind == DIBS_OP_PROTECT && (op.flags & DIBS_ON) != 0) entry.flags |= shm::OpFlag::kOn;
    uint32_t index = kNone;
    if (op.kind == DIBS_OP_CONFIRM || op.kind == DIBS_OP_DONE) {
        return session.submit_answered(entry, op.answer, op.answer_size, op.user_data, told, index);
    }
    const int code = session.submit(entry, op.user_data, told, index);
    if (code == DIBS_OK && op.kind == DIBS_OP_WITHDRAW) session.forget_slot(op.slot);
    return code;
}

static_assert(DIBS_OP_CLAIM == static_cast<int>(Op::kClaim));
static_assert(DIBS_OP_KEEPALIVE == static_cast<int>(Op::kKeepalive));
static_assert(DIBS_OP_ANNOUNCE == static_cast<int>(Op::kAnnounce));
static_assert(DIBS_OP_PROTECT == static_cast<int>(Op::kProtect));

// `begun`: when the first claim of the batch was submitted, in ticks; 0 = not yet.
int submit_one(Session& session, dibs_op& op, uint64_t& begun) {
    const Told told = (op.flags & DIBS_QUIET) != 0 ? Told::kNobody : Told::kResult;
    shm::Submission entry;
    entry.op = static_cast<Op>(op.kind);
    uint32_t index = kNone;
    switch (op.kind) {
        case DIBS_OP_CLAIM: {
            dibs_claim_options options;
            int code = read_options(op.claim, &options, sizeof options, kFirstClaimOptions);
            if (code != DIBS_OK) return code;
            if (op.claim == nullptr) options.timeout_ns = DIBS_FOREVER;
            uint32_t tag = kNone;
            code = session.submit_claim(op.pool, options, op.user_data, tag);
            if (code != DIBS_OK) return code;
            if (begun == 0) begun = ticks();
            session.tags[tag].asked_ticks = begun;
            op.ticket = uint64_t{session.tags[tag].use} << 32 | tag;
            return code;
        }
        case DIBS_OP_CANCEL:
            return submit_cancel(session, op, told, entry);
        case DIBS_OP_RELEASE:
        case DIBS_OP_FAIL:
        case DIBS_OP_KEEPALIVE:
            return submit_lease_op(session, op, told, entry);
        case DIBS_OP_ANNOUNCE: {
            dibs_announce_options options;
            const int code = read_options(op.announce, &options, sizeof options, sizeof options);
            if (code != DIBS_OK) return code;
            return session.submit_announce(op.pool, options, op.user_data, told, index);
        }
        case DIBS_OP_READY:
        case DIBS_OP_CONFIRM:
        case DIBS_OP_REFUSE:
        case DIBS_OP_DONE:
        case DIBS_OP_WITHDRAW:
        case DIBS_OP_PROTECT:
            return submit_word(session, op, told, entry);
        default:
            return DIBS_EARGUMENT;
    }
}

uint32_t ready_count(const Session& session) {
    return session.stash.count + session.events_to_reap;
}

uint32_t take(Session& session, dibs_completion* out, uint32_t count) {
    uint32_t taken = 0;
    while (taken < count && session.stash.count != 0)
        out[taken++] = session.stash.pop();
    while (taken < count && session.events_to_reap != 0)
        session.reap_event(out[taken++]);
    return taken;
}

}  // namespace
}  // namespace dibs::client

using namespace dibs::client;

int dibs_submit(dibs_session* session, dibs_op* ops, size_t count) {
    const int open = check_open(session);
    if (open != DIBS_OK) return open;
    if (count == 0) return 0;
    if (ops == nullptr || count > INT32_MAX) return DIBS_EARGUMENT;
    const size_t stride = ops->size;
    if (stride < sizeof(dibs_op) || stride % alignof(dibs_op) != 0) return DIBS_ESIZE;
    int accepted = 0;
    int code = DIBS_OK;
    uint64_t begun = 0;
    auto* bytes = reinterpret_cast<uint8_t*>(ops);
    for (size_t i = 0; i < count; ++i) {
        code = submit_one(*session, *reinterpret_cast<dibs_op*>(bytes + i * stride), begun);
        if (code != DIBS_OK) break;
        ++accepted;
    }
    if (accepted != 0 && session->end_code == 0) session->publish();
    return accepted != 0 ? accepted : code;
}

int dibs_reap(dibs_session* session,
              dibs_completion* completions,
              size_t count,
              int64_t timeout_ns) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (timeout_ns < 0) return DIBS_ENEGATIVE;
    if (completions == nullptr || count == 0) return DIBS_EARGUMENT;
    const auto most = static_cast<uint32_t>(count < INT32_MAX ? count : INT32_MAX);
    (void)Wait(*session, timeout_ns).until(Awaited::kCompletion);
    if (ready_count(*session) == 0) return session->end_code;
    return static_cast<int>(take(*session, completions, most));
}

int dibs_fd(dibs_session* session) {
    const int code = check(session);
    return code != DIBS_OK ? code : session->poll;
}

int dibs_arm(dibs_session* session) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (ready_count(*session) + session->words_to_take() != 0) return DIBS_EREADY;
    if (session->end_code != 0) return session->end_code;
    session->settle();  // a look at a lease may have made something owed since
    uint32_t seen = 0;
    return session->arm(dibs::shm::ClientSleep::kPoll, seen) ? DIBS_OK : DIBS_EREADY;
}

int dibs_dispatch(dibs_session* session) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (session->end_code == 0) {
        dibs::shm::disarm_completions(*session->up);
        char datagram[8];
        while (recv(session->events, datagram, sizeof datagram, MSG_DONTWAIT) > 0) {
        }
        session->take_in();
        session->look_whether_ended();
        session->net_if_due(monotonic_ns());
    }
    return static_cast<int>(ready_count(*session) + session->words_to_take());
}
