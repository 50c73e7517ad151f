// clientlib/session.hpp -- the library's state of one session: tags, answers, stash.
//
// Three tables, all preallocated. A TAG is the session's handle for a claim and then for its lease;
// the broker frees its side when the claim has ended without a grant, or the lease has ended, and
// ring order makes sure that it reads a release before the next claim of the same tag. An ANSWER is
// an operation that awaits its result; the ring carries the answer's index as user_data, the
// caller's user_data stays here. STASH and ASSIGNMENTS hold what has been taken out of the
// completion ring and not yet by the caller.
//
//   tag:  free ── claim ──► claiming ── granted ──► live ── release ──► free
//                              │                     └── broker's event ──► over ──► free
//                              └── ended otherwise ──► free
//         live ── parked ──► parked ── taken ──► live;  recalled ──► free
//         free ── adopt ──► adopting ── adopted ──► live;  refused ──► free
//         live ── taken, and its claim waits again ──► claiming
//
// Room in DOWN is promised by counting: claims without an outcome, awaited results, the stash and
// four entries per slot that is or may be announced never exceed completion_entries −
// submission_entries. Quiet operations, which complete only when they fail, live in the rest: they
// cannot be more than the submission ring holds, because the ring is drained before a line of it is
// used again.
//
// One thread at a time; no member is atomic except in shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/un.h>

#include <cstddef>
#include <cstdint>

#include "clientlib/clock.hpp"
#include "clientlib/order.hpp"
#include "clientlib/session_tables.hpp"
#include "dibs/dibs.h"
#include "shm/cpu.hpp"
#include "shm/doorbell.hpp"
#include "shm/handshake.hpp"
#include "shm/operation.hpp"
#include "shm/ring.hpp"
#include "shm/spin_gauge.hpp"

namespace dibs::client {

inline constexpr uint64_t kForkMark = 0x6469627320697321ULL;
inline constexpr uint64_t kItsRoomIsFree = 1;                       // id of a kNop
inline constexpr uint64_t kDiscard = 0xffffffffffffffffULL;         // user_data of quiet operations
inline constexpr int64_t kOutcomeMarginNs = 20 * DIBS_MILLISECOND;  // of dibs_claim, for the word
inline constexpr int64_t kSpinNs = 25'000;
inline constexpr uint64_t kSpinWindowNs = 1'000'000;  // of looks at involuntary context switches
inline constexpr int64_t kAnswerTimeoutNs = 5 * DIBS_SECOND;  // where the caller names no time
inline constexpr int64_t kNetNs = 100 * DIBS_MILLISECOND;     // the safety net's period
inline constexpr int kYields = 4;
// Of the submission ring, which only dibs_close pushes to: a broker that reads nothing must learn
// later that the session is over, and learns it in no other way.
inline constexpr uint32_t kCloseLines = 1;
inline constexpr uint64_t kLeaseWordBits = shm::LeaseWordBit::kFree | shm::LeaseWordBit::kWanted;

struct SetWait;  // pool_set.hpp

enum class Told { kResult, kNobody };  // whether the caller learns how an operation ended

// What a caller waits for. Each has come, too, when the session is over, and (but for kCompletion,
// which takes from it) when the stash is full, because nothing can be taken in any more.
enum class Awaited : uint8_t {
    kClaim,       // the end of awaited_tag
    kAnswer,      // the result of awaited_answer
    kCompletion,  // anything to reap
    kAssignment,
    kAppEvent,
    kSet  // an end of one of set_wait's claims, or another version of its set
};

struct Session {
    // A page that a forked child finds zeroed.
    const volatile uint64_t* mark = nullptr;

    // ---- the shared segments
    shm::UpHead* up = nullptr;
    const shm::DownHead* down = nullptr;
    const std::byte* board = nullptr;
    shm::SessionSizes sizes = {};
    uint64_t board_size = 0;
    uint32_t pools_max = 0;
    uint8_t* up_payload = nullptr;
    const uint8_t* down_payload = nullptr;
    const std::atomic<uint64_t>* event_words = nullptr;
    shm::UpHistogram* histogram = nullptr;
    shm::LeaseWord* lease_words = nullptr;
    shm::TouchWord* touch_words = nullptr;
    shm::SubmissionProducer submissions;
    shm::CompletionConsumer completions;
    int socket = -1;
    sockaddr_un address = {};  // of the broker
    int bell = -1;
    int events = -1;
    int poll = -1;      // epoll over socket and events: dibs_fd
    uint64_t name = 0;  // what leases call this session
    TickLength tick;

    // ---- private tables
    Tag* tags = nullptr;
    uint32_t free_tag = kNone;
    uint32_t parked_tag = kNone;  // the last one that was parked
    Answer* answers = nullptr;
    uint32_t answers_max = 0;
    uint32_t free_answer = kNone;
    Queue<dibs_completion> stash;
    Queue<shm::Completion> assignments;
    Queue<shm::Completion> app_events;
    ManagedApp* apps = nullptr;
    uint32_t apps_max = 0;
    uint32_t app_count = 0;
    LastOrder last_order;
    uint64_t* payload_ends = nullptr;  // per submission line: payload_tail after it
    Offered* slots = nullptr;
    uint32_t slots_max = 0;
    uint32_t slot_count = 0;
    uint32_t new_slots = 0;     // announcements without a result that may add to them
    uint32_t parts_max = 0;     // parts that there may be of these and of those
    uint64_t payload_head = 0;  // bytes ever freed, ever taken; modulo the area: places
    uint64_t payload_tail = 0;

    // ---- counters
    uint32_t credit = 0;
    uint32_t claims_open = 0;
    uint32_t answers_open = 0;
    uint32_t live = 0;  // tags that hold a lease
    uint32_t over = 0;  // tags whose lease has ended, kept for their event and answer
    uint32_t events_to_reap = 0;
    uint32_t owed = 0;         // what tags have still to say: release, cancel, that a room is free
    uint32_t events_seen = 0;  // DOWN.events
    uint32_t pools_seen = 0;
    uint32_t cpu_told = shm::kNoCpu;
    uint64_t pumped_ticks = 0;  // when the last pump saw its first grant of a batch; 0 = none yet
    int64_t spin_ns = kSpinNs;  // 0: sleep at once
    shm::SpinGauge spin_gauge;
    uint64_t spin_window = 0;   // of its looks, in ticks
    uint64_t net_window = 0;    // of the net, in ticks
    uint64_t looked_ticks = 0;  // when a take or a touch last asked it
    uint64_t net_due_ns = 0;
    uint64_t net_tail = 0;              // the ring's tail when the net last looked
    uint64_t rung_tail = 0;             // entries below it were rung for when they were published
    shm::Op newest_op = shm::Op::kNop;  // what a bell is rung for
    dibs_wakeups wakeups = {};
    int end_code = 0;    // DIBS_ESESSION, DIBS_ESTATELOST, DIBS_EBROKERLOST
    int end_reason = 0;  // dibs_end_code
    dibs_holder last_holder = {};

    // The one answer that the caller waits for; its completion goes here instead of the stash.
    dibs_completion* awaited = nullptr;
    uint32_t awaited_tag = kNone;
    bool awaited_plainly = false;  // a grant changes nothing but its tag: take_awaited_grant()
    uint32_t awaited_answer = kNone;
    SetWait* set_wait = nullptr;  // of the caller that waits in several pools

    // The allocator of the memory.
    void* private_memory = nullptr;
    size_t private_size = 0;

    // ---- submit.cpp
    // Makes sure that a submission line is free beside dibs_close's. DIBS_EFULL, or why the session
    // has ended.
    int need_line();
    // Makes sure that so many more completions may be asked for. DIBS_EUNREAD, DIBS_EFULL.
    int need_credit(uint32_t count = 1);
    // For the assignments of a new slot, or what is told of an application. DIBS_ENOROOM.
    int need_slot(uint64_t count);
    int need_app();
    int need_words(uint64_t count);
    // Room in UP's payload area, valid until the next push. DIBS_EFULL, DIBS_EPAYLOAD.
    int need_payload(size_t size, uint32_t& offset);
    void begin_payloads();
    void push(const shm::Submission& entry) {
        payload_ends[submissions.tail() & (submissions.entries() - 1)] = payload_tail;
        submissions.push(entry);
        newest_op = entry.op;
    }
    // Makes what was pushed known, and rings the bell if the broker sleeps.
    void publish();
    void ring();
    void release_lines();
    void reclaim();
    // Pushes what earlier calls owe the broker, as far as there is room.
    void settle();
    // ---- worker.cpp
    [[nodiscard]] Offered* offered(uint64_t slot) const;  // null: not announced, or withdrawn
    [[nodiscard]] bool offers_name(uint64_t slot_name) const;
    void remember_slot(const Offered& offered);
    void forget_slot(uint64_t slot);
    int submit_claim(uint32_t pool,
                     const dibs_claim_options& options,
                     uint64_t user_data,
                     uint32_t& tag);
    // The same with options that are known to be good.
    int submit_checked_claim(uint32_t pool,
                             const dibs_claim_options& options,
                             uint64_t user_data,
                             uint32_t& tag);
    void free_over_tags(bool unreaped);
    // The lowest free tag, still free. DIBS_ELIMIT.
    int need_tag();
    // It is a claim's from here on.
    uint32_t take_claim_tag(uint32_t pool, uint32_t units, uint64_t user_data);
    // Beside completions: assignments, and what is told of applications.
    [[nodiscard]] uint32_t words_to_take() const { return assignments.count + app_events.count; }
    // Completions that other operations may still need, and those that lie in the stash.
    [[nodiscard]] uint32_t credit_taken() const {
        return claims_open + answers_open + stash.count +
               shm::kCompletionsPerSlot * (slot_count + new_slots + parts_max) +
               shm::kCompletionsPerApplication * app_count;
    }
    // A claim without options needs nothing that may be missing: no look at the other side, no row
    // to be freed first.
    [[nodiscard]] bool ready_for_claim(uint32_t pool) const {
        return pool < pools_seen && credit_taken() < credit && submissions.room() > kCloseLines &&
               over == 0 && owed == 0 && free_tag != kNone;
    }
    int submit_adoption(uint64_t lease, uint64_t fence, uint32_t& index);
    // Any other operation. kNobody: quiet. Sets `index` to its answer.
    int submit(shm::Submission& entry, uint64_t user_data, Told told, uint32_t& index);
    int submit_with(shm::Submission& entry,
                    std::string_view payload,
                    uint64_t user_data,
                    Told told,
                    uint32_t& index);
    int submit_announce(uint32_t pool,
                        const dibs_announce_options& options,
                        uint64_t user_data,
                        Told told,
                        uint32_t& index);
    // ---- application.cpp
    [[nodiscard]] ManagedApp* managed(uint64_t number) const;  // null: not managed here
    void remember_app(uint64_t number, const char* app_name);
    void forget_app(uint64_t number);
    void forget_apps_named(const char* app_name, uint64_t but);
    void accept_app(uint64_t asked, const shm::Completion& completion, dibs_completion& out);
    int submit_answered(shm::Submission& entry,
                        const void* answer,
                        size_t answer_size,
                        uint64_t user_data,
                        Told told,
                        uint32_t& index);

    // ---- receive.cpp
    // Takes everything out of the completion ring that the stash has room for.
    void pump();
    // The same without a word to the broker: what that makes owed stays so until the next pump().
    void absorb();
    // Takes in the grant of the awaited claim, if that comes next and is nothing else: what pump()
    // would do, in a third of the instructions, because a caller waits.
    bool take_awaited_grant();
    // Takes one completion; true if `out` was filled for the caller.
    bool accept(const shm::Completion& completion, dibs_completion& out);
    // Looks at one lease's event word, and at completions from before it: two lines that stay in
    // this CPU's cache. The tag may be another lease's, or free, behind it. False: the stash has no
    // room for what comes before.
    bool look_at_event(uint32_t tag);
    void take_event(uint32_t tag, uint64_t word);
    void lease_over(uint32_t tag);
    // Takes in completions and the event words that have changed; reads a line that the broker
    // writes all the time.
    void take_in();
    // Fills `out` with the next lease event; there is one.
    void reap_event(dibs_completion& out);
    void fill_event(uint32_t tag, dibs_completion& out);
    // The session is over: answers everything that is outstanding.
    void end(int code, int reason);
    void free_tag_row(uint32_t tag);
    // Whether the broker is to be told that the lease which has ended under this tag is not looked
    // at any more, so that its room is free.
    void room_is_owed(uint32_t tag, bool is) {
        if (tags[tag].room_owed == is) return;
        tags[tag].room_owed = is;
        owed += is ? 1 : UINT32_MAX;
    }
    // The tag's lease has ended, and its claim waits again.
    void wait_again(uint32_t tag, int code);
    // Its caller wants that claim no more.
    void abandon(uint32_t tag);
    // Its holder has given back the lease of this use of the tag, and with it all that its claim
    // may have come to since, told or not.
    void give_up(uint32_t tag, uint32_t use, uint64_t claim);
    // The same where that was taken in earlier and has not been told yet. False: nothing was.
    bool give_up_untold(const dibs_lease& lease);
    // The event of the lease before this one, out of its turn, if there is room: the grant follows.
    void tell_before_grant(uint32_t tag);
    void free_answer_row(uint32_t index);

    // ---- park.cpp
    // Puts the tag's lease aside. False: the broker wants it.
    bool park(uint32_t tag);
    // Takes a lease of the pool that was put aside. False: there is none any more.
    bool take_parked(uint32_t pool, dibs_completion& out);
    bool take_word(uint32_t tag);
    void unpark_one();  // gives the last parked lease back, which frees its tag
    [[nodiscard]] bool is_parked(const dibs_lease& lease) const;

    // ---- wait.cpp
    [[nodiscard]] bool has_come(Awaited what) const;
    // Sleeps once, at most `limit_ns` and the net's period, unless something has come.
    void sleep_once(uint64_t limit_ns, Awaited what);
    // Asks to be woken (a ClientSleep), then looks once more: true if nothing has come that has not
    // been taken in. `seen` is the futex word from before.
    bool arm(uint32_t how, uint32_t& seen);
    void look_whether_ended();
    // Entries below `old_tail` have been there for a whole period.
    void net(uint64_t old_tail);
    // For callers that come by more often than the period.
    void net_if_due(uint64_t now);
    // For those that ask the broker nothing: the tick counter says when they look.
    bool still_open(uint64_t now_ticks);

    // ---- claim.cpp, operation.cpp
    void cancel_sent(uint64_t ticket);
    // Claims in one pool; `wait_ns`: for the outcome, which is more than the claim's timeout where
    // that is 0 and a worker has to confirm.
    int claim_of_pool(uint32_t pool,
                      const dibs_claim_options& options,
                      int64_t wait_ns,
                      dibs_completion& end);
    // The outcome of a claim that was submitted.
    int await_claim(uint32_t tag, int64_t wait_ns, dibs_completion& end);
    // Waits for the awaited answer; DIBS_ETIMEDOUT.
    int await_answer(uint32_t index, int64_t wait_ns, dibs_completion& out);
    int finish(uint32_t index, Told told, int64_t wait_ns);
};

// Waiting: it spins while the broker runs on another CPU and spinning pays (shm/spin_gauge.hpp),
// for at most 25 µs or as long as the session was told to; gives way a few times while it is on
// this one; then sleeps.
class Wait {
  public:
    Wait(Session& session, int64_t timeout_ns)
        : session_(session), timeout_ns_(timeout_ns), started_ticks_(ticks()) {
        if (session_.spin_ns == 0) return;
        session_.spin_gauge.look(started_ticks_, session_.spin_window);
    }
    // Takes in what comes until what is awaited has come; false once the time is over.
    bool until(Awaited what);
    [[nodiscard]] uint64_t started_ticks() const { return started_ticks_; }

  private:
    // False once the time is over.
    bool step(Awaited what);
    bool may_spin();
    bool has_come();  // always true

    Session& session_;
    int64_t timeout_ns_;
    uint64_t started_ticks_;
    uint64_t started_ns_ = 0;
    uint32_t looks_ = 0;
    int yields_ = 0;
    bool asked_ = false;  // whether spinning pays
    bool spins_ = false;
    bool spun_ = false;  // long enough
};

// Memory whose first page begins with kForkMark, and is all zero in a forked child. Null: no
// memory, and errno says why.
void* take_marked(size_t size);

// Copies an options struct as far as caller and library know it. `first`: the size that it had in
// the first version. DIBS_ESIZE.
int read_options(const void* given, void* out, size_t known, size_t first);

// How long to wait for the word about a timeout.
constexpr int64_t with_margin(int64_t timeout_ns) {
    return timeout_ns > DIBS_FOREVER - kOutcomeMarginNs ? DIBS_FOREVER
                                                        : timeout_ns + kOutcomeMarginNs;
}

// Of a pool, slot, worker, account, label: 1 to 63 bytes.
bool good_name(const char* name);
bool has_control(const char* text);
bool good_app_name(const char* name);  // of an application, a task or a group; null is none
int check_labels(const char* const* labels, size_t count);  // DIBS_ELABELS
int check_pairs(const dibs_option* options, size_t count);  // DIBS_EOPTIONS
bool good_amounts(const char* const* texts, size_t count);

inline constexpr size_t kFirstConnectOptions = offsetof(dibs_connect_options, connected);
inline constexpr size_t kFirstClaimOptions = offsetof(dibs_claim_options, prefer);

// Which claim a lease that is given back was granted to.
inline void name_claim(shm::Submission& entry, uint32_t tag, const Tag& row) {
    entry.tag = static_cast<uint16_t>(tag);
    shm::set_key_word(entry, row.claim);
}

// What the ring calls the tag's claim.
inline uint64_t claim_name(uint32_t tag, const Tag& row) {
    return row.adopted_as != 0 ? row.adopted_as : uint64_t{row.use} << 32 | tag;
}

inline uint32_t Session::take_claim_tag(uint32_t pool, uint32_t units, uint64_t user_data) {
    const uint32_t tag = free_tag;
    Tag& row = tags[tag];
    free_tag = row.next_free;
    room_is_owed(tag, false);  // the claim says the same
    row.state = TagState::kClaiming;
    row.pool = pool;
    row.units = units;
    row.user_data = user_data;
    ++claims_open;
    // Adoptions are called by other numbers of the same kind: what was given back by that name is
    // not this claim.
    if (claim_name(tag, row) == row.gave_up) ++row.use;
    // It goes on to name the tag's last lease, whose release the broker may not have read yet.
    // Before the claim is published: from then on the broker may want what it grants.
    std::atomic<uint64_t>& word = lease_words[tag].word;
    const uint64_t old = word.load(std::memory_order_relaxed);
    if ((old & kLeaseWordBits) != 0) word.store(old & ~kLeaseWordBits, std::memory_order_relaxed);
    return tag;
}

inline dibs_lease lease_of(const Session& session, uint32_t tag) {
    const Tag& row = session.tags[tag];
    return {row.lease, row.fence, session.name, tag, row.units};
}

}  // namespace dibs::client

struct dibs_session final : dibs::client::Session {};

namespace dibs::client {

// First in every function: null, or a child's copy.
inline int check(const dibs_session* session) {
    if (session == nullptr) return DIBS_EARGUMENT;
    return *session->mark == kForkMark ? DIBS_OK : DIBS_EFORK;
}
// The same, and the session lives.
inline int check_open(const dibs_session* session) {
    const int code = check(session);
    return code != DIBS_OK ? code : session->end_code;
}

}  // namespace dibs::client
