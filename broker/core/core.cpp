// broker/core/core.cpp -- implements the core's public interface: attach, turn, queries.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/core.hpp"

#include "broker/core/parts.hpp"
#include "broker/core/tap.hpp"

namespace dibs::core {

namespace {

std::span<std::byte> recovered(std::span<std::byte> bytes) {
    State state{bytes};
    Edit::recover(state);
    return bytes;
}

template <class Command>
[[gnu::noinline, gnu::cold]] void tell(Tap& tap, const Command& command) {
    tap.hear(&command);
}

[[gnu::noinline, gnu::cold]] void tell(Tap& tap, const Claim& claim, bool pledged) {
    const PledgedClaim told{&claim};
    tap.hear(pledged ? CommandRef(&told) : CommandRef(&claim));
}

// Without a tap this costs a comparison with null.
template <class... Command>
void say(Tap* tap, const Command&... command) {
    if (tap != nullptr) [[unlikely]]
        tell(*tap, command...);
}

}  // namespace

Store::Store(std::span<std::byte> bytes, uint64_t seed)
    : state(recovered(bytes)), edit(state), arena(state, edit), hash_seed(seed) {}

Core::Parts::Parts(std::span<std::byte> bytes, uint64_t seed)
    : Store(bytes, seed),
      FreeRows(Store::state),
      Turn(Store::state),
      Sessions(Store::state),
      Pools(Store::state),
      Slots(Store::state),
      Workers(Store::state),
      Claims(Store::state),
      EarlyGrants(Store::state),
      Parking(Store::state),
      Leases(Store::state),
      Ledger(Store::state),
      Preemption(Store::state),
      Crowds(Store::state),
      Matcher(Store::state),
      SeveralPools(Store::state),
      Vectors(Store::state),
      Provisioning(Store::state),
      Dispatch(Store::state),
      Gangs(Store::state),
      Explainer(Store::state),
      Reports(Store::state) {
    fresh.reserve(Turn::kFreshMax);
    impatient.reserve(state.log_images_max);
    dying.reserve(state.sessions.size());
    growing.reserve(state.pools.size());
    going.reserve(state.pools.size());
    shrinking.reserve(state.pools.size());
    // Between two looks at full() a command decides at most about 600 things.
    decisions.reserve(size_t{state.log_stores_max} * 2);
    told_names.reserve(decisions.capacity() * shm::kNameMax);
    decided_slots.reserve(size_t{state.log_images_max} * 2);
    revivals.reserve(size_t{state.log_stores_max});
    // What a session has, or the impatient claims of a turn.
    scratch.reserve(std::max({state.slots.size(), shm::kTagsMax, state.log_images_max}));
    touched_list.reserve(state.pools.size());
    lapsing_list.reserve(state.leases.size());
}

Core::Core(std::span<std::byte> state, uint64_t hash_seed)
    : Core(std::make_unique<Parts>(state, hash_seed)) {
    parts_->rebuild();
    parts_->keep_owed_pledge();
}
Core::Core(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Core::~Core() = default;

void Core::begin_turn(TimeNs now) {
    Parts& parts = *parts_;
    parts.decisions.clear();
    parts.grants = 0;
    parts.revivals.clear();
    parts.decided_slots.clear();
    parts.decided_amounts.clear();
    parts.told_names.clear();
    parts.arena.begin_turn();
    // A cut turn goes on at its own time, with its own news to tell at its end.
    if (!parts.cut) {
        if (!parts.just_attached && !parts.passes_again) parts.touched.clear();
        parts.just_attached = false;
        parts.fresh.clear();
        if (!parts.passes_again) parts.now_ns = std::max(parts.now_ns, now);
        parts.first_number = parts.state.counters->arrival_next;
    }
    parts.edit.begin();
    if (parts.cut) return;
    if (parts.book) parts.open_account_turn();
    parts.sweep_kept();
}

void Core::commit() {
    Parts& parts = *parts_;
    if (parts.edit.open()) put(parts.edit.counters(1).time_ns, parts.now_ns);
    parts.edit.commit();
    if (tap_ != nullptr) [[unlikely]]
        tap_->hear_of_commit();
}

void Core::clear() {
    parts_->edit.clear();
}

bool Core::work_left() const {
    return parts_->cut || !parts_->dying.empty() || !parts_->growing.empty() ||
           !parts_->going.empty() || !parts_->shrinking.empty() || !parts_->dirty.empty() ||
           parts_->has_news();
}

bool Core::cut() const {
    return parts_->cut || parts_->passes_again;
}
bool Core::passes_again() const {
    return parts_->passes_again;
}

TimeNs Core::next_turn() const {
    return std::min(next_due(), next_crossing());
}

TimeNs Core::next_due() const {
    TimeNs due = parts_->timers.empty() ? kNever : parts_->timers.first().due_ns;
    due = std::min({due, parts_->Provisioning::next_due(), parts_->Gangs::next_due()});
    if (!parts_->kept_slots.empty()) due = std::min(due, parts_->kept_slots.first().due_ns);
    return parts_->book ? std::min(due, parts_->next_forgotten()) : due;
}

TimeNs Core::next_crossing() const {
    return parts_->book ? parts_->next_crossing() : kNever;
}

bool Core::turn_full() const {
    return parts_->full();
}
TimeNs Core::now() const {
    return parts_->now_ns;
}

void Core::set_tap(Tap* tap) {
    tap_ = tap;
}

uint32_t Core::set_pool(const PoolConfig& config, std::string* why) {
    parts_->account_news();
    const uint32_t row = parts_->set_pool(config, why);
    if (row != kNoRow) say(tap_, config);
    return row;
}
shm::Reason Core::delete_pool(PoolId row, bool when_unused) {
    const shm::Reason reason = when_unused ? parts_->retire_pool(row) : parts_->delete_pool(row);
    if (reason == shm::Reason::kOk) say(tap_, DeletePool{row, when_unused});
    return reason;
}
uint32_t Core::open_session(const SessionOpen& open, std::string* why) {
    const uint32_t row = parts_->open_session(open, why);
    if (row != kNoRow) say(tap_, open);
    return row;
}
void Core::session_died(SessionId session, bool tree_lives) {
    tree_lives ? say(tap_, HolderDied{session}) : say(tap_, SessionDeath{session});
    tree_lives ? parts_->holder_died(session) : parts_->session_died(session);
}
void Core::apply(const Claim& claim) {
    say(tap_, claim, parts_->pledged);
    parts_->apply(claim);
}
void Core::apply(const Cancel& cancel) {
    say(tap_, cancel);
    parts_->apply(cancel);
}
void Core::apply(const Release& release) {
    say(tap_, release);
    parts_->apply(release);
}
void Core::apply(const Keepalive& keepalive) {
    say(tap_, keepalive);
    parts_->apply(keepalive);
}
void Core::apply(const Adopt& adopt) {
    say(tap_, adopt);
    parts_->apply(adopt);
}
void Core::apply(const KillFailed& failed) {
    say(tap_, failed);
    parts_->apply(failed);
}
void Core::apply(const Harvest& harvest) {
    say(tap_, harvest);
    parts_->apply(harvest);
}
void Core::apply(const Touch& touch) {
    say(tap_, touch);
    parts_->apply(touch);
}
void Core::apply(const Announce& announce) {
    say(tap_, announce);
    parts_->apply(announce);
}
void Core::apply(const WorkerWord& word) {
    say(tap_, word);
    parts_->apply(word);
}
shm::Reason Core::apply(const Drain& drain, TimeNs* left_ns) {
    say(tap_, drain);
    parts_->account_news();
    TimeNs unused = 0;
    return parts_->drain(drain, left_ns != nullptr ? left_ns : &unused);
}
shm::Reason Core::apply(const Steer& steer, TimeNs* granted_ns) {
    say(tap_, steer);
    parts_->account_news();
    return parts_->apply(steer, granted_ns);
}

bool Core::set_account(const AccountConfig& config, std::string* why) {
    const bool set = parts_->set_account(config, why);
    if (set) say(tap_, config);
    return set;
}
void Core::delete_account(std::string_view name) {
    say(tap_, DeleteAccount{name});
    parts_->delete_account(name);
}
bool Core::reset_balance(std::string_view name,
                         std::span<const int64_t> balance,
                         std::string* why) {
    const bool reset = parts_->reset_balance(name, balance, why);
    if (reset) say(tap_, ResetBalance{name, balance});
    return reset;
}
void Core::apply(const Report& report) {
    say(tap_, report);
    parts_->account_news();
    parts_->apply(report);
}
void Core::apply(const Pull& pull) {
    say(tap_, pull);
    parts_->account_news();
    parts_->apply(pull);
}
void Core::apply(const Unassign& unassign) {
    say(tap_, unassign);
    parts_->account_news();
    parts_->apply(unassign);
}
void Core::apply(const UpdateClaim& update) {
    say(tap_, update);
    parts_->account_news();
    parts_->apply(update);
}

bool Core::set_type(const TypeConfig& config, std::string* why) {
    const bool set = parts_->set_type(config, why);
    if (set) say(tap_, config);
    return set;
}
shm::Reason Core::apply(const DeleteType& deleted) {
    const shm::Reason reason = parts_->delete_type(deleted);
    // kState: it is going.
    if (reason == shm::Reason::kOk || reason == shm::Reason::kState) say(tap_, deleted);
    return reason;
}
void Core::apply(const ElasticCommand auto& command) {
    say(tap_, command);
    parts_->apply(command);
}
template void Core::apply(const Provide&);
template void Core::apply(const Provisioned&);
template void Core::apply(const EntryReport&);
template void Core::apply(const QueueRead&);
template void Core::apply(const QueueOperation&);
template void Core::apply(const OperationDone&);
template void Core::apply(const WorkerReport&);
template void Core::apply(const ProcessReport&);
template void Core::apply(const Probe&);
template void Core::apply(const SetBehaviour&);

shm::Reason Core::apply(const GangCommand auto& command, uint64_t* value) {
    say(tap_, command);
    // Its result stands before what follows from it.
    const size_t place = parts_->decisions.size();
    const bool by_session = !command.session.is_none();
    if (by_session) parts_->result(command.session, command.user_data, shm::Reason::kOk);
    uint64_t unused = 0;
    uint64_t& told = value == nullptr ? unused : *value;
    told = 0;
    const shm::Reason reason = parts_->apply(command, &told);
    if (!by_session) return reason;
    parts_->decisions[place].reason = reason;
    parts_->decisions[place].value = told;
    return reason;
}
template shm::Reason Core::apply(const AddApplication&, uint64_t*);
template shm::Reason Core::apply(const ApplicationEvent&, uint64_t*);

void Core::keep_token(SlotId order, const OrderToken& token, uint32_t uid) {
    parts_->keep_token(row_of(order), token, uid);
}

std::span<const Decision> Core::decisions() const {
    return parts_->decisions;
}

std::span<const Revival> Core::revivals() const {
    return parts_->revivals;
}

std::span<const DecidedSlot> Core::decided_slots(const Decision& decision) const {
    return std::span{parts_->decided_slots}.subspan(decision.slots_begin, decision.slots_count);
}

void Core::stage_store(const shm::LogStore& store) {
    parts_->edit.stage(store);
}

std::span<const shm::LogStore> Core::staged_stores() const {
    const shm::LogHead& log = parts_->state.head->log;
    // Of a turn that changed nothing there are none: what the log counts are an earlier one's.
    const bool none = log.phase.load(std::memory_order_relaxed) == shm::LogPhase::kIdle;
    return {parts_->state.log_stores, none ? 0 : log.stores};
}

void Core::set_cursors(SessionId session, uint64_t submission_consumed, uint64_t completion_tail) {
    shm::SessionRow& row = parts_->edit.row(parts_->state.sessions[session], 1);
    put(row.submission_consumed, submission_consumed);
    put(row.completion_tail, completion_tail);
}
void Core::set_epoch(uint64_t epoch) {
    put(parts_->state.head->epoch, epoch);
}
void Core::set_fence_base(uint64_t base) {
    put(const_cast<shm::CountersRow*>(parts_->state.counters)->fence_base, base);
}
void Core::set_clock_offset(uint64_t offset) {
    put(parts_->state.head->clock_offset, offset);
}
void Core::set_hand(SessionId session, uint64_t sequence) {
    put(const_cast<shm::SessionRow&>(parts_->state.sessions[session]).hand_sequence, sequence);
}

uint64_t Core::take_hand(SessionId session) {
    auto& row = const_cast<shm::SessionRow&>(parts_->state.sessions[session]);
    const uint64_t sequence = row.hand_sequence > row.submission_consumed ? row.hand_sequence : 0;
    put(row.hand_deaths, sequence != 0 ? row.hand_deaths + 1 : 0);
    put(row.hand_sequence, 0);
    return sequence;
}

bool Core::stores_owed() const {
    return parts_->state.head->log.phase.load(std::memory_order_relaxed) ==
           shm::LogPhase::kCommitted;
}

uint32_t Core::find_pool(std::string_view name) const {
    return parts_->pool_named(name);
}

uint32_t Core::pools() const {
    return parts_->state.counters->pools;
}
bool Core::pool_lives(PoolId row) const {
    return parts_->pool_lives(row);
}
bool Core::pools_go() const {
    return !parts_->going.empty();
}
const shm::PoolRow& Core::pool(PoolId row) const {
    return parts_->state.pools[row];
}
const shm::SlotRow& Core::slot(uint32_t row) const {
    return parts_->state.slots[row];
}
const shm::SessionRow& Core::session(SessionId row) const {
    return parts_->state.sessions[row];
}
const shm::LeaseRow& Core::lease(uint32_t row) const {
    return parts_->state.leases[row];
}
const shm::ClaimRow& Core::claim(uint32_t row) const {
    return parts_->state.claims[row];
}
const shm::StateHead& Core::head() const {
    return *parts_->state.head;
}
uint32_t Core::sessions_max() const {
    return parts_->state.sessions.size();
}
uint32_t Core::slots_max() const {
    return parts_->state.slots.size();
}
uint32_t Core::claims_max() const {
    return parts_->state.claims.size();
}
uint32_t Core::leases_max() const {
    return parts_->state.leases.size();
}

uint32_t Core::fresh_claims(uint32_t uid) const {
    return parts_->fresh_claims(uid);
}
const shm::CountersRow& Core::counters() const {
    return *parts_->state.counters;
}
uint32_t Core::first_waiting(PoolId pool) const {
    return parts_->backlog.head(pool);
}
uint32_t Core::next_parkable(PoolId pool, uint32_t lease) const {
    const Chains& parkable = parts_->parkable;
    return lease == kNoRow ? parkable.head(pool) : parkable.next(lease);
}
uint32_t Core::lacking(PoolId pool, uint32_t units) const {
    return parts_->lacking(pool, units);
}
uint32_t Core::wanted(PoolId pool) const {
    return parts_->wanted[pool];
}
TimeNs Core::recall_due(PoolId pool) const {
    return parts_->recall_due(pool);
}
uint32_t Core::oldest_lease(PoolId pool) const {
    return parts_->pool_leases.head(pool);
}

void Core::copy_chain(uint32_t chain, uint32_t size, std::byte* out) const {
    parts_->arena.copy(chain, size, out);
}

std::vector<Core::HeldRoom> Core::take_held_rooms() {
    return std::exchange(parts_->held_rooms, {});
}

Explanation Core::explain(uint32_t claim) const {
    return parts_->explain(claim);
}

uint32_t Core::claim_of_tag(SessionId session, uint16_t tag) const {
    const std::vector<uint32_t>& own = parts_->tags[session];
    const uint32_t holder = tag < own.size() ? own[tag] : kTagFree;
    constexpr uint32_t kNoClaim = kTagLease | kTagFresh;
    return (holder & kNoClaim) != 0 ? kNoRow : holder;
}

uint32_t Core::lease_of_tag(SessionId session, uint16_t tag) const {
    const std::vector<uint32_t>& own = parts_->tags[session];
    const uint32_t holder = tag < own.size() ? own[tag] : kTagFree;
    const bool leased = holder != kTagFree && (holder & kTagLease) != 0;
    return leased ? holder & ~kTagLease : kNoRow;
}

uint32_t Core::next_slot_of(SessionId session, uint32_t slot) const {
    return slot == kNoRow ? parts_->session_slots.head(session) : parts_->session_slots.next(slot);
}

uint64_t Core::number_of_tag(SessionId session, uint16_t tag) const {
    const std::vector<uint32_t>& own = parts_->tags[session];
    const uint32_t holder = tag < own.size() ? own[tag] : kTagFree;
    if (holder == kTagFree) return 0;
    if ((holder & kTagLease) != 0) return lease(holder & ~kTagLease).arrival;
    return (holder & kTagFresh) != 0 ? 0 : claim(holder).arrival;
}

std::span<const uint32_t> Core::touched_pools() const {
    Parts& parts = *parts_;
    parts.touched_list.clear();
    for (uint32_t pool = parts.touched.first(0); pool != kNoRow;
         pool = parts.touched.first(pool + 1)) {
        parts.touched_list.push_back(pool);
    }
    return parts.touched_list;
}

bool Core::draining() const {
    return parts_->state.counters->draining != 0;
}

std::vector<std::string> Core::check_all() const {
    return parts_->check_all();
}

}  // namespace dibs::core
