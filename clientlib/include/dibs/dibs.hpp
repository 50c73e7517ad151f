// clientlib/include/dibs/dibs.hpp -- the C interface as move-only C++ types with destructors.
// Header only, C++17, no exceptions; dibs/dibs.h defines the terms.
//
// SPDX-License-Identifier: Apache-2.0
//
//     Session ──► claim, submit + reap ──► Lease        released when it goes
//        │                        └──────► Claim        cancelled when it goes
//        └──────► announce ──────────────► Slot         withdrawn when it goes
//                 next_assignment ───────► Assignment   speaks of one round of a slot
//                 add_application ───────► Application  outlives all of these
//
// A complete program:
//
//     #include <dibs/dibs.hpp>
//     #include <cstdio>
//
//     int main() {
//         auto session = dibs::Session::connect();
//         if (!session) {
//             std::fprintf(stderr, "no session: %s\n", session.error().message().c_str());
//             return 1;
//         }
//         dibs::ClaimOptions want;
//         want.timeout = std::chrono::seconds(5);
//         auto lease = session->claim("gpu", want);
//         if (!lease) {
//             std::printf("%s\n", lease.error().message().c_str());
//             return 1;
//         }
//         std::printf("device %s is mine\n", lease->attribute("device").value_or("?"));
//         return 0;  // the lease goes back here
//     }
//
// Results. A call that can fail returns Result<T>, with the names of std::expected. Its Failure is
// a claim's outcome as well as a refused call: `code` is what the C function returned, or why the
// claim was rejected; `outcome` tells the two apart. Only Failure::message() throws,
// std::bad_alloc; a program that prefers exceptions writes `dibs::Lease lease =
// dibs::or_throw(session.claim("gpu"))`.
//
// Lifetimes. Session, Lease, Claim, Slot, Completion can be moved and not copied; a moved-from
// object is empty. Leases, claims, slots and completions point into their session: it must outlive
// them. Moving the Session object is allowed.
//
// Threads and fork are as in dibs.h: one thread at a time per session, and everything that belongs
// to it counts as it. Destructors do not wait, with one exception: while the submission ring is
// full they give the broker up to one second to read.
#ifndef DIBS_DIBS_HPP
#define DIBS_DIBS_HPP

#include <dibs/dibs.h>
#include <sched.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace dibs {
inline namespace cpp0 {  // what is linked is not taken for another version's, or the broker's

using Duration = std::chrono::nanoseconds;
inline constexpr Duration kForever{DIBS_FOREVER};
inline constexpr Duration kNoWait{0};

enum class Outcome : std::int32_t {
    kNone = DIBS_NO_OUTCOME,  // the call was refused: there was no claim
    kGranted = DIBS_GRANTED,
    kExpired = DIBS_EXPIRED,
    kCancelled = DIBS_CANCELLED,
    kRejected = DIBS_REJECTED,
    kBrokerLost = DIBS_BROKER_LOST,
};

// ---- Results.

struct Failure {
    int code = DIBS_OK;                // negative, or DIBS_OK of a claim that expired
    Outcome outcome = Outcome::kNone;  // of a claim
    Duration retry_after{0};           // rejected: worth trying again then; 0 = not said
    std::int64_t worker_code = 0;      // of DIBS_EREFUSED
    dibs_holder holder = {};           // the holder of what was wanted; claim 0: none is named

    // One sentence, with the holder's name where there is one.
    [[nodiscard]] std::string message() const {
        std::string text;
        if (outcome == Outcome::kNone) {
            text = dibs_strerror(code);
        } else {
            text = dibs_outcome_name(static_cast<int>(outcome));
            if (code != DIBS_OK) text.append(": ").append(dibs_strerror(code));
        }
        if (code == DIBS_EREFUSED) text += " with code " + std::to_string(worker_code);
        if (holder.claim != 0) {
            text += holder.claim == DIBS_HIDDEN_CLAIM
                        ? "; held by a process"
                        : "; held by process " + std::to_string(holder.pid);
            text += holder.uid == DIBS_HIDDEN_UID ? " of another user"
                                                  : " of user " + std::to_string(holder.uid);
            text += " for " + std::to_string(holder.age_ns / DIBS_MILLISECOND) + " ms";
        }
        return text;
    }
    static Failure of(int code) {
        Failure failure;
        failure.code = code;
        return failure;
    }
    static Failure of(const dibs_completion& end) {
        return {end.code,
                static_cast<Outcome>(end.outcome),
                Duration(end.retry_after_ns),
                end.worker_code,
                end.holder};
    }
};

// A T or a Failure. To read the one that is not there is a fault of the program, and ends it.
template <typename T>
class [[nodiscard]] Result {
  public:
    Result(T value) : content_(std::in_place_index<0>, std::move(value)) {}  // NOLINT: as expected
    Result(Failure failure) : content_(std::in_place_index<1>, failure) {}   // NOLINT

    [[nodiscard]] bool has_value() const noexcept { return content_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }
    T& operator*() & { return *read<0>(); }
    const T& operator*() const& { return *read<0>(); }
    T&& operator*() && { return std::move(*read<0>()); }
    T* operator->() { return read<0>(); }
    const T* operator->() const { return read<0>(); }
    [[nodiscard]] const Failure& error() const { return *read<1>(); }

  private:
    template <std::size_t kIndex>
    auto* read() {
        auto* content = std::get_if<kIndex>(&content_);
        if (content == nullptr) std::abort();
        return content;
    }
    template <std::size_t kIndex>
    const auto* read() const {
        const auto* content = std::get_if<kIndex>(&content_);
        if (content == nullptr) std::abort();
        return content;
    }
    std::variant<T, Failure> content_;
};

template <>
class [[nodiscard]] Result<void> {
  public:
    Result() = default;
    Result(Failure failure) : failure_(failure) {}  // NOLINT: as expected
    // Of a C function's code: positive ones are successes.
    static Result of(int code) { return code < 0 ? Result(Failure::of(code)) : Result(); }

    [[nodiscard]] bool has_value() const noexcept { return !failure_.has_value(); }
    explicit operator bool() const noexcept { return has_value(); }
    [[nodiscard]] const Failure& error() const {
        if (has_value()) std::abort();
        return *failure_;
    }

  private:
    std::optional<Failure> failure_;
};

#if defined(__cpp_exceptions)
class Exception : public std::exception {
  public:
    explicit Exception(const Failure& failure) : failure_(failure), text_(failure.message()) {}
    [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
    [[nodiscard]] const Failure& failure() const noexcept { return failure_; }

  private:
    Failure failure_;
    std::string text_;
};

template <typename T>
T or_throw(Result<T> result) {
    if (!result) throw Exception(result.error());
    if constexpr (!std::is_void_v<T>) return *std::move(result);
}
#endif

// ---- What is passed in. Read during the call only.

// A pointer and a count; of an array, a vector, or anything else with data() and size().
template <typename T>
struct Items {
    const T* first = nullptr;
    std::size_t count = 0;

    Items() = default;
    Items(const T* items, std::size_t size) : first(items), count(size) {}
    template <std::size_t kSize>
    Items(const T (&items)[kSize]) : first(items), count(kSize) {}  // NOLINT: a view
    template <typename Range, typename = decltype(std::declval<const Range&>().data())>
    Items(const Range& items) : first(items.data()), count(items.size()) {}  // NOLINT: a view
};

struct ConnectOptions {
    const char* socket_path = nullptr;  // null: as dibs.h says
    Duration timeout{0};
    std::uint32_t submission_entries = 0;
    std::uint32_t completion_entries = 0;
    std::uint32_t up_payload = 0;
    std::uint32_t down_payload = 0;
    std::uint32_t leases_max = 0;
    std::int32_t spin_us = 0;
    const int* connected = nullptr;  // as dibs.h says
    bool tree = false;               // as dibs.h says
};

struct ClaimOptions {
    Duration timeout = kForever;
    Duration interval{0};     // 0: the lease lasts as long as this process
    std::uint32_t units = 1;  // all or none, under one lease
    std::int32_t when_busy = DIBS_BUSY_AS_POOL;
    std::string_view key;   // at most 16 bytes; empty: none
    std::string_view body;  // for the worker, as the next two
    Items<dibs_option> options;
    Items<const char*> labels;  // in a pool ordered by account a slot must have them all
    Items<const char*> prefer;  // it should have these
    std::int32_t priority = 0;
    std::int32_t preempt = DIBS_PREEMPT_AS_POOL;
    Duration preempt_grace{0};
    const char* account = nullptr;  // that pays; null: the user's
    bool requeue = false;           // taken for a better claim it waits again, in its place
    bool by_word = false;           // Lease::touch keeps the interval, too
    Items<const char*> least;       // a part of one slot: "NAME=AMOUNT", at least so much of each
    Items<const char*> most;        // and at most, where the slot has it; empty: as `least`
    const dibs_offer* offer = nullptr;  // accepted: of its slot, now or not at all
    const char* meta = nullptr;         // for who inspects
    Items<dibs_pool_units> also;        // further pools: slots of each at once, all or none
    // Of which task of which application, and in which group of it (null: in none).
    const char* application = nullptr;
    const char* task = nullptr;
    const char* group = nullptr;

    // False: the key is too long.
    [[nodiscard]] bool fill(dibs_claim_options& out) const {
        out = {};
        out.size = sizeof out;
        out.timeout_ns = timeout.count();
        out.interval_ns = interval.count();
        out.units = units;
        out.when_busy = when_busy;
        if (key.size() > sizeof out.key) return false;
        for (std::size_t i = 0; i < key.size(); ++i)
            out.key[i] = static_cast<std::uint8_t>(key[i]);
        out.body = body.data();
        out.body_size = body.size();
        out.options = options.first;
        out.option_count = options.count;
        out.labels = labels.first;
        out.label_count = labels.count;
        out.prefer = prefer.first;
        out.prefer_count = prefer.count;
        out.priority = priority;
        out.preempt = preempt;
        out.preempt_grace_ns = preempt_grace.count();
        out.account = account;
        out.requeue = requeue ? 1 : 0;
        out.keep = by_word ? DIBS_KEEP_BY_WORD : DIBS_KEEP_BY_CALLS;
        out.least = least.first;
        out.least_count = least.count;
        out.most = most.first;
        out.most_count = most.count;
        out.offer = offer;
        out.meta = meta;
        out.also = also.first;
        out.also_count = also.count;
        out.application = application;
        out.task = task;
        out.group = group;
        return true;
    }
};

struct AnnounceOptions {
    const char* name = nullptr;
    Items<const char*> labels;
    Items<dibs_option> attributes;  // travel with every grant
    std::uint64_t worker_tag = 0;
    bool is_protected = false;
    bool ready = true;             // idle at once
    Items<const char*> resources;  // "NAME=AMOUNT": what the slot has, if not what its pool says
    std::uint32_t parts = 0;       // of it at a time
    const char* order = nullptr;   // that this worker was made for
};

// As dibs_app has it; `pool` and `name` must be said.
struct AppOptions {
    const char* name = nullptr;
    std::uint32_t pool = 0;
    std::int32_t priority = 1;
    Items<dibs_app_group> groups;     // its gang
    Duration placeholder_timeout{0};  // 0 = 15 min; kForever
    Duration manager_timeout{0};      // 0 = the broker's (5 min); kForever
    Duration age{0};                  // since it was made
    bool hard = false;                // its time-out fails it
    bool recover = false;             // it goes on at Application::recovered
    const char* parameters = nullptr;
    const char* tags = nullptr;
};

// ---- What is held.

// Retries what the full submission ring refused: for at most a second, then the broker does not
// read at all, and the end of the session will have to do.
template <typename Call>
int while_full(Call call) {
    using Clock = std::chrono::steady_clock;
    int code = call();
    if (code != DIBS_EFULL) return code;
    const Clock::time_point until = Clock::now() + std::chrono::seconds(1);
    while (code == DIBS_EFULL && Clock::now() < until) {
        sched_yield();
        code = call();
    }
    return code;
}

class Lease {
  public:
    Lease() = default;
    Lease(dibs_session* session, const dibs_lease& lease, std::uint32_t pool = UINT32_MAX)
        : session_(session), lease_(lease), pool_(pool) {}
    Lease(Lease&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)),
          lease_(other.lease_),
          pool_(other.pool_) {}
    Lease& operator=(Lease&& other) noexcept {
        Lease(std::move(other)).swap(*this);
        return *this;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() {
        if (session_ != nullptr)
            (void)while_full([&] { return dibs_release(session_, &lease_, DIBS_NOWAIT); });
    }
    void swap(Lease& other) noexcept {
        std::swap(session_, other.session_);
        std::swap(lease_, other.lease_);
        std::swap(pool_, other.pool_);
    }

    explicit operator bool() const noexcept { return session_ != nullptr; }
    [[nodiscard]] std::uint64_t id() const { return lease_.id; }
    // Larger than that of every earlier grant of the pool: hand it on.
    [[nodiscard]] std::uint64_t fence() const { return lease_.fence; }
    [[nodiscard]] std::uint32_t units() const { return lease_.units; }
    // The number of its pool: of a claim of a pool set the member that granted it. All ones of a
    // lease that was adopted.
    [[nodiscard]] std::uint32_t pool() const { return pool_; }
    [[nodiscard]] const dibs_lease& raw() const { return lease_; }

    // Gives it back now; the object is empty afterwards, unless the ring was full.
    Result<void> release(Duration wait = kNoWait) { return end(&dibs_release, wait); }
    // The same, and what was held is broken.
    Result<void> fail(Duration wait = kNoWait) { return end(&dibs_fail, wait); }
    // Leaves the lease as it is and the object empty: other code ends it.
    dibs_lease detach() { return session_ = nullptr, lease_; }

    // Prolongs it to `interval` from now; 0: as granted. For a lease that has ended a failure,
    // DIBS_ALREADY_ENDED: another holder may have by now what it held.
    Result<void> keepalive(Duration interval = Duration{0}, Duration wait = kNoWait) {
        const int code = dibs_keepalive(session_, &lease_, interval.count(), wait.count(), nullptr);
        return code == DIBS_OK ? Result<void>() : Failure::of(code);
    }
    // The same without asking, of a lease that was claimed with `by_word`. DIBS_EEXPIRED: it is too
    // late for that, and a keepalive may revive it.
    Result<void> touch() {
        const int code = dibs_touch(session_, &lease_);
        return code == DIBS_OK ? Result<void>() : Failure::of(code);
    }
    // DIBS_LIVE, DIBS_IN_GRACE or DIBS_ENDED; `why` (may be null) is the code of its end, or why
    // nothing is known of it.
    [[nodiscard]] int state(int* why = nullptr) const {
        const int state = dibs_lease_state(session_, &lease_, why);
        if (state >= 0) return state;
        if (why != nullptr) *why = state;
        return DIBS_ENDED;
    }
    [[nodiscard]] Result<Duration> remaining() const {
        std::int64_t left = 0;
        const int code = dibs_lease_remaining(session_, &lease_, &left);
        return code == DIBS_OK ? Result<Duration>(Duration(left)) : Failure::of(code);
    }
    [[nodiscard]] Result<dibs_slot> slot(std::uint32_t unit = 0) const {
        dibs_slot slot = {};
        const int code = dibs_lease_slot(session_, &lease_, unit, &slot);
        return code == DIBS_OK ? Result<dibs_slot>(slot) : Failure::of(code);
    }
    // What it has of each pool of its claim, from 0 on; DIBS_EUNITS behind the last one.
    [[nodiscard]] Result<dibs_part> part(std::uint32_t index) const {
        dibs_part part = {};
        const int code = dibs_lease_part(session_, &lease_, index, &part);
        return code == DIBS_OK ? Result<dibs_part>(part) : Failure::of(code);
    }
    // Stays until the lease ends; nothing, if the key is unknown.
    [[nodiscard]] std::optional<const char*> attribute(const char* key,
                                                       std::uint32_t unit = 0) const {
        const char* value = nullptr;
        const int code = dibs_lease_attribute(session_, &lease_, unit, key, &value);
        return code == DIBS_OK ? std::optional<const char*>(value) : std::nullopt;
    }
    // Its worker's answer.
    [[nodiscard]] std::optional<std::string_view> answer(std::uint32_t unit = 0) const {
        const void* bytes = nullptr;
        std::size_t size = 0;
        const int code = dibs_lease_answer(session_, &lease_, unit, &bytes, &size);
        if (code != DIBS_OK) return std::nullopt;
        return std::string_view(static_cast<const char*>(bytes), size);
    }

  private:
    Result<void> end(int (*how)(dibs_session*, const dibs_lease*, std::int64_t), Duration wait) {
        const int code = how(session_, &lease_, wait.count());
        if (code != DIBS_EFULL && code != DIBS_EUNREAD && code != DIBS_ENEGATIVE)
            session_ = nullptr;
        return Result<void>::of(code);
    }
    dibs_session* session_ = nullptr;
    dibs_lease lease_ = {};
    std::uint32_t pool_ = UINT32_MAX;
};

// A claim that was submitted and has no outcome yet. Its completion comes from Session::reap,
// whether this object lives or not; a cancelled one's too.
class Claim {
  public:
    Claim() = default;
    Claim(dibs_session* session, std::uint64_t ticket) : session_(session), ticket_(ticket) {}
    Claim(Claim&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), ticket_(other.ticket_) {}
    Claim& operator=(Claim&& other) noexcept {
        if (this != &other) {
            (void)cancel();
            session_ = std::exchange(other.session_, nullptr);
            ticket_ = other.ticket_;
        }
        return *this;
    }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() { (void)cancel(); }

    // Success too if it has its outcome already: its completion brings that.
    Result<void> cancel() {
        if (session_ == nullptr) return {};
        dibs_session* session = std::exchange(session_, nullptr);
        const int code = while_full([&] { return dibs_cancel(session, ticket_); });
        return Result<void>::of(code == DIBS_ENOTFOUND ? DIBS_OK : code);
    }
    // Why it waits, asked at the broker: some 100 µs. DIBS_ENOTFOUND: it does not wait any more.
    [[nodiscard]] Result<dibs_explanation> explain() const {
        dibs_explanation why = {};
        why.size = sizeof why;
        const int code = dibs_explain(session_, ticket_, &why);
        return code == DIBS_OK ? Result<dibs_explanation>(why) : Failure::of(code);
    }
    // It runs on without this object.
    void detach() { session_ = nullptr; }

  private:
    dibs_session* session_ = nullptr;
    std::uint64_t ticket_ = 0;
};

// What Session::reap brought. If it is a grant, the lease is in it until it is taken.
class Completion {
  public:
    Completion(dibs_session* session, const dibs_completion& raw) : raw_(raw) {
        if (raw.outcome == DIBS_GRANTED && raw.kind == DIBS_CLAIM_ENDED)
            lease_ = Lease(session, raw.lease, raw.pool);
    }
    [[nodiscard]] const dibs_completion& raw() const { return raw_; }
    [[nodiscard]] std::uint64_t user_data() const { return raw_.user_data; }
    [[nodiscard]] int kind() const { return raw_.kind; }
    [[nodiscard]] int code() const { return raw_.code; }
    [[nodiscard]] Outcome outcome() const { return static_cast<Outcome>(raw_.outcome); }
    [[nodiscard]] bool is_granted() const { return static_cast<bool>(lease_); }
    // DIBS_LEASE_REVOKING, DIBS_LEASE_GRACE: what the lease has left.
    [[nodiscard]] Duration left() const { return Duration(raw_.interval_ns); }
    // Of a claim's completion; once.
    Result<Lease> take_lease() {
        if (!lease_) return Failure::of(raw_);
        return std::move(lease_);
    }

  private:
    dibs_completion raw_;
    Lease lease_;
};

// ---- Workers.

// A slot that this process offers.
class Slot {
  public:
    Slot() = default;
    Slot(dibs_session* session, std::uint64_t id) : session_(session), id_(id) {}
    Slot(Slot&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)), id_(other.id_) {}
    Slot& operator=(Slot&& other) noexcept {
        if (this != &other) {
            (void)withdraw();
            session_ = std::exchange(other.session_, nullptr);
            id_ = other.id_;
        }
        return *this;
    }
    Slot(const Slot&) = delete;
    Slot& operator=(const Slot&) = delete;
    ~Slot() { (void)withdraw(); }

    [[nodiscard]] std::uint64_t id() const { return id_; }
    // The slot is clean and may be granted; round 0: it was announced unready.
    Result<void> ready(std::uint64_t round = 0, Duration wait = kNoWait) {
        return Result<void>::of(dibs_ready(session_, id_, round, wait.count()));
    }
    Result<void> protect(bool on, Duration wait = kNoWait) {
        return Result<void>::of(dibs_protect(session_, id_, on ? 1 : 0, wait.count()));
    }
    Result<void> withdraw(Duration wait = kNoWait) {
        if (session_ == nullptr) return {};
        dibs_session* session = std::exchange(session_, nullptr);
        return Result<void>::of(
            while_full([&] { return dibs_withdraw(session, id_, wait.count()); }));
    }

  private:
    dibs_session* session_ = nullptr;
    std::uint64_t id_ = 0;
};

// One assignment, revocation or word of one to come. What it shows of the claim stays until the
// first word about it.
class Assignment {
  public:
    Assignment(dibs_session* session, const dibs_assignment& raw, bool is_readable)
        : session_(session), raw_(raw), is_readable_(is_readable) {}

    [[nodiscard]] const dibs_assignment& raw() const { return raw_; }
    [[nodiscard]] bool is_revocation() const { return raw_.kind == DIBS_REVOKE; }
    // To a provisioner: make a worker for the order slot(), whose text is body(); or stop it.
    [[nodiscard]] bool is_order() const { return raw_.kind == DIBS_CREATE; }
    [[nodiscard]] bool is_stop() const { return raw_.kind == DIBS_STOP; }
    // A better claim takes the slot: what runs there has so long to end in.
    [[nodiscard]] std::optional<Duration> revoking() const {
        return raw_.kind == DIBS_REVOKING ? std::optional<Duration>(raw_.left_ns) : std::nullopt;
    }
    // Is the i-th label that the claim prefers one that this slot lacks?
    [[nodiscard]] bool provisions(std::size_t i) const {
        return i < raw_.prefer_count && (raw_.provision >> i & 1U) != 0;
    }
    // False: its payload cannot be read; refuse it.
    [[nodiscard]] bool is_readable() const { return is_readable_; }
    // An order where claims wait: for so many more workers of that size.
    [[nodiscard]] std::uint32_t width() const { return raw_.width; }
    // Of a part of a slot: how much it has of a resource of its pool. Of an order: how much its
    // worker is to have at least.
    [[nodiscard]] std::optional<const char*> resource(std::string_view name) const {
        for (std::size_t i = 0; i < raw_.resource_count; ++i) {
            const std::string_view text = raw_.resources[i];
            const bool is_named = text.substr(0, name.size()) == name;
            if (is_named && text.substr(name.size(), 1) == "=")
                return text.data() + name.size() + 1;
        }
        return std::nullopt;
    }
    [[nodiscard]] std::uint64_t slot() const { return raw_.slot; }
    [[nodiscard]] std::uint64_t round() const { return raw_.round; }
    [[nodiscard]] std::uint64_t worker_tag() const { return raw_.worker_tag; }
    [[nodiscard]] std::string_view body() const {
        return {static_cast<const char*>(raw_.body), raw_.body_size};
    }
    [[nodiscard]] std::optional<const char*> option(std::string_view key) const {
        for (std::size_t i = 0; i < raw_.option_count; ++i) {
            if (key == raw_.options[i].key) return raw_.options[i].value;
        }
        return std::nullopt;
    }

    Result<void> confirm(std::string_view answer = {}, Duration wait = kNoWait) const {
        return Result<void>::of(dibs_confirm(
            session_, raw_.slot, raw_.round, answer.data(), answer.size(), wait.count()));
    }
    // try_again: the claim waits on; else it ends rejected with `code`.
    Result<void> refuse(std::int64_t code, bool try_again, Duration wait = kNoWait) const {
        return Result<void>::of(
            dibs_refuse(session_, raw_.slot, raw_.round, code, try_again ? 1 : 0, wait.count()));
    }
    Result<void> done(std::string_view answer = {},
                      bool then_ready = true,
                      Duration wait = kNoWait) const {
        return Result<void>::of(dibs_done(session_,
                                          raw_.slot,
                                          raw_.round,
                                          answer.data(),
                                          answer.size(),
                                          then_ready ? 1 : 0,
                                          wait.count()));
    }
    Result<void> ready(Duration wait = kNoWait) const {
        return Result<void>::of(dibs_ready(session_, raw_.slot, raw_.round, wait.count()));
    }

  private:
    dibs_session* session_;
    dibs_assignment raw_;
    bool is_readable_;
};

// ---- Sessions.

// An application that a session manages. It outlives this object, and the session too: whoever
// adopts it goes on.
class Application {
  public:
    Application() = default;
    Application(dibs_session* session, const char* name, std::uint64_t number)
        : session_(session), name_(name), number_(number) {}
    Application(Application&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)),
          name_(std::move(other.name_)),
          number_(other.number_) {}
    Application& operator=(Application&& other) noexcept {
        session_ = std::exchange(other.session_, nullptr);
        name_ = std::move(other.name_);
        number_ = other.number_;
        return *this;
    }
    Application(const Application&) = delete;
    Application& operator=(const Application&) = delete;
    ~Application() = default;

    explicit operator bool() const noexcept { return session_ != nullptr; }
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] std::uint64_t number() const { return number_; }

    Result<void> complete(Duration wait = kWait) { return say(&dibs_app_complete, wait); }
    Result<void> fail(Duration wait = kWait) { return say(&dibs_app_fail, wait); }
    Result<void> kill(Duration wait = kWait) { return say(&dibs_app_kill, wait); }
    Result<void> recovered(Duration wait = kWait) { return say(&dibs_app_recovered, wait); }
    // Forgets it; DIBS_ESTATE: so many of its tasks (may be null) have not ended.
    Result<void> remove(std::uint64_t* tasks = nullptr, Duration wait = kWait) {
        return Result<void>::of(dibs_app_remove(session_, name_.c_str(), wait.count(), tasks));
    }
    Result<void> add_task(const char* task,
                          const char* group = nullptr,
                          std::int32_t priority = 1,
                          bool assigned = false,
                          Duration wait = kWait) {
        dibs_app_task raw = {};
        raw.size = sizeof raw;
        raw.name = task;
        raw.group = group;
        raw.priority = priority;
        raw.assigned = assigned ? 1 : 0;
        return Result<void>::of(dibs_app_add_task(session_, name_.c_str(), &raw, wait.count()));
    }
    Result<void> remove_task(const char* task, Duration wait = kWait) {
        return Result<void>::of(dibs_app_remove_task(session_, name_.c_str(), task, wait.count()));
    }
    Result<void> complete_task(const char* task, Duration wait = kWait) {
        return Result<void>::of(
            dibs_app_complete_task(session_, name_.c_str(), task, wait.count()));
    }

  private:
    static constexpr Duration kWait = std::chrono::seconds(5);

    Result<void> say(int (*word)(dibs_session*, const char*, std::int64_t), Duration wait) {
        return Result<void>::of(word(session_, name_.c_str(), wait.count()));
    }
    dibs_session* session_ = nullptr;
    std::string name_;
    std::uint64_t number_ = 0;
};

class Session {
  public:
    static Result<Session> connect(const ConnectOptions& options = {}) {
        dibs_connect_options raw = {};
        raw.size = sizeof raw;
        raw.socket_path = options.socket_path;
        raw.timeout_ns = options.timeout.count();
        raw.submission_entries = options.submission_entries;
        raw.completion_entries = options.completion_entries;
        raw.up_payload = options.up_payload;
        raw.down_payload = options.down_payload;
        raw.leases_max = options.leases_max;
        raw.spin_us = options.spin_us;
        raw.connected = options.connected;
        raw.tree = options.tree ? 1 : 0;
        dibs_session* session = nullptr;
        const int code = dibs_connect(&raw, &session);
        return code == DIBS_OK ? Result<Session>(Session(session)) : Failure::of(code);
    }

    Session() = default;
    explicit Session(dibs_session* raw) : raw_(raw) {}
    Session(Session&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Session& operator=(Session&& other) noexcept {
        if (this != &other) {
            (void)dibs_close(raw_);
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() { (void)dibs_close(raw_); }

    [[nodiscard]] dibs_session* raw() const { return raw_; }
    // 0 while the session lives, else why it has ended.
    [[nodiscard]] int end_code() const { return dibs_end_code(raw_); }

    [[nodiscard]] Result<std::uint32_t> pool(const char* name) const {
        std::uint32_t number = 0;
        const int code = dibs_pool(raw_, name, &number);
        return code == DIBS_OK ? Result<std::uint32_t>(number) : Failure::of(code);
    }
    [[nodiscard]] Result<dibs_pool_limits> describe(std::uint32_t pool) const {
        return read<dibs_pool_limits>(&dibs_describe, pool);
    }
    [[nodiscard]] Result<dibs_counters> snapshot(std::uint32_t pool) const {
        return read<dibs_counters>(&dibs_snapshot, pool);
    }
    [[nodiscard]] Result<dibs_totals> totals(std::uint32_t pool) const {
        return read<dibs_totals>(&dibs_pool_totals, pool);
    }
    // How long its claims waited, as the broker measures it; how long claims took, as all clients
    // report it, or this session alone.
    [[nodiscard]] Result<dibs_latency> latency(std::uint32_t pool) const {
        return read<dibs_latency>(&dibs_pool_latency, pool);
    }
    [[nodiscard]] Result<dibs_latency> reported_latency() const {
        return read_own(&dibs_reported_latency);
    }
    [[nodiscard]] Result<dibs_latency> session_latency() const {
        return read_own(&dibs_session_latency);
    }
    // How often it and the broker have woken each other.
    [[nodiscard]] Result<dibs_wakeups> session_wakeups() const {
        return read_own(&dibs_session_wakeups);
    }
    [[nodiscard]] Result<std::uint32_t> account(const char* name) const {
        std::uint32_t place = 0;
        const int code = dibs_account(raw_, name, &place);
        return code == DIBS_OK ? Result<std::uint32_t>(place) : Failure::of(code);
    }
    [[nodiscard]] Result<dibs_share> share(std::uint32_t place) const {
        return read<dibs_share>(&dibs_account_share, place);
    }
    [[nodiscard]] Result<dibs_share> share(const char* name) const {
        const Result<std::uint32_t> place = account(name);
        return place ? share(*place) : place.error();
    }

    // Claims and waits: the lease, or how the claim ended without one. `pool` may be a pool set's,
    // of which the lease says which member it is of.
    [[nodiscard]] Result<Lease> claim(std::uint32_t pool, const ClaimOptions& options = {}) {
        dibs_claim_options raw;
        if (!options.fill(raw)) return Failure::of(DIBS_EARGUMENT);
        dibs_completion end = {};
        const int code = dibs_claim(raw_, pool, &raw, &end);
        if (code != DIBS_OK) return Failure::of(code);
        if (end.outcome != DIBS_GRANTED) return Failure::of(end);
        return Lease(raw_, end.lease, end.pool);
    }
    [[nodiscard]] Result<Lease> claim(const char* name, const ClaimOptions& options = {}) {
        const Result<std::uint32_t> number = pool(name);
        return number ? claim(*number, options) : number.error();
    }

    // Takes over a lease of another session of this user, by the id and fence that it passed on.
    [[nodiscard]] Result<Lease> adopt(std::uint64_t id,
                                      std::uint64_t fence,
                                      Duration wait = std::chrono::seconds(5)) {
        dibs_lease lease = {};
        const int code = dibs_adopt(raw_, id, fence, wait.count(), &lease);
        return code == DIBS_OK ? Result<Lease>(Lease(raw_, lease)) : Failure::of(code);
    }

    // Claims without waiting: the outcome comes from reap, with this user_data.
    [[nodiscard]] Result<Claim> submit(std::uint32_t pool,
                                       std::uint64_t user_data,
                                       const ClaimOptions& options = {}) {
        dibs_claim_options raw;
        if (!options.fill(raw)) return Failure::of(DIBS_EARGUMENT);
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.user_data = user_data;
        op.pool = pool;
        op.claim = &raw;
        const int code = dibs_submit(raw_, &op, 1);
        return code == 1 ? Result<Claim>(Claim(raw_, op.ticket)) : Failure::of(code);
    }
    // The next completion; DIBS_ETIMEDOUT if none came.
    [[nodiscard]] Result<Completion> reap(Duration timeout = kNoWait) {
        dibs_completion raw = {};
        const int code = dibs_reap(raw_, &raw, 1, timeout.count());
        if (code == 1) return Completion(raw_, raw);
        return Failure::of(code == 0 ? DIBS_ETIMEDOUT : code);
    }

    // For event loops, as dibs.h describes them.
    [[nodiscard]] int fd() const { return dibs_fd(raw_); }
    [[nodiscard]] int arm() { return dibs_arm(raw_); }
    int dispatch() { return dibs_dispatch(raw_); }

    [[nodiscard]] Result<Slot> announce(std::uint32_t pool,
                                        const AnnounceOptions& options,
                                        Duration wait = std::chrono::seconds(5)) {
        dibs_announce_options raw = {};
        raw.size = sizeof raw;
        raw.name = options.name;
        raw.labels = options.labels.first;
        raw.label_count = options.labels.count;
        raw.attributes = options.attributes.first;
        raw.attribute_count = options.attributes.count;
        raw.worker_tag = options.worker_tag;
        raw.is_protected = options.is_protected ? 1 : 0;
        raw.ready = options.ready ? 1 : 0;
        raw.resources = options.resources.first;
        raw.resource_count = options.resources.count;
        raw.parts = options.parts;
        raw.order = options.order;
        std::uint64_t slot = 0;
        const int code = dibs_announce(raw_, pool, &raw, wait.count(), &slot);
        return code == DIBS_OK ? Result<Slot>(Slot(raw_, slot)) : Failure::of(code);
    }
    // Takes the role of provisioner of a type, or gives it up; `tag` comes back as worker_tag().
    Result<void> provide(std::uint32_t pool,
                         const char* type,
                         bool on = true,
                         std::uint32_t tag = 0,
                         Duration wait = std::chrono::seconds(5)) {
        return Result<void>::of(dibs_provide(raw_, pool, type, tag, on ? 1 : 0, wait.count()));
    }
    // Answers an order: DIBS_CREATED and so on.
    Result<void> provisioned(std::uint64_t order,
                             int answer,
                             int scope = DIBS_SCOPE_TYPE,
                             const char* quota_group = nullptr,
                             Duration wait = kNoWait) {
        return Result<void>::of(
            dibs_provisioned(raw_, order, answer, scope, quota_group, wait.count()));
    }
    // Adds an application, whose manager this session is. DIBS_EDUPLICATE, DIBS_EAPPLICATION.
    [[nodiscard]] Result<Application> add_application(const AppOptions& options,
                                                      Duration wait = std::chrono::seconds(5)) {
        dibs_app raw = {};
        raw.size = sizeof raw;
        raw.name = options.name;
        raw.pool = options.pool;
        raw.priority = options.priority;
        raw.groups = options.groups.first;
        raw.group_count = options.groups.count;
        raw.placeholder_timeout_ns = options.placeholder_timeout.count();
        raw.manager_timeout_ns = options.manager_timeout.count();
        raw.age_ns = options.age.count();
        raw.style = options.hard ? DIBS_GANG_HARD : DIBS_GANG_SOFT;
        raw.recover = options.recover ? 1 : 0;
        raw.parameters = options.parameters;
        raw.tags = options.tags;
        std::uint64_t number = 0;
        const int code = dibs_app_add(raw_, &raw, wait.count(), &number);
        if (code != DIBS_OK) return Failure::of(code);
        return Application(raw_, options.name, number);
    }
    // Becomes the manager of one that has none.
    [[nodiscard]] Result<Application> adopt_application(const char* name,
                                                        Duration wait = std::chrono::seconds(5)) {
        std::uint64_t number = 0;
        const int code = dibs_app_adopt(raw_, name, wait.count(), &number);
        return code == DIBS_OK ? Result<Application>(Application(raw_, name, number))
                               : Failure::of(code);
    }
    // What happens to the applications that it manages; DIBS_ETIMEDOUT if nothing does.
    [[nodiscard]] Result<dibs_app_event> next_application_event(Duration timeout = kForever) {
        dibs_app_event event = {};
        event.size = sizeof event;
        const int code = dibs_app_next(raw_, &event, timeout.count());
        return code == DIBS_OK ? Result<dibs_app_event>(event) : Failure::of(code);
    }
    // DIBS_ETIMEDOUT if none came.
    [[nodiscard]] Result<Assignment> next_assignment(Duration timeout = kForever) {
        dibs_assignment raw = {};
        const int code = dibs_next_assignment(raw_, timeout.count(), &raw);
        if (code != DIBS_OK && code != DIBS_EPAYLOAD) return Failure::of(code);
        return Assignment(raw_, raw, code == DIBS_OK);
    }

  private:
    template <typename T>
    Result<T> read(int (*function)(dibs_session*, std::uint32_t, T*), std::uint32_t pool) const {
        T out = {};
        out.size = sizeof out;
        const int code = function(raw_, pool, &out);
        return code == DIBS_OK ? Result<T>(out) : Failure::of(code);
    }
    template <typename T>
    Result<T> read_own(int (*function)(dibs_session*, T*)) const {
        T out = {};
        out.size = sizeof out;
        const int code = function(raw_, &out);
        return code == DIBS_OK ? Result<T>(out) : Failure::of(code);
    }
    dibs_session* raw_ = nullptr;
};

// ---- Events, and the whole state.

// A subscription to what the broker decides: a connection of its own, without a session.
class Events {
  public:
    static Result<Events> open(const char* socket_path = nullptr, Duration timeout = Duration{0}) {
        dibs_connect_options raw = {};
        raw.size = sizeof raw;
        raw.socket_path = socket_path;
        raw.timeout_ns = timeout.count();
        dibs_events* events = nullptr;
        const int code = dibs_events_open(&raw, &events);
        return code == DIBS_OK ? Result<Events>(Events(events)) : Failure::of(code);
    }

    Events() = default;
    explicit Events(dibs_events* raw) : raw_(raw) {}
    Events(Events&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
    Events& operator=(Events&& other) noexcept {
        if (this != &other) {
            (void)dibs_events_close(raw_);
            raw_ = std::exchange(other.raw_, nullptr);
        }
        return *this;
    }
    Events(const Events&) = delete;
    Events& operator=(const Events&) = delete;
    ~Events() { (void)dibs_events_close(raw_); }

    [[nodiscard]] dibs_events* raw() const { return raw_; }
    // For event loops: readable when an event is there.
    [[nodiscard]] int fd() const { return dibs_events_fd(raw_); }
    // DIBS_ETIMEDOUT if none came; DIBS_EBROKERLOST: open another subscription.
    [[nodiscard]] Result<dibs_event> next(Duration timeout = kForever) {
        dibs_event event = {};
        event.size = sizeof event;
        const int code = dibs_events_next(raw_, timeout.count(), &event);
        return code == DIBS_OK ? Result<dibs_event>(event) : Failure::of(code);
    }

  private:
    dibs_events* raw_ = nullptr;
};

// Writes the broker's state to the descriptor, or makes what the descriptor has its state; for
// administrators.
inline Result<void> dump(int fd, const char* socket_path = nullptr) {
    dibs_connect_options raw = {};
    raw.size = sizeof raw;
    raw.socket_path = socket_path;
    return Result<void>::of(dibs_dump(&raw, fd));
}
inline Result<void> load(int fd, const char* socket_path = nullptr) {
    dibs_connect_options raw = {};
    raw.size = sizeof raw;
    raw.socket_path = socket_path;
    return Result<void>::of(dibs_load(&raw, fd));
}

// ---- Accounts, and workers that do not attach: for administrators. Each asks the broker over a
//      connection of its own. A refusal's sentence goes into `why`, if there is one. Threads: any.

// What is not set stays, or is as a new account has it.
struct AccountChange {
    Items<std::int64_t> rate;     // by class, the best first: millionths of slots
    Items<std::int64_t> balance;  // likewise: millionths of slots times seconds
    std::optional<Duration> charge_max;
    std::optional<std::uint32_t> fanout_max;
    std::optional<bool> no_free_tasks;
    Items<dibs_label_limit> label_limits;
};

class Administration {
  public:
    explicit Administration(const char* socket_path = nullptr) : socket_path_(socket_path) {}

    // Why the last call was refused, if the broker said so.
    [[nodiscard]] const char* why() const { return why_; }

    Result<void> set_account(const char* name, const AccountChange& change = {}) {
        dibs_account_change raw = {};
        raw.size = sizeof raw;
        if (change.rate.count != 0) raw.fields |= DIBS_ACCOUNT_RATE;
        if (change.balance.count != 0) raw.fields |= DIBS_ACCOUNT_BALANCE;
        if (change.charge_max) raw.fields |= DIBS_ACCOUNT_CHARGE_MAX;
        if (change.fanout_max) raw.fields |= DIBS_ACCOUNT_FANOUT_MAX;
        if (change.no_free_tasks) raw.fields |= DIBS_ACCOUNT_NO_FREE_TASKS;
        raw.rate = change.rate.first;
        raw.rate_count = change.rate.count;
        raw.balance = change.balance.first;
        raw.balance_count = change.balance.count;
        raw.charge_max_ns = change.charge_max.value_or(Duration(0)).count();
        raw.fanout_max = change.fanout_max.value_or(0);
        raw.no_free_tasks = change.no_free_tasks.value_or(false) ? 1 : 0;
        raw.label_limits = change.label_limits.first;
        raw.label_limit_count = change.label_limits.count;
        const dibs_connect_options to = options();
        return Result<void>::of(dibs_account_set(&to, name, &raw));
    }
    Result<void> reset_account(const char* name, Items<std::int64_t> balance = {}) {
        const dibs_connect_options to = options();
        return Result<void>::of(dibs_account_reset(&to, name, balance.first, balance.count));
    }
    Result<void> delete_account(const char* name) {
        const dibs_connect_options to = options();
        return Result<void>::of(dibs_account_delete(&to, name));
    }
    // `size` is set here.
    Result<void> report(dibs_worker_report said) {
        said.size = sizeof said;
        const dibs_connect_options to = options();
        return Result<void>::of(dibs_report(&to, &said));
    }
    // Fills as many of `pulled` as there are workers, at most; how many.
    Result<std::size_t> pull(const char* pool,
                             Items<dibs_puller> workers,
                             dibs_pulled* pulled,
                             Duration age = Duration(0)) {
        const dibs_connect_options to = options();
        const int told = dibs_pull(&to, pool, workers.first, workers.count, age.count(), pulled);
        return told >= 0 ? Result<std::size_t>(static_cast<std::size_t>(told)) : Failure::of(told);
    }
    // `size` is set here.
    Result<void> dispatch_report(dibs_dispatched said) {
        said.size = sizeof said;
        const dibs_connect_options to = options();
        return Result<void>::of(dibs_dispatch_report(&to, &said));
    }
    // Fills at most `count` orders; how many.
    Result<std::size_t> dispatch_orders(const char* pool,
                                        dibs_order* orders,
                                        std::size_t count,
                                        Duration wait = Duration(0),
                                        std::uint64_t* stamp = nullptr) {
        const dibs_connect_options to = options();
        const int told = dibs_dispatch_orders(&to, pool, orders, count, wait.count(), stamp);
        return told >= 0 ? Result<std::size_t>(static_cast<std::size_t>(told)) : Failure::of(told);
    }
    // Anybody may ask these two. `size` is set here; fills at most `count` offers; how many.
    Result<std::size_t> offers(dibs_offers_query query,
                               dibs_offer* found,
                               std::size_t count,
                               std::uint64_t* stamp = nullptr) {
        query.size = sizeof query;
        const dibs_connect_options to = options();
        const int told = dibs_offers(&to, &query, found, count, stamp);
        return told >= 0 ? Result<std::size_t>(static_cast<std::size_t>(told)) : Failure::of(told);
    }
    Result<dibs_inspection> inspect(std::uint64_t lease) {
        dibs_inspection found = {};
        const dibs_connect_options to = options();
        const int code = dibs_inspect(&to, lease, &found);
        return code == DIBS_OK ? Result<dibs_inspection>(found) : Failure::of(code);
    }

  private:
    dibs_connect_options options() {
        why_[0] = 0;
        dibs_connect_options raw = {};
        raw.size = sizeof raw;
        raw.socket_path = socket_path_;
        raw.error_text = why_;
        raw.error_text_size = sizeof why_;
        return raw;
    }

    const char* socket_path_;
    char why_[512] = {};
};

}  // namespace cpp0
}  // namespace dibs

#endif
