// broker/admin/events.cpp -- turns decisions into events, one batch a turn.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/events.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "broker/core/decision_fields.hpp"
#include "broker/core/look.hpp"

namespace dibs {

namespace {

using core::Decision;
using core::DecisionKind;
using core::Form;

static_assert(static_cast<uint8_t>(DecisionKind::kPulled) ==
              static_cast<uint8_t>(shm::EventKind::kPulled));

// Kinds of decisions and of events are in the same order, with those of sessions in between.
shm::EventKind kind_of(DecisionKind kind) {
    if (kind <= DecisionKind::kPulled) return static_cast<shm::EventKind>(kind);
    return static_cast<shm::EventKind>(static_cast<uint8_t>(shm::EventKind::kCreate) +
                                       static_cast<uint8_t>(kind) -
                                       static_cast<uint8_t>(DecisionKind::kCreate));
}
static_assert(static_cast<uint8_t>(DecisionKind::kPlaceholder) -
                  static_cast<uint8_t>(DecisionKind::kCreate) ==
              static_cast<uint8_t>(shm::EventKind::kPlaceholder) -
                  static_cast<uint8_t>(shm::EventKind::kCreate));

void set_name(char (&to)[shm::kNameMax + 1], std::string_view name) {
    name.copy(to, shm::kNameMax);
}

}  // namespace

Events::~Events() {
    while (next() != nullptr) {
    }
}

shm::Event& Events::add(const core::Core& core, shm::EventKind kind) {
    if (batch_ == nullptr) batch_ = std::make_unique<EventBatch>();
    shm::Event& event = batch_->events.emplace_back();
    event.number = ++number_;
    event.time_ns = core.now();
    event.kind = kind;
    event.uid = event.slot = event.holder_uid = event.session = shm::kNoRow;
    return event;
}

void Events::name_session(const core::Core& core, uint32_t row, shm::Event* event) const {
    const shm::SessionRow& session = core.session(row);
    event->session = row;
    event->session_generation = session.head.generation;
    event->uid = session.uid;
    event->pid = session.pid;
    if (session.account == shm::kNoRow) {
        return set_name(event->account, "uid:" + std::to_string(session.uid));
    }
    const shm::AccountRow& account = core.account(session.account);
    set_name(event->account, {account.name, account.name_size});
}

// Its user is told, whether a manager is there or not.
void Events::name_application(const core::Core& core, const Decision& decision, shm::Event* event) {
    if (decision.kind == DecisionKind::kPlaceholder) event->slot = decision.slot_number;
    const uint32_t row = core::Look::find_application(core, decision.id);
    if (row == shm::kNoRow) return;
    event->uid = core::Look::application(core, row).uid;
    if (event->account[0] == '\0') set_name(event->account, "uid:" + std::to_string(event->uid));
}

void Events::tell(const core::Core& core, std::span<AdminJob* const> jobs) {
    for (const Decision& decision : core.decisions()) {
        const shm::EventKind kind = kind_of(decision.kind);
        const bool is_order = kind == shm::EventKind::kCreate || kind == shm::EventKind::kStop;
        shm::Event& event = add(core, kind);
        event.outcome = decision.outcome;
        event.reason = decision.reason;
        event.units = decision.units;
        event.claim = decision.claim;
        event.id = decision.id;
        event.fence = decision.fence;
        event.value = decision.value;
        event.holder_uid = decision.holder_uid;
        event.holder_pid = decision.holder_pid;
        event.holder_claim = decision.holder_claim;
        event.holder_age_ns = decision.holder_age_ns;
        event.from_class = decision.from_class;
        event.to_class = decision.to_class;
        if (decision.provision) event.flags |= shm::EventFlag::kProvision;
        if (decision.is_void) event.flags |= shm::EventFlag::kVoid;
        if (decision.session != shm::kNoRow) name_session(core, decision.session, &event);
        if (decision.kind >= DecisionKind::kApplication) name_application(core, decision, &event);
        const bool refunds = decision.kind == DecisionKind::kRefund;
        if (refunds || lists(decision.kind, Form::kSlot)) event.slot = decision.slot_number;
        if (is_order) {
            const shm::TypeRow& type = core::Look::type(core, decision.type);
            set_name(event.type, {type.name, type.name_size});
        }
        if (decision.pool != shm::kNoRow && decision.pool < core.pools()) {
            set_name(event.pool,
                     {core.pool(decision.pool).name, core.pool(decision.pool).name_size});
        }
        if (decision.account != shm::kNoRow) {
            const shm::AccountRow& account = core.account(decision.account);
            set_name(event.account, {account.name, account.name_size});
        }
        event.round = decision.round;
        event.hit_permille = decision.hit_permille;
        if (lists(decision.kind, Form::kCost) && !decision.is_void) {
            const auto cost = core.decided_amounts(decision);
            std::copy(cost.begin(), cost.end(), event.cost);
        }
        decision.entry.copy(event.entry, shm::kNameMax);
        if (lists(decision.kind, Form::kSlots)) add_slots(core, decision);
    }
    name_releasers(jobs);
}

// The core does not know which client steers it: a lease that ends in the turn in which it is
// released from outside is taken to end by that release.
void Events::name_releasers(std::span<AdminJob* const> jobs) {
    for (const AdminJob* job : jobs) {
        const bool released =
            job->request.ask == admin::Ask::release && job->answer.code == admin::Code::ok;
        if (!released || batch_ == nullptr) continue;
        for (shm::Event& event : batch_->events) {
            const bool ended = event.kind == shm::EventKind::kLeaseEnd;
            if (ended && event.id == job->request.id) event.holder_uid = job->uid;
        }
    }
}

// Behind the last event: its slots, and events with the rest of them.
void Events::add_slots(const core::Core& core, const Decision& decision) {
    shm::Event first = batch_->events.back();
    for (const core::DecidedSlot& slot : core.decided_slots(decision)) {
        shm::Event* event = &batch_->events.back();
        if (event->slots_count == shm::kEventSlots) {
            event = &add(core, shm::EventKind::kMoreSlots);
            event->uid = first.uid;
            std::memcpy(event->pool, first.pool, sizeof(event->pool));
            std::memcpy(event->account, first.account, sizeof(event->account));
        }
        event->slots[event->slots_count++] = slot.number;
    }
}

// The row may be free again by now, and its generation the next one's.
void Events::tell_session(const core::Core& core,
                          uint32_t session,
                          uint32_t generation,
                          shm::EventKind kind) {
    shm::Event& event = add(core, kind);
    name_session(core, session, &event);
    event.session_generation = generation;
}

void Events::send() {
    if (batch_ == nullptr) return;
    const auto count = static_cast<uint32_t>(batch_->events.size());
    batch_->lost = lost_;
    if (queued_.load(std::memory_order_relaxed) + count > kEventsMax ||
        !queue_.push(batch_.get())) {
        lost_ += count;
        batch_.reset();
        return;
    }
    (void)batch_.release();
    lost_ = 0;
    queued_.fetch_add(count, std::memory_order_relaxed);
    attention_.call();
}

std::unique_ptr<EventBatch> Events::next() {
    EventBatch* batch = nullptr;
    if (!queue_.pop(batch)) return nullptr;
    queued_.fetch_sub(static_cast<uint32_t>(batch->events.size()), std::memory_order_relaxed);
    return std::unique_ptr<EventBatch>(batch);
}

}  // namespace dibs
