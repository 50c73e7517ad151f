// tests/sim/actors.cpp -- processes that claim and processes that offer.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/actors.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#include "clientlib/session.hpp"

namespace dibs::sim {

namespace {

constexpr int64_t kMs = DIBS_MILLISECOND;
constexpr uint64_t kSlotsOfAWorker = 3;

// What the kernel does with a process that is gone. The broker hears of it by the lifeline alone.
void close_behind(client::Session& session) {
    for (const int fd : {session.poll, session.socket, session.bell, session.events})
        close(fd);
    munmap(session.up, shm::plan_up(session.sizes).size);
    munmap(const_cast<shm::DownHead*>(session.down), shm::plan_down(session.sizes).size);
    munmap(const_cast<std::byte*>(session.board), session.board_size);
    munmap(session.private_memory, session.private_size);
}

}  // namespace

Actor::Actor(Scene& scene, uint32_t process) : scene_(scene), process_(process) {
    lifeline_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (lifeline_ < 0) std::abort();
}

Actor::~Actor() {
    close(lifeline_);
}

void Actor::start() {
    const auto cpu = static_cast<uint32_t>(dice().below(3));
    task_ = scene_.world.start("process " + std::to_string(process_), cpu, [this] {
        try {
            if (connect()) live();
        } catch (const Killed&) {
        }
        bury();
    });
    task_->lifeline = lifeline_;
}

void Actor::kill() {
    task_->doomed = true;
}

bool Actor::connect() {
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = "simulated";
    options.submission_entries = 8U << dice().below(3);
    options.completion_entries = options.submission_entries * (2U << dice().below(2));
    if (options.completion_entries < 64) options.completion_entries = 64;
    options.up_payload = 4096;
    options.down_payload = 4096U << dice().below(2);
    options.leases_max = 8U << dice().below(2);
    options.spin_us = dice().below(2) == 0 ? -1 : 5;
    for (;;) {
        doing("connecting");
        task_->shielded = true;  // a death in here is one before, or behind it
        const int code = dibs_connect(&options, &session_);
        task_->shielded = false;
        if (code == DIBS_OK) return true;
        expect(code == DIBS_ENOBROKER || code == DIBS_EHANDSHAKE,
               std::string("connecting ends with ") + dibs_strerror(code));
        scene_.world.pass(1'000'000 + dice().below(20'000'000));
    }
}

void Actor::bury() {
    task_->shielded = true;  // it is dead already
    scene_.ledger.died(process_);
    if (session_ != nullptr) close_behind(*session_);
    session_ = nullptr;
    const uint64_t one = 1;
    (void)!::write(lifeline_, &one, sizeof one);
    scene_.world.stir();
}

bool Actor::over(int code) {
    if (code != DIBS_ESESSION && code != DIBS_EBROKERLOST) return false;
    ++scene_.seen["session lost"];
    expect(scene_.loud_deaths,
           std::string("its session ends (") + dibs_strerror(dibs_end_code(session_)) +
               ") although it did nothing wrong and no broker died of it");
    return true;
}

void Actor::expect(bool holds, const std::string& what) {
    if (!holds) scene_.ledger.wrong("process " + std::to_string(process_) + ": " + what);
}

void Actor::doing(const std::string& what) {
    doing_ = what;
    doing_since_ = now();
}

// ---- clients

dibs_claim_options Client::wish(uint32_t pool, int64_t timeout_ns) {
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = timeout_ns;
    options.units = static_cast<uint32_t>(dice().one_in(4) ? 1 + dice().below(3) : 1);
    if (dice().one_in(3)) options.interval_ns = (5 + static_cast<int64_t>(dice().below(60))) * kMs;
    if (!scene_.calm && dice().one_in(12)) {
        options.when_busy = DIBS_BUSY_WAIT + static_cast<int32_t>(dice().below(3));
    }
    if (!scene_.calm && dice().one_in(8))
        options.key[0] = static_cast<uint8_t>(1 + dice().below(9));
    static const char kBody[] = "what the worker is told";
    if (scene_.pools[pool].has_workers && dice().one_in(2)) {
        options.body = kBody;
        options.body_size = 1 + dice().below(sizeof kBody - 1);
    }
    if (scene_.calm) options.units = 1;
    return options;
}

void Client::granted(const dibs_completion& end, uint32_t pool, uint64_t asked_ns, bool cancelled) {
    ++scene_.seen["granted"];
    const PoolPlan& plan = scene_.pools[pool];
    if (cancelled) return scene_.ledger.told_fence(pool, end.lease.fence);
    std::vector<uint32_t> slots;
    for (uint32_t unit = 0; unit < end.lease.units && !plan.has_workers; ++unit) {
        dibs_slot slot = {};
        const int code = dibs_lease_slot(session_, &end.lease, unit, &slot);
        // Once it has ended and another broker has taken over, its room is anybody's.
        if (dibs_lease_state(session_, &end.lease, nullptr) == DIBS_ENDED) break;
        expect(code == DIBS_OK || code == DIBS_ALREADY_ENDED, "a lease without a slot");
        if (code != DIBS_OK) break;
        expect(slot.number < plan.slots, "a slot that its pool does not have");
        slots.push_back(slot.number);
    }
    const uint64_t until = end.interval_ns == 0 || end.interval_ns == DIBS_FOREVER
                               ? kForever
                               : asked_ns + static_cast<uint64_t>(end.interval_ns);
    scene_.ledger.granted(process_, pool, slots, end.lease.fence, until, now());
    held_.push_back({end.lease, pool});
}

bool Client::claim(uint32_t pool, int64_t timeout_ns) {
    doing("claiming from " + scene_.pools[pool].name);
    const uint64_t asked = now();
    const dibs_claim_options options = wish(pool, timeout_ns);
    dibs_completion end = {};
    const uint64_t number = ++number_;
    scene_.ledger.asked(process_, number, asked);
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
    if (end.outcome == DIBS_GRANTED) granted(end, pool, asked, false);
    if (end.outcome == DIBS_BROKER_LOST) return !over(DIBS_EBROKERLOST);
    return true;
}

bool Client::batch() {
    doing("claiming many");
    const size_t count = 1 + dice().below(5);
    for (size_t i = 0; i < count; ++i) {
        const auto pool = static_cast<uint32_t>(dice().below(scene_.pools.size()));
        const auto timeout = static_cast<int64_t>(dice().below(80)) * kMs;
        const dibs_claim_options options = wish(pool, timeout);
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.user_data = ++number_;
        op.pool = pool;
        op.claim = &options;
        const uint64_t asked = now();
        const int accepted = dibs_submit(session_, &op, 1);
        if (over(accepted)) return false;
        if (accepted != 1) break;
        ++scene_.commands;
        scene_.ledger.asked(process_, op.user_data, asked);
        asked_[op.user_data] = {pool, asked, op.ticket, false};
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

bool Client::take(const dibs_completion& end) {
    scene_.ledger.told(static_cast<uint64_t>(end.kind) << 32U | static_cast<uint32_t>(end.code));
    if (end.kind == DIBS_CLAIM_ENDED) {
        const auto found = asked_.find(end.user_data);
        scene_.ledger.answered(process_, end.user_data);
        if (found == asked_.end()) return true;
        ++scene_.seen[dibs_outcome_name(end.outcome)];
        if (end.outcome == DIBS_GRANTED) {
            granted(end, found->second.pool, found->second.at_ns, found->second.cancelled);
        }
        asked_.erase(found);
    } else if (end.kind == DIBS_LEASE_ENDED) {
        ++scene_.seen["lease ended"];
        for (size_t i = 0; i < held_.size(); ++i) {
            if (held_[i].lease.id != end.lease.id || held_[i].lease.fence != end.lease.fence)
                continue;
            scene_.ledger.returned(held_[i].pool, end.lease.fence);
            held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    } else if (end.kind == DIBS_LEASE_GRACE) {
        ++scene_.seen["grace"];
    }
    return true;
}

bool Client::reap(int64_t timeout_ns) {
    dibs_completion ends[8];
    const int count = dibs_reap(session_, ends, 8, timeout_ns);
    if (over(count)) return false;
    for (int i = 0; i < count; ++i)
        (void)take(ends[i]);
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
    scene_.ledger.returned(held.pool, held.lease.fence);
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
    return true;
}

bool Client::keep_alive() {
    if (held_.empty()) return true;
    doing("keeping alive");
    const Held& held = held_[dice().below(held_.size())];
    const uint64_t said = now();
    int64_t interval = 0;
    const int code = dibs_keepalive(session_, &held.lease, 0, 5 * DIBS_SECOND, &interval);
    if (over(code)) return false;
    ++scene_.commands;
    if (code == DIBS_OK && interval != 0 && interval != DIBS_FOREVER) {
        scene_.ledger.prolonged(
            held.pool, held.lease.fence, said + static_cast<uint64_t>(interval));
    }
    return true;
}

// All that it has goes back; then it has had one slot of every pool that has any.
bool Client::finish() {
    while (!held_.empty() || !asked_.empty()) {
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

void Client::live() {
    const uint64_t until = 20 + dice().below(400);
    for (uint64_t i = 0; i < until && !scene_.calm; ++i) {
        const auto pool = static_cast<uint32_t>(dice().below(scene_.pools.size()));
        bool on = true;
        switch (dice().below(10)) {
            case 0:
            case 1:
            case 2:
                // Whoever holds something and waits for ever for more might wait for himself.
                on = claim(pool,
                           dice().one_in(6) ? 0
                           : held_.empty() && dice().one_in(3)
                               ? 2 * DIBS_SECOND
                               : static_cast<int64_t>(dice().below(50)) * kMs);
                break;
            case 3:
                on = batch();
                break;
            case 4:
            case 5:
            case 6:
                on = give_back(dice().one_in(2));
                break;
            case 7:
                on = keep_alive();
                break;
            case 8:
                scene_.world.pass(dice().below(dice().one_in(8) ? 60'000'000 : 300'000));
                break;
            default:
                on = reap(static_cast<int64_t>(dice().below(5)) * kMs);
        }
        if (!on) return;
    }
    if (scene_.calm && !finish()) return;
    dibs_session* session = session_;
    session_ = nullptr;
    scene_.ledger.died(process_);
    (void)dibs_close(session);
}

// ---- workers

// A word that came too late, or said again, is answered and changes nothing.
bool Worker::told(int code, const char* what) {
    if (over(code)) return false;
    ++scene_.commands;
    scene_.ledger.told(static_cast<uint64_t>(code));
    expect(code == DIBS_OK || code == DIBS_ESTALE || code == DIBS_ESTATE ||
               code == DIBS_ENOTFOUND || code == DIBS_EFULL || code == DIBS_EUNREAD ||
               code == DIBS_ETIMEDOUT,
           std::string(what) + " ends with " + dibs_strerror(code));
    return true;
}

bool Worker::announce() {
    if (slots_.size() >= kSlotsOfAWorker) return true;
    std::vector<uint32_t> places;
    for (uint32_t pool = 0; pool < scene_.pools.size(); ++pool) {
        if (scene_.pools[pool].has_workers) places.push_back(pool);
    }
    if (places.empty()) return true;
    doing("announcing");
    const uint32_t pool = places[dice().below(places.size())];
    const std::string name = std::to_string(process_) + "-" + std::to_string(++names_);
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.name = name.c_str();
    options.ready = 1;
    uint64_t slot = 0;
    const int code = dibs_announce(session_, pool, &options, 5 * DIBS_SECOND, &slot);
    if (over(code)) return false;
    ++scene_.commands;
    if (code != DIBS_OK) {
        expect(code == DIBS_ENOROOM || code == DIBS_ETABLES || code == DIBS_ETIMEDOUT ||
                   code == DIBS_EUNREAD || code == DIBS_EFULL,
               std::string("an announcement ends with ") + dibs_strerror(code));
        return true;
    }
    slots_[slot] = {pool, 0, Slot::kIdle, now()};
    return true;
}

bool Worker::hear() {
    doing("waiting for work");
    dibs_assignment assignment;
    const int code =
        dibs_next_assignment(session_, static_cast<int64_t>(dice().below(20)) * kMs, &assignment);
    if (over(code)) return false;
    if (code == DIBS_EUNREAD) {
        dibs_completion ends[8];
        (void)dibs_reap(session_, ends, 8, 0);
    }
    if (code == DIBS_ETIMEDOUT || code == DIBS_EUNREAD) return true;
    expect(code == DIBS_OK, std::string("no assignment: ") + dibs_strerror(code));
    if (code != DIBS_OK) return true;
    const auto found = slots_.find(assignment.slot);
    // Of a slot that it announced and was not told of, or has taken back.
    if (found == slots_.end()) {
        return told(dibs_ready(session_, assignment.slot, assignment.round, DIBS_NOWAIT), "ready");
    }
    Slot& slot = found->second;
    slot.round = assignment.round;
    slot.since_ns = now();
    if (assignment.kind == DIBS_REVOKE) {
        ++scene_.seen["revoked"];
        scene_.ledger.free(process_, assignment.slot);
        slot.state = Slot::kIdle;
        return told(dibs_ready(session_, assignment.slot, slot.round, DIBS_NOWAIT), "ready");
    }
    scene_.ledger.assigned(process_, assignment.slot, scene_.pools[slot.pool].release_is_ready);
    const uint64_t draw = scene_.calm ? 0 : dice().below(12);
    if (draw == 11) {  // says nothing
        slot.state = Slot::kSilent;
        return true;
    }
    if (draw >= 9) {
        slot.state = Slot::kIdle;
        const int refused =
            dibs_refuse(session_, assignment.slot, slot.round, 7, draw == 9 ? 1 : 0, DIBS_NOWAIT);
        if (!told(refused, "refuse")) return false;
        return told(dibs_ready(session_, assignment.slot, slot.round, DIBS_NOWAIT), "ready");
    }
    slot.state = Slot::kBusy;
    const int confirmed =
        dibs_confirm(session_, assignment.slot, slot.round, "at hand", 7, 10 * DIBS_SECOND);
    if (confirmed == DIBS_OK) scene_.ledger.busy(process_, assignment.slot);
    if (confirmed != DIBS_OK) slot.state = Slot::kSilent;
    return told(confirmed, "confirm");
}

bool Worker::work() {
    for (auto at = slots_.begin(); at != slots_.end(); ++at) {
        auto& [id, slot] = *at;
        const bool long_ago = now() - slot.since_ns > 30'000'000;
        if (slot.state == Slot::kSilent && (scene_.calm || long_ago)) {
            slot.state = Slot::kIdle;
            if (!told(dibs_ready(session_, id, slot.round, DIBS_NOWAIT), "ready")) return false;
        }
        if (slot.state == Slot::kBusy && !scene_.calm && dice().one_in(6)) {
            slot.state = Slot::kIdle;
            scene_.ledger.free(process_, id);
            const int done = dibs_done(
                session_, id, slot.round, nullptr, 0, 1, dice().one_in(2) ? 5 * DIBS_SECOND : 0);
            if (!told(done, "done")) return false;
            if (done != DIBS_OK) slot.state = Slot::kSilent;
        }
        if (slot.state == Slot::kIdle && !scene_.calm && dice().one_in(60)) {
            const int withdrawn = dibs_withdraw(session_, id, 5 * DIBS_SECOND);
            if (!told(withdrawn, "withdraw")) return false;
            if (withdrawn == DIBS_OK) slots_.erase(at);
            return true;
        }
    }
    return true;
}

void Worker::live() {
    const uint64_t until = 50 + dice().below(1000);
    for (uint64_t i = 0; scene_.calm || i < until; ++i) {
        if (scene_.calm) {
            if (scene_.workers_leave) break;
            for (const auto& [id, slot] : slots_)
                ++scene_.seen["calm worker " + std::to_string(slot.pool)];
        }
        if ((!scene_.calm || slots_.empty()) && !announce()) return;
        if (!hear() || !work()) return;
    }
    finished_ = scene_.calm;
    dibs_session* session = session_;
    session_ = nullptr;
    scene_.ledger.died(process_);
    (void)dibs_close(session);
}

}  // namespace dibs::sim
