// broker/ctl/worker/crew.cpp -- deals orders out to the processes of one command.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/worker/crew.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>

#include "broker/ctl/clock.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/text/line_wrap.hpp"

namespace dibs::ctl::worker {

namespace {

// How long a warm process waits for an order once there is a broker that could send one.
constexpr int64_t kWarmFor = 10 * DIBS_SECOND;
// How often a process that announces its slot itself is looked after: whether the slot is there.
constexpr int64_t kCheckEvery = DIBS_SECOND;

}  // namespace

Crew::Crew(const Options& options, Ground& ground) : options_(options), ground_(ground) {
    ground.prepare(options);
    add_hands();
    if (options.type.empty()) return;
    orders_ = std::make_unique<Orders>(options_);
    if (options_.session) check_due_ns_ = 0;
    if (!options.service) {
        talk("dibs worker: provisioner of type \"" + options.type + "\" of pool \"" +
             options.pool.name + "\": as many processes as are needed, " +
             std::to_string(hands_.size()) + " at most");
    }
    told_ready_ = true;
}

void Crew::add_hands() {
    while (hands_.size() < options_.pool.count) {
        const auto index = static_cast<uint32_t>(hands_.size());
        hands_.push_back(std::make_unique<Hand>(options_, ground_, index));
    }
    spans_.resize(hands_.size());
}

void Crew::take_options(const Options& options) {
    ground_.prepare(options);
    options_ = options;
    check_due_ns_ = options.session ? 0 : INT64_MAX;
    add_hands();
}

void Crew::watch(std::vector<pollfd>* watched) {
    if (orders_) watched->push_back({orders_->fd(), POLLIN, 0});
    for (size_t i = 0; i < hands_.size(); ++i) {
        spans_[i].begin = watched->size();
        hands_[i]->watch(watched);
        spans_[i].end = watched->size();
    }
}

int64_t Crew::due_ns() const {
    int64_t due_ns = drain_due_ns_;
    if (orders_) due_ns = orders_->arm() ? std::min(due_ns, orders_->due_ns()) : 0;
    for (const auto& hand : hands_) {
        due_ns = std::min(due_ns, hand->due_ns());
        if (hand->own_order()) due_ns = std::min(due_ns, check_due_ns_);
    }
    return due_ns;
}

void Crew::look(const std::vector<pollfd>* watched, int64_t now_ns) {
    for (size_t i = 0; i < hands_.size(); ++i) {
        bool due = now_ns >= hands_[i]->due_ns();
        for (size_t k = spans_[i].begin; watched != nullptr && k < spans_[i].end; ++k)
            due = due || (*watched)[k].revents != 0;
        if (due) hands_[i]->look(now_ns);
    }
    if (orders_) take_orders(now_ns);
    tell_when_ready();
    if (now_ns >= drain_due_ns_) stop_now(now_ns);
}

// Each is answered at once: a process that cannot be started has failed, and one that is not
// announced fails later. Where all are there and one is ending, the order waits for that.
void Crew::take_orders(int64_t now_ns) {
    dibs_assignment order = {};
    while (orders_->next(&order, now_ns)) {
        if (order.kind == DIBS_STOP) {
            for (const auto& hand : hands_)
                (void)hand->stop_order(order.slot, now_ns);
        } else {
            waiting_.push_back(order_of(order));
        }
    }
    while (!waiting_.empty() && take_order(now_ns))
        waiting_.pop_front();
    keep_warm(now_ns);
    check_own_orders(now_ns);
    for (const auto& hand : hands_) {
        if (const auto failed = hand->failed_order()) orders_->answer(*failed, DIBS_NOT_STARTED);
    }
}

// The one that has waited longest. False: it waits on.
bool Crew::take_order(int64_t now_ns) {
    const Order& waiting = waiting_.front();
    const uint64_t order = waiting.slot;
    // There may have been more before the options changed.
    const size_t most = std::min<size_t>(options_.pool.count, hands_.size());
    const auto end = hands_.begin() + static_cast<ptrdiff_t>(most);
    auto hand = std::find_if(hands_.begin(), end, [](const auto& it) { return it->is_warm(); });
    if (hand == end && is_failing(now_ns)) {
        orders_->answer(order, DIBS_NOT_STARTED);
        return true;
    }
    if (hand == end)
        hand = std::find_if(hands_.begin(), end, [](const auto& it) { return it->is_free(); });
    if (hand != end) {
        (*hand)->take_order(waiting, now_ns);
        if (!(*hand)->is_free()) orders_->answer(order, DIBS_CREATED);
    } else {
        const bool waits =
            std::any_of(hands_.begin(), end, [](const auto& it) { return it->is_ending(); });
        if (waits) return false;
        // A quota would be the pool's, and the other types would not be asked.
        orders_->answer(order, options_.others_serve ? DIBS_AT_CAPACITY : DIBS_AT_QUOTA);
    }
    return true;
}

// Without a broker for as long as there is none.
void Crew::keep_warm(int64_t now_ns) {
    if (!orders_->is_present()) return;
    for (const auto& hand : hands_)
        hand->limit_warmth(after(now_ns, kWarmFor));
}

// A process whose order has come to nothing, or whose slot is gone, is nobody's.
void Crew::check_own_orders(int64_t now_ns) {
    if (now_ns < check_due_ns_) return;
    check_due_ns_ = after(now_ns, kCheckEvery);
    for (const auto& hand : hands_) {
        const auto order = hand->own_order();
        if (!order) continue;
        const auto is_over = orders_->is_over(*order);
        if (!is_over) return;  // nor would it answer of the others
        if (*is_over) (void)hand->stop_order(*order, now_ns);
    }
}

// Orders whose processes will not come: as failed, so that none is made anew for this one.
void Crew::give_up_orders() {
    for (const Order& waiting : waiting_)
        orders_->answer(waiting.slot, DIBS_NOT_STARTED);
    waiting_.clear();
    for (const auto& hand : hands_) {
        if (const auto order = hand->unannounced()) orders_->answer(*order, DIBS_NOT_STARTED);
    }
    orders_->leave();
}

// A process has ended that should not have: another one would, too.
bool Crew::is_failing(int64_t now_ns) const {
    return std::any_of(hands_.begin(), hands_.end(), [&](const auto& hand) {
        return hand->rests_until_ns() > now_ns;
    });
}

void Crew::tell_when_ready() {
    if (told_ready_) return;
    for (const auto& hand : hands_) {
        const Hand::State state = hand->state();
        if (state != Hand::State::kIdle && state != Hand::State::kBusy) return;
    }
    told_ready_ = true;
    talk("dibs worker: " + counted(hands_.size(), "slot") + " of pool \"" + options_.pool.name +
         "\" ready");
}

void Crew::drain(int64_t now_ns) {
    if (draining()) return;
    if (orders_) give_up_orders();
    drain_due_ns_ = after(now_ns, options_.drain_ns);
    for (const auto& hand : hands_)
        hand->drain(now_ns);
}

void Crew::stop_now(int64_t now_ns) {
    drain_due_ns_ = INT64_MAX;
    stopped_ = true;
    for (const auto& hand : hands_)
        hand->stop_now(now_ns);
}

bool Crew::gone() const {
    return std::all_of(hands_.begin(), hands_.end(), [](const auto& hand) {
        return hand->state() == Hand::State::kGone;
    });
}

bool Crew::gave_up() const {
    if (options_.tries_max == 0) return false;
    const auto has_failed = [&](const auto& hand) {
        return hand->failures() >= options_.tries_max;
    };
    // Orders go to the first that is free.
    const bool all = options_.type.empty() ? std::all_of(hands_.begin(), hands_.end(), has_failed)
                                           : std::any_of(hands_.begin(), hands_.end(), has_failed);
    if (all) talk("dibs worker: every process fails: giving up");
    return all;
}

bool Crew::has_process(pid_t pid) const {
    return std::any_of(
        hands_.begin(), hands_.end(), [&](const auto& hand) { return hand->has_process(pid); });
}

}  // namespace dibs::ctl::worker
