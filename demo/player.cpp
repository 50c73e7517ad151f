// demo/player.cpp -- runs the event loop of the claiming sessions.
// SPDX-License-Identifier: Apache-2.0
#include "demo/player.hpp"

#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "demo/instant.hpp"
#include "demo/timing.hpp"

namespace dibs::ctl::demo {

namespace {

constexpr uint64_t kHeadStart = 20'000'000;       // between being ready and the first arrival
constexpr uint64_t kLookEvery = 10'000'000;       // counters are looked at this often at least
constexpr uint64_t kStallAfter = 30'000'000'000;  // nothing happens though something should
constexpr uint64_t kSettleWithin = 60'000'000'000;
constexpr uint64_t kShowEvery = 1'000'000'000;
constexpr int kDeathShownMs = 500;  // its effects may be seen before the broker's death itself

std::string outcome_text(const dibs_completion& completion) {
    return std::string("ended ") + dibs_outcome_name(completion.outcome) + " (" +
           dibs_reason_name(completion.code) + ")";
}

}  // namespace

Player::Player(const std::vector<TraceRow>& rows,
               PoolShape shape,
               std::vector<std::unique_ptr<ClientSession>>* sessions,
               Sampler* sampler,
               const Surroundings& around)
    : rows_(rows),
      shape_(shape),
      sessions_(*sessions),
      sampler_(*sampler),
      around_(around),
      states_(rows.size()) {}

PlayResult Player::play() {
    start_ns_ = monotonic_ns() + kHeadStart;
    progress_ns_ = start_ns_;
    while (result_.failure.empty() && !result_.interrupted && !finished()) {
        const uint64_t now = monotonic_ns();
        submit_due(now);
        release_due(now);
        const bool more = take_completions();
        sampler_.look(sessions_.front()->handle(), sessions_.front()->pool());
        show_progress(now);
        check_stall(now);
        if (!more) wait(monotonic_ns());
    }
    if (around_.shows_progress) std::fprintf(stderr, "\r\033[K");
    return std::move(result_);
}

// All leases are over, and the workers have said so of all their slots: slots of a claim that
// another of its workers ended first still learn of it.
bool Player::finished() const {
    if (over_ != rows_.size()) return false;
    const dibs_counters& last = sampler_.last();
    return last.idle == last.slots || monotonic_ns() > progress_ns_ + kSettleWithin;
}

ClientSession& Player::session_of(size_t row) {
    return *sessions_[rows_[row].tenant % sessions_.size()];
}

void Player::submit_due(uint64_t now) {
    for (; next_ < rows_.size() && arrival(next_) <= now; ++next_)
        session_of(next_).enqueue(next_);
    for (const auto& session : sessions_) {
        if (session->held_back() == 0) continue;
        int accepted = 0;
        do {
            accepted = session->submit(rows_);
            if (accepted < 0) return fail(call_failure("submitting a claim", accepted));
            result_.submitted += static_cast<uint64_t>(accepted);
            if (accepted > 0) progress_ns_ = now;
        } while (accepted > 0 && session->held_back() > 0);
        result_.held_back = std::max<uint64_t>(result_.held_back, session->held_back());
    }
}

void Player::release_due(uint64_t now) {
    while (!holds_.empty() && holds_.top().time <= now) {
        const size_t row = holds_.top().row;
        RowState& state = states_[row];
        if (state.phase == Phase::kGranted && shape_ == PoolShape::kCounted) {
            // The use ends before the broker may know: after its release the slots belong to other
            // claims.
            for (const uint32_t slot : state.slots)
                around_.witness->end_use(slot, row + 1);
            state.slots.clear();
            if (!session_of(row).release(row, state.lease)) return;
            state.phase = Phase::kReleasing;
            progress_ns_ = now;
        }
        // A worker ends its use itself; what is overdue there is not waited for in this list.
        holds_.pop();
    }
}

bool Player::take_completions() {
    bool full = false;
    for (const auto& session : sessions_) {
        session->dispatch();
        const int count = session->reap(&batch_);
        if (count < 0) {
            session_lost(count);
            return false;
        }
        const uint64_t now = count > 0 ? monotonic_ns() : 0;
        for (const dibs_completion& completion : batch_)
            take(completion, now);
        if (count > 0) progress_ns_ = now;
        full = full || count > 0;
    }
    return full;
}

void Player::take(const dibs_completion& completion, uint64_t now) {
    const auto row = static_cast<size_t>(completion.user_data);
    if (row >= rows_.size()) return fail("a completion names a claim that was never made");
    switch (completion.kind) {
        case DIBS_CLAIM_ENDED:
            return claim_ended(completion, row, now);
        case DIBS_LEASE_ENDED:
            return lease_over(row,
                              now,
                              shape_ == PoolShape::kWorkers && completion.code == DIBS_EDONE,
                              std::string("its lease ended: ") + dibs_reason_name(completion.code));
        case DIBS_RESULT:
            return lease_over(row,
                              now,
                              completion.code == DIBS_OK,
                              std::string("its release: ") + dibs_reason_name(completion.code));
        default:
            return note_bad(row, "its lease expired");
    }
}

void Player::claim_ended(const dibs_completion& completion, size_t row, uint64_t now) {
    if (states_[row].phase != Phase::kToCome) {
        ++result_.ended_twice;
        return note_bad(row, "had a second outcome");
    }
    switch (completion.outcome) {
        case DIBS_GRANTED:
            return granted(completion, row, now);
        case DIBS_EXPIRED:
            ++result_.expired;
            break;
        case DIBS_CANCELLED:
            ++result_.cancelled;
            break;
        case DIBS_REJECTED:
            ++result_.rejected;
            break;
        default:
            ++result_.broker_lost;
            break;
    }
    states_[row].phase = Phase::kOver;
    ++over_;
    note_bad(row, outcome_text(completion));
}

void Player::granted(const dibs_completion& completion, size_t row, uint64_t now) {
    RowState& state = states_[row];
    state.phase = Phase::kGranted;
    state.lease = completion.lease;
    ++result_.granted;
    result_.units_granted += completion.lease.units;
    result_.waits_ns.push_back(now > arrival(row) ? now - arrival(row) : 0);
    holds_.push({now + rows_[row].hold_ns, row});
    if (completion.lease.units != rows_[row].units) note_bad(row, "was granted other units");
    if (shape_ == PoolShape::kCounted) witness_slots(row);
}

void Player::witness_slots(size_t row) {
    RowState& state = states_[row];
    for (uint32_t unit = 0; unit < rows_[row].units; ++unit) {
        dibs_slot slot{};
        const int code = dibs_lease_slot(session_of(row).handle(), &state.lease, unit, &slot);
        if (code != 0) return fail(call_failure("asking for a granted slot", code));
        if (slot.number >= around_.witness->cells().size()) {
            return fail("a granted slot has the number " + std::to_string(slot.number));
        }
        around_.witness->start_use(slot.number, row + 1);
        state.slots.push_back(slot.number);
    }
}

void Player::lease_over(size_t row, uint64_t now, bool as_it_should, const std::string& why) {
    RowState& state = states_[row];
    const bool expected = shape_ == PoolShape::kWorkers ? Phase::kGranted == state.phase
                                                        : Phase::kReleasing == state.phase;
    if (!expected || !as_it_should) {
        ++result_.bad_ends;
        note_bad(row, why);
    }
    if (state.phase == Phase::kOver || state.phase == Phase::kToCome) return;
    for (const uint32_t slot : state.slots)
        around_.witness->end_use(slot, row + 1);
    state.slots.clear();
    state.phase = Phase::kOver;
    ++over_;
    ++result_.leases_ended;
    result_.makespan_ns = std::max(result_.makespan_ns, now - start_ns_);
}

uint64_t Player::next_instant() const {
    uint64_t next = UINT64_MAX;
    if (next_ < rows_.size()) next = arrival(next_);
    if (!holds_.empty()) next = std::min(next, holds_.top().time);
    return next;
}

void Player::wait(uint64_t now) {
    std::vector<pollfd> watched;
    bool armed = true;
    for (const auto& session : sessions_) {
        armed = session->arm() && armed;
        watched.push_back({session->fd(), POLLIN, 0});
    }
    watched.push_back({around_.signal_fd, POLLIN, 0});
    watched.push_back(
        {around_.broker_output->closed() ? -1 : around_.broker_output->fd(), POLLIN, 0});
    watched.push_back(
        {around_.worker_output->closed() ? -1 : around_.worker_output->fd(), POLLIN, 0});
    watched.push_back({around_.broker->pidfd(), POLLIN, 0});
    for (const Child& worker : *around_.workers)
        watched.push_back({worker.pidfd(), POLLIN, 0});
    const uint64_t next = std::min(next_instant(), now + kLookEvery);
    const uint64_t timeout = armed && next > now ? next - now : 0;
    if (poll_for(watched.data(), watched.size(), timeout) > 0) look_around(watched);
}

void Player::look_around(const std::vector<pollfd>& watched) {
    const auto after_sessions = watched.begin() + static_cast<std::ptrdiff_t>(sessions_.size());
    if ((after_sessions->revents & POLLIN) != 0) result_.interrupted = true;
    if (after_sessions[1].revents != 0) around_.broker_output->read();
    if (after_sessions[2].revents != 0) around_.worker_output->read();
    const bool died = std::any_of(
        after_sessions + 3, watched.end(), [](const pollfd& one) { return one.revents != 0; });
    if (died) look_at_children();
}

void Player::look_at_children() {
    // Workers end when the broker dies, and may be seen to before it: then it is to be named.
    const bool worker_ended = std::any_of(around_.workers->begin(),
                                          around_.workers->end(),
                                          [](Child& worker) { return worker.wait(0).has_value(); });
    if (const auto status = around_.broker->wait(worker_ended ? kDeathShownMs : 0)) {
        around_.broker_output->read();
        return fail("the broker ended: " + shown_status(*status) + "; it said:\n" +
                    around_.broker_output->last_words());
    }
    for (Child& worker : *around_.workers) {
        const auto status = worker.wait(0);
        if (!status) continue;
        around_.worker_output->read();
        return fail(worker.name() + " ended: " + shown_status(*status) + "; the workers said:\n" +
                    around_.worker_output->last_words());
    }
}

// Most often because the broker has died; then its own words say more.
void Player::session_lost(int code) {
    around_.broker->wait(kDeathShownMs);
    look_at_children();
    fail(call_failure("a session was lost", code));
}

// Something is due and nothing happens: better to end with what is known than to hang.
void Player::check_stall(uint64_t now) {
    const uint64_t planned = next_instant();
    if (planned != UINT64_MAX && planned > now) return;
    if (now < progress_ns_ + kStallAfter) return;
    const dibs_counters& last = sampler_.last();
    fail("nothing happened for 30 s: " + std::to_string(result_.submitted) + " claims submitted, " +
         std::to_string(result_.granted) + " granted, " + std::to_string(over_) +
         " over; the pool has " + std::to_string(last.idle) + " idle, " +
         std::to_string(last.reserved) + " reserved, " + std::to_string(last.leased) + " leased, " +
         std::to_string(last.recovering) + " recovering, " + std::to_string(last.unknown) +
         " unknown slots and " + std::to_string(last.queued) +
         " queued claims; the broker said:\n" + around_.broker_output->last_words());
}

void Player::note_bad(size_t row, const std::string& what) {
    if (!result_.first_bad.empty()) return;
    result_.first_bad = "the claim of line " + std::to_string(rows_[row].line) + " " + what;
}

void Player::fail(const std::string& why) {
    if (result_.failure.empty()) result_.failure = why;
}

void Player::show_progress(uint64_t now) {
    if (!around_.shows_progress || now < shown_ns_ + kShowEvery) return;
    shown_ns_ = now;
    const dibs_counters& last = sampler_.last();
    std::fprintf(stderr,
                 "\r\033[K%s  %llu of %zu claims granted, %u waiting, %u of %u slots leased ",
                 shown_ns(now > start_ns_ ? now - start_ns_ : 0).c_str(),
                 static_cast<unsigned long long>(result_.granted),
                 rows_.size(),
                 last.queued,
                 last.leased,
                 last.slots);
    std::fflush(stderr);
}

}  // namespace dibs::ctl::demo
