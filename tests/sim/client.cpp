// tests/sim/client.cpp -- a process that claims.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>

#include <algorithm>

#include "tests/sim/actors.hpp"

namespace dibs::sim {

namespace {

const char* const kBig[] = {"size:big"};
const char* const kGpu[] = {"gpu:a"};

Ledger::Use use_of(uint32_t pool, const dibs_lease& lease) {
    return {pool, lease.id, lease.fence};
}
Ledger::Use use_of(const Held& held) {
    return use_of(held.pool, held.lease);
}

}  // namespace

dibs_claim_options Client::wish(uint32_t pool, int64_t timeout_ns) {
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = timeout_ns;
    // What is put aside will do.
    if (scene_.pools[pool].quantum_ns != 0 && !dice().one_in(3)) return options;
    options.units = static_cast<uint32_t>(dice().one_in(4) ? 1 + dice().below(3) : 1);
    if (dice().one_in(3)) options.interval_ns = (5 + static_cast<int64_t>(dice().below(60))) * kMs;
    if (options.interval_ns != 0 && dice().one_in(2)) options.keep = DIBS_KEEP_BY_WORD;
    if (!scene_.calm && dice().one_in(12)) {
        options.when_busy = DIBS_BUSY_WAIT + static_cast<int32_t>(dice().below(3));
    }
    if (dice().one_in(6)) options.priority = static_cast<int32_t>(1 + dice().below(100));
    if (!scene_.calm && dice().one_in(8))
        options.key[0] = static_cast<uint8_t>(1 + dice().below(9));
    static const char kBody[] = "what the worker is told";
    if (scene_.pools[pool].has_workers && dice().one_in(2)) {
        options.body = kBody;
        options.body_size = 1 + dice().below(sizeof kBody - 1);
    }
    if (scene_.calm) options.units = 1;
    if (scene_.pools[pool].by_account) wish_by_account(pool, options);
    return options;
}

void Client::wish_by_account(uint32_t pool, dibs_claim_options& options) {
    options.preempt = static_cast<int32_t>(1 + dice().below(3));
    if (options.preempt == DIBS_PREEMPT_GRACE) {
        options.preempt_grace_ns = (1 + static_cast<int64_t>(dice().below(20))) * kMs;
    }
    if (dice().one_in(3)) {
        options.prefer = !scene_.calm && dice().one_in(3) ? kBig : kGpu;
        options.prefer_count = 1;
    }
    if (scene_.calm) return;
    if (scene_.pools[pool].has_workers && dice().one_in(3)) {
        options.labels = kBig;
        options.label_count = 1;
    }
    if (!dice().one_in(8)) return;
    account_ = "uid:" + std::to_string(dice().one_in(2) ? uid() : kFirstUid + dice().below(kUids));
    options.account = account_.c_str();
}

// How long nobody may take what a claim with these options is granted.
uint64_t safe_ns(const PoolPlan& pool, const dibs_claim_options& options) {
    if (!pool.by_account || options.preempt == DIBS_PREEMPT_NEVER) return kForever;
    return options.preempt == DIBS_PREEMPT_GRACE ? static_cast<uint64_t>(options.preempt_grace_ns)
                                                 : 0;
}

// A strict lease ends with its holder's doing or death.
uint64_t Client::certain_until(const Held& held, uint64_t from_ns) const {
    if (scene_.pools[held.pool].expiry == shm::ExpiryMode::kStrict) return kForever;
    const uint64_t left = std::min(held.interval_ns, held.safe_ns);
    return left == kForever ? kForever : from_ns + left;
}

size_t Client::find_held(const dibs_lease& lease) const {
    size_t at = 0;
    while (at < held_.size() &&
           (held_[at].lease.id != lease.id || held_[at].lease.fence != lease.fence))
        ++at;
    return at;
}

void Client::granted(const dibs_completion& end, uint64_t number, const Asked& asked) {
    ++scene_.seen["granted"];
    const PoolPlan& plan = scene_.pools[asked.pool];
    if (asked.cancelled) {
        if (number != 0) given_up_[number] = asked.pool;
        return scene_.ledger.told_fence(use_of(asked.pool, end.lease));
    }
    std::vector<uint32_t> slots;
    for (uint32_t unit = 0; unit < end.lease.units; ++unit) {
        dibs_slot slot = {};
        const int code = dibs_lease_slot(session_, &end.lease, unit, &slot);
        // Once it has ended and another broker has taken over, its room is anybody's.
        if (dibs_lease_state(session_, &end.lease, nullptr) == DIBS_ENDED) break;
        expect(code == DIBS_OK || code == DIBS_ALREADY_ENDED, "a lease without a slot");
        if (code != DIBS_OK) break;
        expect(plan.has_workers || slot.number < plan.slots, "a slot that its pool does not have");
        slots.push_back(slot.number);
    }
    Held held{.lease = end.lease, .pool = asked.pool, .safe_ns = asked.safe_ns};
    const bool bound = end.interval_ns == 0 || end.interval_ns == DIBS_FOREVER;
    held.interval_ns = bound ? kForever : static_cast<uint64_t>(end.interval_ns);
    held.number = number;
    held.ticket = asked.ticket;
    held.claim = end.claim;
    held.requeue = asked.may_wait_again;
    if (plan.by_account) scene_.know(end.claim);
    scene_.ledger.granted(process_, use_of(held), slots, certain_until(held, asked.at_ns), now());
    held_.push_back(held);
}

bool Client::claim(uint32_t pool, int64_t timeout_ns) {
    doing("claiming from " + scene_.pools[pool].name);
    const dibs_claim_options options = wish(pool, timeout_ns);
    const Asked asked{
        .pool = pool, .at_ns = now(), .safe_ns = safe_ns(scene_.pools[pool], options)};
    dibs_completion end = {};
    const uint64_t number = ++number_;
    scene_.ledger.asked(process_, number, asked.at_ns);
    const int code = dibs_claim(session_, pool, &options, &end);
    scene_.ledger.answered(process_, number);
    if (over(code)) return false;
    ++scene_.commands;
    if (code != DIBS_OK) {
        expect(code == DIBS_EFULL || code == DIBS_EUNREAD || code == DIBS_ELIMIT,
               std::string("a claim is refused: ") + dibs_strerror(code));
        ++scene_.seen["refused"];
        return reap(kMs);
    }
    expect(end.outcome != DIBS_NO_OUTCOME, "a claim ends without an outcome");
    ++scene_.seen[dibs_outcome_name(end.outcome)];
    scene_.ledger.told(static_cast<uint64_t>(end.outcome));
    if (end.outcome == DIBS_GRANTED) {
        // One that it has been told of before is one that it has put aside.
        const auto [known, is_new] = leases_.try_emplace(end.lease.id, options.interval_ns != 0);
        if (!is_new) ++scene_.seen["taken again"];
        expect(is_new || !known->second, "a lease that may expire was put aside");
        expect(options.account == nullptr || account_ == "uid:" + std::to_string(uid()),
               "another one's account pays");
        granted(end, 0, asked);
    }
    if (end.outcome == DIBS_BROKER_LOST) return !over(DIBS_EBROKERLOST);
    return true;
}

bool Client::batch() {
    doing("claiming many");
    const size_t count = 1 + dice().below(5);
    for (size_t i = 0; i < count; ++i) {
        const auto pool = static_cast<uint32_t>(dice().below(scene_.pools.size()));
        const auto timeout = static_cast<int64_t>(dice().below(80)) * kMs;
        dibs_claim_options options = wish(pool, timeout);
        if (scene_.pools[pool].by_account) options.requeue = dice().one_in(2) ? 1 : 0;
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.user_data = ++number_;
        op.pool = pool;
        op.claim = &options;
        Asked asked{.pool = pool, .at_ns = now()};
        asked.safe_ns = safe_ns(scene_.pools[pool], options);
        asked.may_wait_again = options.requeue != 0;
        const int accepted = dibs_submit(session_, &op, 1);
        if (over(accepted)) return false;
        if (accepted != 1) break;
        ++scene_.commands;
        scene_.ledger.asked(process_, op.user_data, asked.at_ns);
        asked.ticket = op.ticket;
        asked_[op.user_data] = asked;
    }
    for (auto& [number, asked] : asked_) {
        if (!dice().one_in(4)) continue;
        const int code = dibs_cancel(session_, asked.ticket);
        if (over(code)) return false;
        ++scene_.commands;
        if (code == DIBS_OK) asked.cancelled = true;
    }
    return dice().one_in(3) ? wait_for_events()
                            : reap(static_cast<int64_t>(dice().below(30)) * kMs);
}

// The lease is gone, and the claim that it was granted to is one again.
void Client::waits_again(size_t at, uint64_t claim) {
    const Held held = held_[at];
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(at));
    scene_.ledger.returned(process_, use_of(held));
    expect(held.adopted || held.requeue || scene_.ledger.is_doubted(held.lease.id),
           "a claim waits again that did not ask for it");
    if (held.number == 0) {  // nobody wants it any more
        unwanted_[claim] = held.pool;
        const int code = dibs_release(session_, &held.lease, DIBS_NOWAIT);
        // Unless it is known here that it waits, the broker must say.
        const bool unsaid = code == DIBS_ETIMEDOUT || code == DIBS_EFULL || code == DIBS_EUNREAD;
        expect(code == DIBS_ALREADY_ENDED || unsaid || over(code),
               std::string("a lease that was taken is given back: ") + dibs_strerror(code));
        return;
    }
    scene_.ledger.asked(process_, held.number, now());
    // When it will have been granted is not known: no moment of it is certain.
    asked_[held.number] = {.pool = held.pool,
                           .at_ns = 0,
                           .ticket = held.ticket,
                           .safe_ns = 0,
                           .may_wait_again = held.requeue,
                           .waits_again = true};
}

void Client::claim_ended(const dibs_completion& end) {
    // Granted again before there was room to say that it had waited again.
    for (size_t at = 0; at < held_.size(); ++at) {
        if (held_[at].number == 0 || held_[at].number != end.user_data) continue;
        ++scene_.seen["requeued, untold"];
        waits_again(at, end.claim);
        break;
    }
    if (const auto old = given_up_.find(end.user_data); old != given_up_.end()) {
        if (end.outcome == DIBS_GRANTED) {
            scene_.ledger.told_fence(use_of(old->second, end.lease));
        }
        return;
    }
    if (end.user_data == 0) {  // of a lease that was adopted, or waited for, again
        if (end.outcome != DIBS_GRANTED) return;
        auto same = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
            return held.number == 0 && held.claim == end.claim;
        });
        // Told together with its waiting again, it is its holder's all the same.
        const auto unwanted = unwanted_.find(end.claim);
        if (same == held_.end() && unwanted != unwanted_.end()) {
            scene_.ledger.told_fence(use_of(unwanted->second, end.lease));
            held_.push_back({.lease = end.lease,
                             .pool = unwanted->second,
                             .safe_ns = 0,
                             .claim = end.claim,
                             .requeue = true});
            return;
        }
        // Of what it has adopted, the claim is known once that has been told of.
        if (same == held_.end()) {
            same = std::find_if(held_.begin(), held_.end(), [&](const Held& held) {
                return held.adopted && held.claim == 0 && held.lease.tag == end.lease.tag;
            });
        }
        expect(same != held_.end(), "a claim ends that nobody has made");
        if (same == held_.end()) return;
        same->claim = end.claim;
        scene_.ledger.returned(process_, use_of(*same));
        scene_.ledger.told_fence(use_of(same->pool, end.lease));
        same->lease = end.lease;
        return;
    }
    const auto found = asked_.find(end.user_data);
    scene_.ledger.answered(process_, end.user_data);
    if (found == asked_.end()) return;
    const Asked asked = found->second;
    asked_.erase(found);
    ++scene_.seen[dibs_outcome_name(end.outcome)];
    if (end.outcome == DIBS_GRANTED) granted(end, end.user_data, asked);
}

void Client::take(const dibs_completion& end) {
    scene_.ledger.told(static_cast<uint64_t>(end.kind) << 32U | static_cast<uint32_t>(end.code));
    if (end.kind == DIBS_CLAIM_ENDED) return claim_ended(end);
    const size_t at = find_held(end.lease);
    if (end.kind == DIBS_LEASE_ENDED) {
        ++scene_.seen[end.code == DIBS_EREVOKED   ? "lease taken"
                      : end.code == DIBS_EADOPTED ? "lease adopted"
                                                  : "lease ended"];
        if (at == held_.size()) return;
        scene_.ledger.returned(process_, use_of(held_[at]));
        held_.erase(held_.begin() + static_cast<ptrdiff_t>(at));
    } else if (end.kind == DIBS_LEASE_REQUEUED) {
        ++scene_.seen["requeued"];
        expect(at != held_.size() || given_up_.contains(end.user_data),
               "a lease that was given back waits again");
        if (at != held_.size()) waits_again(at, end.claim);
    } else if (end.kind == DIBS_LEASE_GRACE) {
        ++scene_.seen["grace"];
    } else if (end.kind == DIBS_LEASE_REVOKING) {
        ++scene_.seen["revoking"];
    }
}

bool Client::reap(int64_t timeout_ns) {
    dibs_completion ends[8];
    const int count = dibs_reap(session_, ends, 8, timeout_ns);
    if (over(count)) return false;
    for (int i = 0; i < count; ++i)
        take(ends[i]);
    return true;
}

// As a program with an event loop.
bool Client::wait_for_events() {
    doing("polling");
    const uint64_t until = now() + dice().below(40'000'000);
    while (now() < until) {
        if (dibs_arm(session_) == DIBS_OK) {
            pollfd readable = {dibs_fd(session_), POLLIN, 0};
            const uint64_t end = std::min(until, now() + 100'000'000);
            while (::poll(&readable, 1, 0) == 0 && now() < end)
                (void)scene_.world.wait_descriptors(end);
        }
        if (dibs_dispatch(session_) > 0 && !reap(0)) return false;
        if (dibs_end_code(session_) != 0) return reap(0);
    }
    return true;
}

bool Client::give_back(bool wait) {
    if (held_.empty()) return true;
    doing("giving back");
    const Held held = held_.front();
    held_.erase(held_.begin());
    scene_.ledger.returned(process_, use_of(held));
    const int64_t patience = wait ? 10 * DIBS_SECOND : DIBS_NOWAIT;
    const int code = dice().one_in(8) ? dibs_fail(session_, &held.lease, patience)
                                      : dibs_release(session_, &held.lease, patience);
    if (over(code)) return false;
    ++scene_.commands;
    if (code == DIBS_EFULL || code == DIBS_EUNREAD) {
        held_.push_back(held);
        return reap(kMs);
    }
    expect(code == DIBS_OK || code == DIBS_ALREADY_ENDED || code == DIBS_ESTALE ||
               code == DIBS_ENOTFOUND || code == DIBS_ETIMEDOUT,
           std::string("a release ends with ") + dibs_strerror(code));
    scene_.ledger.told(static_cast<uint64_t>(code));
    // Where it may have been put aside it is often wanted again at once.
    const bool parks = scene_.pools[held.pool].quantum_ns != 0 && !scene_.calm;
    return !parks || dice().one_in(3) || claim(held.pool, 20 * kMs);
}

bool Client::keep_alive() {
    if (held_.empty()) return true;
    doing("keeping alive");
    Held& held = held_[dice().below(held_.size())];
    const uint64_t said = now();
    if (dice().one_in(2)) {
        const int touched = dibs_touch(session_, &held.lease);
        ++scene_.seen[touched == DIBS_OK ? "touched" : "not touched"];
        return !over(touched);
    }
    int64_t interval = 0;
    const int code = dibs_keepalive(session_, &held.lease, 0, 5 * DIBS_SECOND, &interval);
    if (over(code)) return false;
    ++scene_.commands;
    if (code == DIBS_OK && interval != 0 && interval != DIBS_FOREVER) {
        Held kept = held;
        kept.interval_ns = static_cast<uint64_t>(interval);
        scene_.ledger.prolonged(process_, use_of(held), certain_until(kept, said));
    }
    return true;
}

// The id and fence of what it holds go to whom it may concern.
bool Client::offer() {
    if (held_.empty()) return true;
    const Held& held = held_[dice().below(held_.size())];
    scene_.offers.push_back({process_, uid(), held});
    if (scene_.offers.size() > 8) scene_.offers.erase(scene_.offers.begin());
    return true;
}

bool Client::adopt() {
    std::vector<Offer> fit;
    for (const Offer& offer : scene_.offers) {
        if (offer.process != process_) fit.push_back(offer);
    }
    if (fit.empty()) return true;
    doing("adopting");
    const Offer offer = fit[dice().below(fit.size())];
    if (offer.uid == uid()) scene_.ledger.offered(use_of(offer.held));
    const uint64_t said = now();
    const int64_t patience = dice().one_in(4) ? kMs / 10 : 5 * DIBS_SECOND;
    Held held = offer.held;
    held.number = held.claim = 0;
    held.adopted = true;
    const int code =
        dibs_adopt(session_, offer.held.lease.id, offer.held.lease.fence, patience, &held.lease);
    if (over(code)) return false;
    ++scene_.commands;
    ++scene_.seen[code == DIBS_OK ? "adopted" : "not adopted"];
    scene_.ledger.told(static_cast<uint64_t>(code));
    expect(code != DIBS_OK || offer.uid == uid(), "a lease of another user's is adopted");
    expect(code == DIBS_OK || code == DIBS_EENDED || code == DIBS_ENOTALLOWED ||
               code == DIBS_ESTALE || code == DIBS_ESTATE || code == DIBS_EEXPIRED ||
               code == DIBS_ENOROOM || code == DIBS_ELIMIT || code == DIBS_ETIMEDOUT ||
               code == DIBS_EFULL || code == DIBS_EUNREAD,
           std::string("an adoption ends with ") + dibs_strerror(code));
    if (code != DIBS_OK) return true;
    // Somebody else to whom it was offered may have adopted it since, and given it back. What was
    // being revoked already has the rest of a grace that began before.
    const int state = dibs_lease_state(session_, &held.lease, nullptr);
    if (state != DIBS_ENDED) {
        const uint64_t until = state == DIBS_IN_GRACE ? said : certain_until(held, said);
        scene_.ledger.adopted(process_, use_of(held), until);
    }
    held_.push_back(held);
    return true;
}

// All that it has goes back; then it has had one slot of every pool that has any.
bool Client::finish() {
    while (!held_.empty() || !asked_.empty()) {
        for (auto& [number, asked] : asked_) {
            if (!asked.waits_again || asked.cancelled) continue;
            const int code = dibs_cancel(session_, asked.ticket);
            if (over(code)) return false;
            asked.cancelled = code == DIBS_OK;
        }
        if (!give_back(true) || !reap(held_.empty() ? 20 * kMs : 0)) return false;
    }
    for (uint32_t pool = 0; pool < scene_.pools.size(); ++pool) {
        if (scene_.pools[pool].has_workers && !scene_.seen["calm worker " + std::to_string(pool)]) {
            continue;
        }
        while (held_.empty()) {
            if (!claim(pool, DIBS_FOREVER)) return false;
        }
        while (!held_.empty()) {
            if (!give_back(true)) return false;
        }
    }
    doing("closing");
    finished_ = true;
    return true;
}

// One thing of those that a client does.
bool Client::one_thing() {
    const auto pool = static_cast<uint32_t>(dice().below(scene_.pools.size()));
    switch (dice().below(scene_.adoption ? 12 : 10)) {
        case 0:
        case 1:
        case 2:
            // Whoever holds something and waits for ever for more might wait for himself.
            return claim(pool,
                         dice().one_in(6) ? 0
                         : held_.empty() && dice().one_in(3)
                             ? 2 * DIBS_SECOND
                             : static_cast<int64_t>(dice().below(50)) * kMs);
        case 3:
            return batch();
        case 4:
        case 5:
        case 6:
            return give_back(dice().one_in(2));
        case 7:
            return keep_alive();
        case 8:
            scene_.world.pass(dice().below(dice().one_in(8) ? 60'000'000 : 300'000));
            return true;
        case 10:
            return offer();
        case 11:
            return adopt();
        default:
            return reap(static_cast<int64_t>(dice().below(5)) * kMs);
    }
}

void Client::live() {
    const uint64_t until = 20 + dice().below(400);
    for (uint64_t i = 0; i < until && !scene_.calm; ++i) {
        if (!one_thing()) return;
    }
    if (scene_.calm && !finish()) return;
    dibs_session* session = session_;
    session_ = nullptr;
    scene_.ledger.died(process_);
    (void)dibs_close(session);
}

}  // namespace dibs::sim
