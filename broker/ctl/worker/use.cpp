// broker/ctl/worker/use.cpp -- runs the slot's side of hand.hpp, from assignment to assignment.
// SPDX-License-Identifier: Apache-2.0
#include <climits>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/worker/assignment_text.hpp"
#include "broker/ctl/worker/hand.hpp"

namespace dibs::ctl::worker {

namespace {

constexpr int64_t kUnreadable = 1;  // told to a claim whose payload cannot be read

// A limit of 0 means no limit.
int64_t after_limit(int64_t from_ns, int64_t limit_ns) {
    return limit_ns == 0 ? INT64_MAX : after(from_ns, limit_ns);
}

}  // namespace

void Hand::take_assignments(int64_t now_ns) {
    dibs_assignment next;
    while (post_) {
        const int code = post_->next(&next);
        if (code == DIBS_ETIMEDOUT) return;
        if (code == DIBS_EPAYLOAD) {
            post_->refuse({next.slot, next.round}, kUnreadable, false);
        } else if (code < 0) {
            lose_post(now_ns);
        } else if (next.kind == DIBS_ASSIGN) {
            take_use(next, now_ns);
        } else if (next.kind == DIBS_REVOKING) {
            say("a better claim takes its slot; its holder has " + shown_time(next.left_ns));
        } else {
            take_revocation({next.slot, next.round}, now_ns);
        }
    }
}

void Hand::take_use(const dibs_assignment& assignment, int64_t now_ns) {
    asked_round_ = {assignment.slot, assignment.round};
    const bool is_beside = state_ == State::kBusy && options_.parts > 1;
    if (state_ != State::kIdle && !is_beside) {
        post_->refuse(asked_round_, 0, true);
        // Another round while a use goes on: its holder has given the slot back, and where a
        // release is enough for a slot to be idle a worker learns of it in no other way.
        if (state_ == State::kBusy && asked_round_ != round_) begin_ending(now_ns);
        return;
    }
    // Likewise where all parts are in use: one of the uses has ended. Only their count matters.
    if (is_beside && present_.size() == options_.parts) present_.erase(present_.begin());
    state_ = State::kBusy;
    due_ns_ = after_limit(now_ns, options_.use_max_ns);
    slot_ = assignment.number;
    round_ = asked_round_;
    present_.push_back(round_);
    claim_ = assignment.claim;
    stray_bytes_ = 0;
    ++uses_;
    begin_use();
    confirmed_ = options_.lines != Lines::kHold;
    if (options_.lines != Lines::kNone) {
        unsent_ += assign_line(options_.pool.name, assignment);
        lines_due_ = 1;
    }
    if (confirmed_ && !post_->confirm(round_, {})) lose_post(now_ns);
}

void Hand::take_answer(const std::string& line, int64_t now_ns) {
    if (state_ == State::kEnding) {
        if (lines_due_ == 0) finish_use(now_ns);
        return;
    }
    // An empty answer in its place would pass for the process's own; its holder sees "worker lost".
    // Where answer_max is 0 holders get no answers, as the start message says.
    const size_t most = post_->answer_max();
    if (most != 0 && line.size() > most) {
        return fail("answered with " + std::to_string(line.size()) +
                        " bytes, and its pool takes at most " + std::to_string(most) +
                        " (answer_max)",
                    now_ns);
    }
    const std::string answer = most != 0 ? line : std::string();
    if (options_.lines == Lines::kHold) {
        confirmed_ = true;
        if (!post_->confirm(round_, answer)) lose_post(now_ns);
        return;
    }
    failures_ = 0;
    const bool more = !must_retire(now_ns) && options_.between.empty() && leftovers().empty();
    if (!post_->done(round_, answer, more)) return lose_post(now_ns);
    if (more) return be_idle(now_ns);
    finish_use(now_ns);
}

void Hand::take_revocation(Round round, int64_t now_ns) {
    const bool is_last =
        state_ == State::kBusy && std::erase(present_, round) != 0 && present_.empty();
    if (is_last) {
        asked_round_ = round;
        return begin_ending(now_ns);
    }
    const bool is_beside = state_ == State::kBusy && options_.parts > 1;
    if ((is_beside || state_ == State::kIdle) && !post_->ready(round)) lose_post(now_ns);
}

// The holder has given the slot back, or is gone: the process has a grace for what it still does.
void Hand::begin_ending(int64_t now_ns) {
    if (options_.lines == Lines::kNone) return finish_use(now_ns);
    state_ = State::kEnding;
    due_ns_ = after(now_ns, options_.grace_ns);
    if (options_.lines == Lines::kHold) {
        unsent_ += release_line(options_.pool.name, slot_, round_.number, claim_);
        ++lines_due_;
    }
}

void Hand::finish_use(int64_t now_ns) {
    failures_ = 0;
    if (must_retire(now_ns)) return stop(true, now_ns);
    if (!sweep(now_ns)) return;  // and comes here again
    if (!options_.between.empty() && !cleaned_) return clean(now_ns);
    if (!post_) return post(now_ns);
    if (!post_->ready(asked_round_)) return lose_post(now_ns);
    be_idle(now_ns);
}

void Hand::be_idle(int64_t now_ns) {
    state_ = State::kIdle;
    lines_due_ = 0;
    present_.clear();
    due_ns_ = after_limit(born_ns_, options_.age_max_ns);
    if (draining_) stop(true, now_ns);
}

bool Hand::must_retire(int64_t now_ns) const {
    return draining_ || (options_.uses_max > 0 && uses_ >= options_.uses_max) ||
           (options_.age_max_ns > 0 && now_ns - born_ns_ >= options_.age_max_ns);
}

void Hand::lose_post(int64_t now_ns) {
    const std::string why = "its session at the broker has ended (" + post_->end() + ")";
    post_.reset();
    if (state_ == State::kIdle && options_.type.empty()) return retry_post(now_ns, why);
    post_trouble_ = why;
    say(why);
    if (state_ == State::kIdle) be_warm();
    if (state_ == State::kBusy) begin_ending(now_ns);
}

void Hand::clean(int64_t now_ns) {
    state_ = State::kCleaning;
    due_ns_ = after(now_ns, options_.grace_ns);
    try {
        ProcessStart start = start_with();
        start.program = "/bin/sh";
        start.command = {"sh", "-c", options_.between};
        start.variables.push_back("DIBS_WORKER_PID=" + std::to_string(process_->pid()));
        start.quiet = true;
        cleaner_ = std::make_unique<Process>(start);
    } catch (const Failure& failure) {
        fail(std::string("cannot be cleaned: ") + failure.what(), now_ns);
    }
}

void Hand::look_at_cleaner(int64_t now_ns) {
    const std::optional<int> status = cleaner_->ended();
    if (!status) return;
    cleaner_.reset();
    if (*status != 0) {
        return fail("is not clean: the command between uses " + shown_end(*status), now_ns);
    }
    cleaned_ = true;
    finish_use(now_ns);
}

}  // namespace dibs::ctl::worker
