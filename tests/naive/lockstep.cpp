// tests/naive/lockstep.cpp -- plays, joins cut turns, compares.
// SPDX-License-Identifier: Apache-2.0
#include "tests/naive/lockstep.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <span>
#include <utility>

#include "broker/core/core.hpp"
#include "broker/core/look.hpp"
#include "tests/naive/account_rows.hpp"
#include "tests/naive/dispatch_rows.hpp"
#include "tests/naive/elastic_rows.hpp"
#include "tests/naive/gang_rows.hpp"
#include "tests/naive/journal_bytes.hpp"
#include "tests/naive/naive_core.hpp"
#include "tests/naive/player.hpp"
#include "tests/naive/pool_rows.hpp"
#include "tests/naive/state_bytes.hpp"
#include "tests/naive/statements.hpp"
#include "tests/naive/turn_record.hpp"
#include "tests/naive/wording.hpp"

namespace dibs::naive {

namespace {

class Lockstep {
  public:
    Lockstep(const Journal& journal, Coverage* coverage)
        : journal_(journal),
          coverage_(coverage),
          bytes_(journal.limits),
          real_(std::in_place, bytes_.span()),
          naive_(journal.limits),
          real_player_(std::in_place, *real_, journal),
          naive_player_(naive_, journal),
          has_accounts_(std::any_of(
              journal.pools.begin(),
              journal.pools.end(),
              [](const PoolSpec& pool) { return pool.config.order == shm::PoolOrder::kAccount; })),
          has_elastic_(
              std::any_of(journal.pools.begin(),
                          journal.pools.end(),
                          [](const PoolSpec& pool) { return pool.config.workers_max != 0; })),
          has_several_(std::any_of(journal.steps.begin(),
                                   journal.steps.end(),
                                   [](const Step& step) {
                                       return !step.also.empty() ||
                                              step.kind == StepKind::kApplication;
                                   })),
          has_restarts_(
              std::any_of(journal.steps.begin(),
                          journal.steps.end(),
                          [](const Step& step) { return step.kind == StepKind::kRestart; })),
          statements_(journal),
          record_(journal) {}

    // How often each statement was put to the test.
    [[nodiscard]] const Tested& tested() const { return statements_.tested(); }

    std::optional<Disagreement> play();

  private:
    void play_from(size_t& i);
    [[nodiscard]] bool answers_first(const Step& step) const;
    void open_turn(TimeNs now);
    bool close_turn(size_t step, Death death);
    bool decide_real(Death death);
    void restart_in_turn(size_t step);
    void attach();
    [[nodiscard]] std::string left_undone(Death death) const;
    [[nodiscard]] std::string left_to_pass(bool same_turn) const;
    bool compare(size_t step);
    [[nodiscard]] std::string offers_difference(uint32_t pool, size_t step) const;
    [[nodiscard]] std::string stamp_difference(uint32_t pool);
    bool disagree(size_t step, const std::string& what);

    const Journal& journal_;
    Coverage* coverage_;
    StateBytes bytes_;
    std::optional<core::Core> real_;
    NaiveCore naive_;
    std::optional<Player<core::Core>> real_player_;
    Player<NaiveCore> naive_player_;
    std::optional<Player<core::Core>> at_turn_begin_;  // what the player knew then
    size_t turn_begin_ = 0;
    bool has_accounts_ = false;
    bool has_elastic_ = false;
    bool has_several_ = false;
    // Turns of the core at the same time, that were no cuts: whether they go on with the last one.
    std::vector<bool> turns_more_;
    bool has_restarts_ = false;
    bool hits_are_lost_ = false;
    Statements statements_;
    TurnRecord record_;
    // By pool, since the last restart: the last stamp of its offers, and those.
    std::map<uint32_t, std::pair<uint64_t, std::vector<core::Offer>>> offered_;
    std::optional<Disagreement> found_;
};

// A decision about what nobody has heard of ends in an exception of the player.
std::optional<Disagreement> Lockstep::play() {
    size_t i = 0;
    try {
        play_from(i);
    } catch (const std::exception& unheard_of) {
        disagree(i, std::string("a decision names what is not there: ") + unheard_of.what());
    }
    return found_;
}

void Lockstep::play_from(size_t& i) {
    TimeNs now = 1000;
    open_turn(now);
    for (; i < journal_.steps.size(); ++i) {
        const Step& step = journal_.steps[i];
        const bool ends_turn = step.kind == StepKind::kTurnEnd;
        // A large pool is made in turns of its own, before anything speaks of it.
        const bool pool_is_new = i > 0 && journal_.steps[i - 1].kind == StepKind::kSetPool;
        const bool is_full = real_->turn_full();
        if (ends_turn || pool_is_new || is_full || answers_first(step)) {
            coverage_->full += is_full;
            if (!close_turn(i, ends_turn ? step.death : Death::kNone)) return;
            if (ends_turn) now = std::max(now, step.at_ns);
            open_turn(now);
            turn_begin_ = ends_turn ? i + 1 : i;
            if (ends_turn) continue;
        }
        if (step.kind == StepKind::kRestart) {
            restart_in_turn(i);
            continue;
        }
        coverage_->commands += 1;
        record_.play(step, *real_, *real_player_);
        const std::vector<uint64_t> reused = real_player_->take_leases_of_reused_rows();
        for (const uint64_t lease : reused)
            naive_.lease_row_used_again(lease);
        const size_t leases = naive_.model().leases.size();
        naive_player_.play(step);
        const bool is_recalled =
            step.kind == StepKind::kHarvest && naive_.model().leases.size() < leases;
        if (is_recalled) coverage_->seen["recalled"] += 1;
        if (step.kind == StepKind::kTouch) coverage_->seen["touched"] += 1;
        // A lease's end may have handed its slot over, and so its row.
        for (const uint64_t lease : reused)
            naive_.lease_row_used_again(lease);
    }
    close_turn(journal_.steps.size(), Death::kNone);
}

// The core answers at once who deletes a pool or makes it smaller. Where its log has no room for
// the ends of all claims that this ends, they come behind the answer, so a turn with large pools
// should not have filled the log before.
bool Lockstep::answers_first(const Step& step) const {
    if (step.kind != StepKind::kDeletePool && step.kind != StepKind::kChangePool) return false;
    return std::any_of(journal_.pools.begin(), journal_.pools.end(), [](const PoolSpec& pool) {
        return pool.config.slots > 1000;
    });
}

void Lockstep::open_turn(TimeNs now) {
    real_->begin_turn(now);
    real_player_->turn_opened();
    real_player_->forget_lines();
    naive_.begin_turn(now);
    naive_player_.turn_opened();
    naive_player_.forget_lines();
    naive_player_
        .listen();  // what the opening decides is told before what a command answers at once
    record_.open(*real_player_);
    if (has_restarts_) at_turn_begin_.emplace(*real_player_);
}

// Another core over the same bytes.
void Lockstep::attach() {
    coverage_->restarts += 1;
    offered_.clear();
    real_.emplace(bytes_.span());
}

// Nothing of the turn has happened: its commands come once more.
void Lockstep::restart_in_turn(size_t step) {
    const TimeNs now = real_->now();
    attach();
    real_->begin_turn(now);
    real_player_.emplace(*at_turn_begin_);
    record_.open(*real_player_);
    for (size_t i = turn_begin_; i < step; ++i)
        record_.play(journal_.steps[i], *real_, *real_player_);
}

// Turns of the core until it has nothing left to do at this time. False: it does not come to an
// end.
bool Lockstep::decide_real(Death death) {
    for (int turns = 0; turns < 10'000; ++turns) {
        real_->decide();
        real_player_->listen();
        real_->commit();
        if (death != Death::kBeforeClear) real_->clear();
        const bool goes_on = real_->work_left();
        const bool passes_again = real_->passes_again();
        const bool is_cut = real_->cut() && !passes_again;
        if (death != Death::kNone) attach();
        if (!goes_on) return true;
        // Which claims came in with a turn dies with the core: what is left of it has no hits.
        hits_are_lost_ = hits_are_lost_ || death != Death::kNone;
        coverage_->cuts += 1;
        if (!is_cut || death != Death::kNone) turns_more_.push_back(is_cut || passes_again);
        real_->begin_turn(naive_.model().now);
        real_player_->turn_opened();
    }
    return false;
}

bool Lockstep::close_turn(size_t step, Death death) {
    coverage_->turns += 1;
    turns_more_.clear();
    const bool ended = decide_real(death);
    if (!has_accounts_ && !has_elastic_ && !has_several_) turns_more_.clear();
    const auto is_last = [&](size_t turn) {
        return turn >= turns_more_.size() || !turns_more_[turn];
    };
    naive_.decide(is_last(0));
    naive_player_.listen();
    // A core may take a turn more at the same time, to look again at what it has changed; the naive
    // one knows of one case in which it must. Who follows a dead one begins a turn of its own, and
    // answers nobody who had pulled.
    for (size_t turn = 0; turn < turns_more_.size(); ++turn) {
        const bool lives_on = death == Death::kNone;
        if (!lives_on) naive_.forget_pulls();
        naive_.begin_turn(naive_.model().now, turns_more_[turn] && lives_on);
        naive_player_.turn_opened();
        naive_.decide(is_last(turn + 1));
        naive_player_.listen();
    }
    if (naive_.wants_turn()) return disagree(step, "another turn should have followed");
    const std::string undone = left_undone(death);
    if (!undone.empty()) return disagree(step, undone);
    for (const uint64_t lease : real_player_->take_leases_of_reused_rows()) {
        naive_.lease_row_used_again(lease);
    }
    for (const DecisionLine& line : naive_player_.lines())
        coverage_->count(line);
    if (!ended) return disagree(step, "the core has work left after 10,000 turns at one time");
    // The statements are about claims of one pool, and of no application.
    const std::string broken =
        has_several_ ? ""
                     : statements_.judge(record_.close(naive_.model().now, *real_, *real_player_));
    if (!compare(step)) {
        if (!broken.empty()) found_->what += "; the core breaks " + broken;
        return false;
    }
    return broken.empty() || disagree(step, broken);
}

// What another pass of the turn would give or take, though nobody knows that it is to come, or the
// next turn, though it is not to come at once: a wake-up is lost. Where a timer is due one does
// come, and whoever attaches takes a turn.
std::string Lockstep::left_undone(Death death) const {
    const TimeNs now = naive_.model().now;
    if (naive_.next_due() <= now) return {};
    const std::string of_turn = left_to_pass(true);
    const bool comes = death != Death::kNone || real_->next_turn() <= now + 1;
    return of_turn.empty() && !comes ? left_to_pass(false) : of_turn;
}

std::string Lockstep::left_to_pass(bool same_turn) const {
    NaiveCore again = naive_;
    again.begin_turn(again.model().now, same_turn);
    again.decide();
    for (const core::Decision& decision : again.decisions()) {
        const core::DecisionKind kind = decision.kind;
        if (kind != core::DecisionKind::kGrant && kind != core::DecisionKind::kAssign &&
            kind != core::DecisionKind::kPreempt && kind != core::DecisionKind::kEnd &&
            kind != core::DecisionKind::kCreate && kind != core::DecisionKind::kStop &&
            kind < core::DecisionKind::kLock) {
            continue;
        }
        return std::string("left to another pass: ") + name_of(kind) + " of claim " +
               std::to_string(decision.claim) + std::string(decision.entry);
    }
    return {};
}

bool Lockstep::compare(size_t step) {
    const std::vector<DecisionLine>& real = real_player_->lines();
    const std::vector<DecisionLine>& naive = naive_player_.lines();
    const auto same = [&](const DecisionLine& said, DecisionLine expected) {
        // The hit ratio of a demand.
        const bool is_demand = expected.kind == core::DecisionKind::kDemand;
        if (is_demand && hits_are_lost_) expected.round = said.round;
        return said == expected;
    };
    if (!std::equal(real.begin(), real.end(), naive.begin(), naive.end(), same)) {
        size_t at = 0;
        while (at < real.size() && at < naive.size() && same(real[at], naive[at]))
            ++at;
        return disagree(step, "decision " + std::to_string(at) + " of the turn differs");
    }
    for (uint32_t pool = 0; pool < naive_.model().pools.size(); ++pool) {
        const std::string who = "pool " + std::to_string(pool) + " ";
        const uint32_t row = real_->find_pool(naive_.model().pools[pool].name);
        const bool gone = naive_.model().pools[pool].is_gone;
        if (gone != (row == shm::kNoRow)) {
            return disagree(step, who + (gone ? "is still there" : "is not there"));
        }
        if (gone) continue;
        if (row != pool) return disagree(step, who + "has row " + std::to_string(row));
        PoolCounters counters = counters_of(real_->pool(row), naive_.model().now);
        counters.wanted = real_->wanted(pool);
        const PoolCounters expected = naive_.counters(pool);
        if (hits_are_lost_) counters.totals.hits = expected.totals.hits;
        const std::string differs = difference(counters, expected);
        if (!differs.empty()) return disagree(step, who + differs);
        const std::string offered = offers_difference(pool, step);
        if (!offered.empty()) return disagree(step, who + offered);
        const std::string stamped = stamp_difference(pool);
        if (!stamped.empty()) return disagree(step, who + stamped);
        if (parkable_of(*real_, pool) != naive_.parkable_of(pool)) {
            return disagree(step, who + "has other leases that may be parked, or in another order");
        }
    }
    // A turn that changed nothing is not stored: a core that begins after it stands where the last
    // one that did has ended, until its first turn.
    if (real_->now() == naive_.model().now) {
        const std::string differs = account_difference(*real_, *real_player_, naive_);
        if (!differs.empty()) return disagree(step, differs);
    }
    if (has_elastic_) {
        std::string differs = elastic_difference(*real_, *real_player_, naive_);
        if (differs.empty()) differs = dispatch_difference(*real_, bytes_.span(), naive_);
        if (!differs.empty()) return disagree(step, differs);
    }
    // Earlier is a turn for nothing, later a wake-up lost. When balances are worth a turn, and when
    // provisioners, is not for the naive core to know; and a core that begins has a turn before.
    const core::TimeNs due = has_elastic_ ? real_->next_turn() : real_->next_due();
    const core::TimeNs expected_due = naive_.next_due();
    if (has_accounts_ || has_elastic_ ? due > expected_due : due != expected_due) {
        return disagree(
            step,
            "next due: core " + std::to_string(due) + ", naive " + std::to_string(expected_due));
    }
    const std::string apart = gang_difference(*real_, naive_);
    if (!apart.empty()) return disagree(step, apart);
    const std::string wrong = wrong_bytes(*real_, journal_);
    if (!wrong.empty()) return disagree(step, wrong + " is not what was brought");
    const std::vector<std::string> violations = real_->check_all();
    if (!violations.empty()) return disagree(step, "check_all: " + violations.front());
    return true;
}

bool are_same(const std::vector<core::Offer>& some, const std::vector<core::Offer>& others) {
    const auto same = [](const core::Offer& one, const core::Offer& other) {
        return one.slot == other.slot && one.room == other.room;
    };
    return std::equal(some.begin(), some.end(), others.begin(), others.end(), same);
}

// What is offered, also to who wants something that depends on the step.
std::string Lockstep::offers_difference(uint32_t pool, size_t step) const {
    const auto& resources = naive_.model().pools[pool].vector;
    if (resources.empty()) return {};
    std::vector<core::Amount> least;
    std::vector<core::Amount> most;
    for (size_t at = 0; at < resources.size(); ++at) {
        const uint64_t low = (step + at) % (resources[at].second + 1);
        const uint64_t high = low + step % 3;
        least.push_back({resources[at].first, static_cast<int64_t>(low)});
        most.push_back({resources[at].first, static_cast<int64_t>(high)});
    }
    const bool wants =
        step % 4 != 0 &&
        std::any_of(least.begin(), least.end(), [](const auto& one) { return one.amount != 0; });
    if (!wants) least.clear();
    if (!wants || step % 5 == 0) most.clear();
    std::vector<core::Offer> found;
    uint64_t unused = 0;
    const shm::Reason reason =
        core::Look::offers(*real_, {pool, least, most, step, shm::kNoRow}, &found, &unused);
    if (reason != shm::Reason::kOk) return "refuses to say what it offers";
    const std::vector<core::Offer> expected = naive_.offers(pool, least, most, step);
    return are_same(found, expected) ? "" : "offers something else, or in another order";
}

// Who waits for other offers is answered when the stamp is another one.
std::string Lockstep::stamp_difference(uint32_t pool) {
    if (naive_.model().pools[pool].vector.empty()) return {};
    const uint64_t stamp = core::Look::offers_stamp(*real_, pool);
    std::vector<core::Offer> offers;
    uint64_t unused = 0;
    (void)core::Look::offers(*real_, {pool, {}, {}, 0, shm::kNoRow}, &offers, &unused);
    const auto known = offered_.find(pool);
    const bool lies = known != offered_.end() && known->second.first == stamp &&
                      !are_same(known->second.second, offers);
    offered_[pool] = {stamp, std::move(offers)};
    return lies ? "offers something else under the same stamp" : "";
}

bool Lockstep::disagree(size_t step, const std::string& what) {
    Disagreement found;
    found.step = step;
    found.what = what;
    for (const DecisionLine& line : real_player_->lines())
        found.real.push_back(to_string(line));
    for (const DecisionLine& line : naive_player_.lines())
        found.naive.push_back(to_string(line));
    found_ = std::move(found);
    return false;
}

}  // namespace

void Coverage::count(const DecisionLine& line) {
    std::string key = name_of(line.kind);
    if (line.may_park) key += " may-park";
    if (line.part != 0) key += " further";
    const bool is_wide = line.kind == core::DecisionKind::kCreate && line.value != 0;
    if (is_wide) key += " wide";
    if (line.kind == core::DecisionKind::kPlaceholder) {
        constexpr const char* kNews[] = {" bound", " replaced", " released", " lost"};
        key += kNews[line.to_class];
    }
    if (line.kind == core::DecisionKind::kEnd) key += std::string(" ") + name_of(line.outcome);
    if (line.kind == core::DecisionKind::kEnd || line.kind == core::DecisionKind::kResult ||
        line.kind == core::DecisionKind::kLeaseEnd ||
        line.kind == core::DecisionKind::kApplication) {
        key += std::string(" ") + name_of(line.reason);
    }
    seen[key] += 1;
}

std::optional<Disagreement> play_both(const Journal& journal, Coverage* coverage) {
    coverage->journals += 1;
    Lockstep lockstep(journal, coverage);
    auto found = lockstep.play();
    for (size_t statement = 0; statement < coverage->tested.size(); ++statement)
        coverage->tested[statement] += lockstep.tested()[statement];
    return found;
}

}  // namespace dibs::naive
