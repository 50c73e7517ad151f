// tests/sim/worker.cpp -- a process that offers.
// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/actors.hpp"

namespace dibs::sim {

namespace {

constexpr uint64_t kSlotsOfAWorker = 3;

}  // namespace
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
    static const char* const kLabels[] = {"size:big", "gpu:a"};
    const uint64_t first = dice().below(3);  // 2: none
    options.labels = kLabels + first;
    options.label_count = dice().below(3 - first);
    if (options.label_count == 0) options.labels = nullptr;
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
    if (assignment.kind == DIBS_REVOKING) {
        ++scene_.seen["revoking, to a worker"];
        if (slot.state != Slot::kBusy || dice().one_in(2)) return true;
        scene_.ledger.free(process_, assignment.slot);
        slot.state = Slot::kIdle;
        const int done =
            dibs_done(session_, assignment.slot, slot.round, nullptr, 0, 1, DIBS_NOWAIT);
        return told(done, "done");
    }
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
