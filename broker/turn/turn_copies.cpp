// broker/turn/turn_copies.cpp -- copies STATE and ends recordings for the control thread.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/turn.hpp"

namespace dibs {

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
