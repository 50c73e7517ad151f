// broker/turn/turn_answers.cpp -- answers administrators behind the commit of the turn that served
// them; copies STATE and ends recordings for the control thread.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/turn.hpp"

namespace dibs {

// The request is done: no death of the broker takes it back.
void Turn::answer_administered() {
    for (AdminJob* job : administered_) {
        Report report;
        report.kind = Report::Kind::kAdmin;
        report.job = job;
        exchange_.report(report);
    }
    administered_.clear();
}

// Those for whom this turn has changed what is offered, or who have waited long enough.
void Turn::answer_waiting() {
    std::erase_if(waiting_, [&](std::unique_ptr<AdminJob>& job) {
        if (!desk_.look_again(*job)) return false;
        Report report;
        report.kind = Report::Kind::kAdmin;
        report.job = job.release();
        exchange_.report(report);
        return true;
    });
}

// A cut turn may have answered a part of it.
void Turn::answer_pulls() {
    for (AdminJob* job : pulling_) {
        desk_.take_pulled(*job);
        if (core_.cut()) continue;
        Report report;
        report.kind = Report::Kind::kAdmin;
        report.job = job;
        exchange_.report(report);
    }
    if (!core_.cut()) pulling_.clear();
}

// While a copy is being made, turns follow one another without sleep.
void Turn::copy_on() {
    copying_->copy.follow();
    if (!copying_->copy.step(Copying::kPart) || core_.cut()) return;
    if (copying_->records) {
        // The order of work that goes on over turns is not in the rows, and a replay must not need
        // it.
        if (core_.work_left()) return;
        exchange_.recording().begin(core_);
    }
    Report report;
    report.kind = Report::Kind::kCopied;
    report.copying = copying_.release();
    exchange_.report(report);
}

void Turn::unrecord() {
    if (copying_ == nullptr || !copying_->records) return exchange_.recording().stop();
    copying_->records = false;
    exchange_.recording().never_begin();
}

}  // namespace dibs
