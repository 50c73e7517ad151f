// broker/ctl/top/looker.cpp -- looks at the broker, and connects again when it was lost.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/looker.hpp"

#include <utility>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::top {

namespace {

// Shorter than elsewhere: meanwhile no key is heard.
constexpr int64_t kAnswerTimeout = DIBS_SECOND;

}  // namespace

Looker::Looker(std::string socket) : socket_(std::move(socket)), client_() {
    client_.emplace(socket_, kAnswerTimeout);
}

void Looker::lose(const std::string& why) {
    if (why_.empty()) lost_ns_ = monotonic_ns();
    why_ = why;
    client_.reset();
}

void Looker::look() {
    try {
        if (!client_) client_.emplace(socket_, kAnswerTimeout);
        facts_ = top::look(*client_, has_looked_ && why_.empty() ? &facts_ : nullptr);
        has_looked_ = true;
        why_.clear();
    } catch (const Failure& failure) {
        if (failure.exit_code() != kExitUnreachable || !has_looked_) throw;
        lose(failure.what());
    }
}

std::string Looker::absence() const {
    if (why_.empty()) return "";
    const auto gone_ns = static_cast<uint64_t>(monotonic_ns() - lost_ns_);
    return "Waiting for the broker, for " + duration_text(gone_ns / 1'000'000'000 * 1'000'000'000) +
           " so far: " + why_;
}

std::string Looker::act(const Action& action) {
    if (action.kind == Action::Kind::kNone) return action.question;
    if (!client_) return "the broker is not there: nothing was done";
    try {
        return top::act(*client_, action);
    } catch (const Failure& failure) {
        lose(failure.what());
        return failure.what();
    }
}

}  // namespace dibs::ctl::top
