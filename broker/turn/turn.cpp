// broker/turn/turn.cpp -- runs the broker's loop, one turn after the other.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/turn.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "broker/admin/measured.hpp"
#include "broker/turn/cut_leases.hpp"
#include "shm/handshake.hpp"

namespace dibs {

namespace {

constexpr core::TimeNs kHarvestEvery = 1'000'000'000;
constexpr size_t kFewPolled = 8;
// Requests of a turn: some ten microseconds each. What they have killed takes up to some ms more.
constexpr int kAdministeredAtOnce = 2;

}  // namespace

Turn::Turn(core::Core& core, BoardSegment& board, Exchange& exchange, HangWatch watch)
    : core_(core),
      exchange_(exchange),
      clock_(core.now()),
      sessions_(core.sessions_max()),
      clock_stop_(core, sessions_, clock_),
      quotas_(core),
      file_accounts_(core),
      uid_accounts_(core),
      pledges_(core),
      words_(core, sessions_, clock_),
      operations_(core, quotas_, pledges_, uid_accounts_, words_),
      prepared_(core, operations_, pledges_),
      publisher_(core, board),
      sets_(core, board),
      ingest_(core, operations_, pledges_),
      read_budget_(core.sessions_max()),
      throttle_pause_(sessions_, core.sessions_max()),
      answers_(core, sessions_, operations_, publisher_, quotas_, read_budget_),
      kills_(core, sessions_),
      deaths_(core, sessions_, ingest_, kills_, words_),
      desk_(core, quotas_, words_, sessions_, sets_),
      transient_(core),
      sleep_(sessions_, exchange, publisher_, clock_, std::move(watch)) {}

void Turn::serve() {
    sleep_.begin();
    kills_.resume();
    while (!stopped_) {
        const bool waits = !anything_to_do();
        if (waits) {
            prepared_.prepare();
            if (!sleep_.rest(now_, due_ns_)) continue;
        }
        take(waits);
    }
    if (!yielded_) {
        kills_.finish();
        part();
    }
    Report finished;
    finished.kind = Report::Kind::kFinished;
    finished.in_order = !yielded_;
    exchange_.report(finished);
}

// The duties of a turn, in their order. A turn that has `spun` has read the clock some looks ago:
// its entry may have come since, and must not get an earlier time than it was sent at.
void Turn::take(bool spun) {
    // A client may wait for nothing but the answer: the work that begins a turn comes after the
    // answer, too.
    const bool plain = core_.begins_plainly();
    if (!plain) {
        look_at_clock(spun);
        core_.begin_turn(now_);
    }
    pledges_.begin_turn();
    throttle_pause_.end_due(now_);
    shm::Submission claim;
    Session* answered = answer_prepared(spun && plain, claim);
    if (plain) {
        if (answered == nullptr) look_at_clock(spun);
        core_.begin_turn(now_);
    }
    operations_.begin_turn();
    ingest_.begin_turn();
    if (answered != nullptr) {
        read_answered(*answered, claim);
    } else if (!core_.cut()) {  // else the rest of the last turn is decided before anything new
        if (transient_.end_unused()) publish_all_ = true;
        uid_accounts_.step(now_);
        if (!serve_others()) {
            if (careful_.empty()) {
                read_submissions();  // commands change rows, nothing is granted yet
            } else {
                read_carefully();  // after a broker's death: what it had in hand, one entry a turn
            }
        }
    }
    words_.read_touches();
    core_.decide();    // timers that are due, then the pass
    answers_.stage();  // completions into the log, bytes into rooms
    core_.commit();    // from here on the turn has happened
    uid_accounts_.note();
    if (copying_ != nullptr) [[unlikely]]
        copy_on();
    if (exchange_.events().wanted()) [[unlikely]]
        exchange_.events().tell(core_, administered_);
    answers_.store();  // completions into DOWN, consumed indices, wake-ups
    if (read_budget_.throttled() != 0) [[unlikely]]
        send_out();
    if (answers_.kills()) kills_.carry_out();
    core_.clear();
    // Deferrable work comes behind the next grant, or behind sessions that have new entries by now.
    const bool waited_for = sessions_.anything_new();
    if (!waited_for) prepared_.prepare();
    publisher_.publish(waited_for);
    if (!pulling_.empty()) [[unlikely]]
        answer_pulls();
    if (!administered_.empty()) [[unlikely]]
        answer_administered();
    if (!waiting_.empty()) [[unlikely]]
        answer_waiting();
    transient_.note();
    retire();
    exchange_.events().send();
    // Sleep gets the running clock also while broker time is stopped: otherwise a turn that hangs
    // meanwhile would be missed.
    sleep_.worked(clock_stop_.stands() ? clock_.now() : now_);
}

void Turn::look_at_clock(bool spun) {
    if (spun) now_ = clock_stop_.at(clock_.now(), due_ns_);
}

// Everything but submissions: a turn of its own, since it may take long, and entries that clients
// submit meanwhile must not be granted at the earlier time: their leases would end early. The next
// turn is the clients', however much other work there is. False if there was none, or it is their
// turn.
bool Turn::serve_others() {
    served_others_ = !served_others_ && others_wait();
    if (!served_others_) return false;
    words_.step(now_);                // recalls and harvests that are due
    hear();                           // new sessions, configuration, drain
    if (kills_.any()) kills_.tell();  // still alive although killed
    if (sessions_.next_look() <= now_) {
        sessions_.look_at_trees(now_, [this](const Session& session) {
            return core_.session(session.row).leases != 0;
        });
    }
    if (deaths_.any() && careful_.empty()) deaths_.reap();  // what they published still counts
    return true;
}

bool Turn::others_wait() {
    return taken_ != nullptr || exchange_.asked() || kills_.any() ||
           (deaths_.any() && careful_.empty()) || words_.next_due(now_) <= now_ ||
           sessions_.next_look() <= now_;
}

bool Turn::anything_to_do() {
    const bool work =
        sessions_.anything_new() || exchange_.asked() || deaths_.any() || kills_.any();
    due_ns_ = next_due();
    now_ = clock_stop_.at(clock_.now(), due_ns_);
    // No client's deadline: they may be late.
    due_ns_ =
        std::min({due_ns_, uid_accounts_.next_due(), words_.next_due(now_), sessions_.next_look()});
    // A holder that sent a keepalive may have rung since the last look.
    if (now_ >= due_ns_) sleep_.look(now_);
    return work || copying_ != nullptr || taken_ != nullptr || !careful_.empty() ||
           clock_stop_.stands() || core_.work_left() || uid_accounts_.unfinished() ||
           now_ >= due_ns_;
}

core::TimeNs Turn::next_due() const {
    core::TimeNs due = shm::kNever;
    for (const auto& job : waiting_)
        due = std::min(due, job->waits_until_ns);
    return std::min(
        {due, core_.next_turn(), drain_until(), transient_.next_due(), throttle_pause_.next_due()});
}

// Sessions that this turn has read, and that are throttled, get their pause.
void Turn::send_out() {
    const std::vector<Session*>& polled = sessions_.polled();
    for (size_t i = polled.size(); i-- > 0;) {
        Session* session = polled[i];
        if (read_budget_.throttles(session->row) && session->last_active_ns == now_)
            throttle_pause_.begin(*session, now_);
    }
}

// Before anything else: a client waits for it. The turn's other work for it comes later.
Session* Turn::answer_prepared(bool spun, shm::Submission& claim) {
    const std::vector<Session*>& polled = sessions_.polled();
    const bool quiet = !core_.cut() && careful_.empty() && polled.size() <= kFewPolled;
    Session* session = quiet && !others_wait() ? prepared_.find(polled, claim) : nullptr;
    if (session != nullptr) {
        if (PreparedGrant::counts_time(claim)) look_at_clock(spun);
        if (!prepared_.tell(now_, claim)) session = nullptr;
    }
    prepared_.forget();
    return session;
}

void Turn::read_answered(Session& session, const shm::Submission& claim) {
    ingest_.read_answered(session, claim);
    session.last_active_ns = now_;
    sessions_.in_turn(&session);
    served_others_ = false;
}

void Turn::read_submissions() {
    const std::vector<Session*>& polled = sessions_.polled();
    const size_t count = polled.size();
    if (count == 0) return;
    pledges_.allow(one_speaks());
    if (first_ >= count) first_ = 0;
    // A session that ends leaves the set, and the ones behind it move up: one of them may be passed
    // over in this turn.
    size_t i = 0;
    for (; i < count && !ingest_.turn_full() && !sessions_.turn_full(); ++i) {
        const size_t at = first_ + i < count ? first_ + i : first_ + i - count;
        if (at >= polled.size()) continue;
        Session* session = polled[at];
        if (!session->up.maybe()) {
            clock_stop_.found_nothing(*session);
            continue;
        }
        const uint64_t before = session->up.head();
        const Ingest::Read read = ingest_.read(*session, read_budget_.budget(session->row));
        if (session->up.head() != before) {
            session->last_active_ns = now_;
            sessions_.in_turn(session);
            if (!read_budget_.throttles(session->row)) prepared_.expect(session);
        } else {
            clock_stop_.found_nothing(*session);
        }
        if (read == Ingest::Read::kClosed) sessions_.end(session, shm::Reason::kOk);
        if (read == Ingest::Read::kViolation) sessions_.end(session, shm::Reason::kMalformed);
        if (pledges_.told()) {
            ++i;
            break;
        }
    }
    // Sessions that a full turn has left out come first in the next one.
    first_ += i < count ? i : 1;
}

// Looks at a few sessions only: with many, a turn of its own for each claim costs more than it
// saves.
bool Turn::one_speaks() const {
    const std::vector<Session*>& polled = sessions_.polled();
    return polled.size() <= kFewPolled &&
           std::count_if(polled.begin(), polled.end(), [](const Session* session) {
               return session->up.maybe();
           }) == 1;
}

void Turn::hear() {
    if (core_.pools_go()) return;  // until their names are free
    if (taken_ == nullptr && !exchange_.asked()) return;
    Request request;
    int administered = 0;
    // Nothing is done in a STATE that has been given up, or left to the next broker.
    while (!stopped_ && take_configuration() && !core_.turn_full() && exchange_.next(request)) {
        switch (request.kind) {
            case Request::Kind::kSession:
                open(request.session);
                break;
            case Request::Kind::kEnd:
                end(request);
                break;
            case Request::Kind::kConfig:
                take_over(request.config);
                break;
            case Request::Kind::kAdmin:
                administer(request.job);
                if (++administered == kAdministeredAtOnce) return;
                break;
            case Request::Kind::kCopy:
                copying_.reset(request.copying);
                break;
            case Request::Kind::kUnrecord:
                unrecord();
                break;
            case Request::Kind::kStop:
                stopped_ = true;
                break;
            case Request::Kind::kReplace:
                replace();
                break;
            case Request::Kind::kYield:
                stopped_ = yielded_ = true;
                break;
            case Request::Kind::kDrain:
                drain(request.within_ns == 0 ? drain_timeout_ns_ : request.within_ns);
                break;
        }
    }
}

// The end that comes first counts.
void Turn::drain(uint64_t within_ns) {
    if (!draining_) core_.apply(core::Drain{});
    words_.pools_change();
    draining_ = true;
    const uint64_t asked_ns = Clock::monotonic();
    if (within_ns < shm::kNever - asked_ns) end_ns_ = std::min(end_ns_, asked_ns + within_ns);
    desk_.set_end(end_ns_);
}

core::TimeNs Turn::drain_until() const {
    if (end_ns_ >> 63U != 0) return shm::kNever;
    // Below zero where broker time, which stands as the broker does, began after the end.
    const core::TimeNs until = end_ns_ + clock_.offset();
    return until >> 63U != 0 ? 0 : until;
}

void Turn::open(Session* session) {
    core::SessionOpen command;
    command.uid = session->peer.uid;
    command.gid = session->peer.gid;
    command.pid = session->peer.pid;
    command.start_time = session->peer.start_time;
    command.tags_max = static_cast<uint16_t>(session->sizes.tags);
    command.submission_entries = session->sizes.submission_entries;
    command.completion_entries = session->sizes.completion_entries;
    command.up_payload_size = session->sizes.up_payload;
    command.down_payload_size = session->sizes.down_payload;
    command.tree = session->tree.id;
    const std::string account = quotas_.charged() ? quotas_.account_of(session->peer) : "";
    command.account = account;
    session->row = core_.open_session(command);
    if (session->row == shm::kNoRow) {
        exchange_.report({Report::Kind::kFull, session, "all session rows are in use"});
        return;
    }
    session->generation = core_.session(session->row).head.generation;
    session->last_active_ns = now_;
    if (!sleep_.add(*session)) {
        sleep_.remove(*session);
        core_.session_died(session->row);
        exchange_.report({Report::Kind::kFull, session, "the kernel has no room for a doorbell"});
        return;
    }
    sessions_.add(session);
    quotas_.add(*session);
    publisher_.set_sessions(sessions_.all().size());
    opened_.push_back(session);
}

// STATE is given up: no client may be attached that would miss it.
void Turn::replace() {
    Report report;
    report.kind = Report::Kind::kReplaced;
    if (draining_) {
        report.why = "the broker is about to stop";
    } else if (!sessions_.all().empty()) {
        report.why = "clients are attached: dibs ls clients shows them; load when nobody is there";
    } else {
        stopped_ = yielded_ = true;
    }
    exchange_.report(report);
}

void Turn::administer(AdminJob* job) {
    if (job->request.ask == admin::Ask::reload) {  // it stands behind its configuration
        job->answer.names.insert(job->answer.names.end(), refused_.begin(), refused_.end());
        return administered_.push_back(job);
    }
    words_.read_all();
    const bool asks_if_idle = job->request.ask == admin::Ask::stop_unused || job->request.if_idle;
    if (job->is_admin && asks_if_idle) words_.recall_parked();
    desk_.serve(*job);
    const admin::Ask ask = job->request.ask;
    if (ask == admin::Ask::drain || ask == admin::Ask::undrain || ask == admin::Ask::create)
        words_.pools_change();
    tell_measured(core_, publisher_, job);
    publish_all_ = publish_all_ || job->made_pool;
    if (job->request.ask == admin::Ask::create) {
        transient_.asked_for(core_.find_pool(job->request.pool));
    }
    stopped_ = stopped_ || job->stops;
    if (job->pulls) {
        pulling_.push_back(job);
    } else if (job->waits) {
        waiting_.emplace_back(job);
    } else {
        administered_.push_back(job);
    }
}

void Turn::end(const Request& request) {
    Session* session = sessions_.at(request.row);
    if (session == nullptr || session->generation != request.generation) return;
    if (request.unless_used && (session->consumed != 0 || session->up.maybe())) return;
    sessions_.end(session, shm::Reason::kOk);
}

// After the commit: a session has its segments and its doorbells before its client gets the
// Welcome, and gets its end before it is freed.
void Turn::retire() {
    // First: clients that are welcomed below find the pools that came in this turn.
    if (publish_all_) {
        publisher_.publish_all();
        sets_.publish();
    }
    publish_all_ = false;
    for (Session* session : opened_) {
        shm::write_up_head(*session->up_mapping.at<shm::UpHead>(0),
                           session->sizes,
                           session->row,
                           session->generation);
        shm::write_down_head(
            *session->down, session->sizes, session->row, session->generation, core_.head().epoch);
        session->down->need_wakeup.store(1, std::memory_order_relaxed);
        exchange_.report({Report::Kind::kOpened, session});
        tell_of(*session, shm::EventKind::kSessionOpened);
    }
    opened_.clear();
    if (!deaths_.gone().empty()) clock_stop_.look();
    for (Session* session : deaths_.gone()) {
        tell_of(*session, shm::EventKind::kSessionEnded);
        Answers::farewell(*session);
        publisher_.harvest(*session);
        sleep_.remove(*session);
        operations_.forget(*session);
        prepared_.forget(*session);
        read_budget_.forget(session->row);
        throttle_pause_.forget(*session);
        sessions_.remove(session);
        exchange_.report({Report::Kind::kRetired, session});
        publisher_.set_sessions(sessions_.all().size());
    }
    deaths_.gone().clear();
    if (draining_ && (drained() || now_ >= drain_until())) stopped_ = true;
    if (now_ - harvested_ns_ >= kHarvestEvery && !sessions_.all().empty()) {
        harvested_ns_ = now_;
        harvest_ = harvest_ + 1 < sessions_.all().size() ? harvest_ + 1 : 0;
        publisher_.harvest(*sessions_.all()[harvest_]);
    }
}

void Turn::tell_of(const Session& session, shm::EventKind what) {
    if (!exchange_.events().wanted()) return;
    exchange_.events().tell_session(core_, session.row, session.generation, what);
}

bool Turn::drained() const {
    if (sessions_.any_outlived()) return false;
    for (uint32_t row = 0; row < core_.pools(); ++row) {
        const shm::PoolRow& pool = core_.pool(row);
        if (pool.leased != 0 || pool.waiting != 0 || pool.confirming != 0) return false;
    }
    return true;
}

// Reads one entry of one session: if the broker dies of it again, no other client's entry is in
// hand.
void Turn::read_carefully() {
    while (!careful_.empty() && !ingest_.turn_full()) {
        Session* session = careful_.back();
        if (session->ending || session->up.head() >= session->careful_until) {
            // It is committed: the entry in hand at the next death is another one.
            if (!session->ending) (void)core_.take_hand(session->row);
            careful_.pop_back();
            continue;
        }
        const uint64_t before = session->up.head();
        const Ingest::Read read = ingest_.read(*session, 1);
        if (session->up.head() != before) sessions_.in_turn(session);
        if (read == Ingest::Read::kClosed) sessions_.end(session, shm::Reason::kOk);
        if (read == Ingest::Read::kViolation) sessions_.end(session, shm::Reason::kMalformed);
        if (session->up.head() == before) careful_.pop_back();
        return;
    }
}

// The broker stops: all attached clients are notified.
void Turn::part() {
    say_what_is_cut(core_);
    for (Session* session : sessions_.all()) {
        session->end_reason = shm::Reason::kDraining;
        Answers::farewell(*session);
        exchange_.report({Report::Kind::kRetired, session});
    }
}

}  // namespace dibs
