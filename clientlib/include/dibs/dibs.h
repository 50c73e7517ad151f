// clientlib/include/dibs/dibs.h -- libdibs: claim warm, exclusive things from the dibs broker of
// this host, and offer them. This header is the reference.
//
// SPDX-License-Identifier: Apache-2.0
//
//      client process                    dibsd                       worker process
//    ┌───────────────┐  claim       ┌────────────┐  assignment     ┌────────────────┐
//    │ dibs_claim    │ ───────────► │  pool      │ ──────────────► │ dibs_announce  │
//    │               │              │  ▣ ▣ ▢ ▣   │                 │ dibs_next_…    │
//    │ the lease     │ ◄─────────── │  slots     │ ◄────────────── │ dibs_confirm   │
//    │ dibs_release  │  grant       │  backlog   │  answer         │ dibs_ready     │
//    └───────────────┘              └────────────┘                 └────────────────┘
//
// Words. A POOL is a named set of SLOTS that can stand in for one another: warm processes, GPUs,
// browsers, core tokens. A CLAIM asks for one slot or more of a pool; it ends in exactly one
// OUTCOME: granted, expired, cancelled, rejected, broker-lost. What is granted is held under a
// LEASE, until its holder releases it, its worker is done with it, or it expires; a KEEPALIVE
// prolongs it. The FENCE of a lease is larger than that of every earlier use of its slot, though
// the lease may be the same one, taken again: hand it on, so that whoever you talk to about that
// slot can tell a late holder from the present one. A WORKER
// announces slots and is told of their grants by ASSIGNMENTS, each with its ROUND; a COUNTED pool
// has slots without a worker. A SESSION is one attached process; it may do all of this.
//
// A complete program:
//
//     #include <dibs/dibs.h>
//     #include <stdio.h>
//
//     int main(void) {
//         dibs_session *session = NULL;
//         int code = dibs_connect(NULL, &session);
//         if (code < 0) {
//             fprintf(stderr, "no session: %s\n", dibs_strerror(code));
//             return 1;
//         }
//         uint32_t pool = 0;
//         dibs_completion end = {0};
//         dibs_claim_options want = {0};
//         want.size = sizeof want;
//         want.timeout_ns = 5 * DIBS_SECOND;
//         code = dibs_pool(session, "gpu", &pool);
//         if (code == 0) code = dibs_claim(session, pool, &want, &end);
//         if (code < 0) {
//             fprintf(stderr, "no claim: %s\n", dibs_strerror(code));
//         } else if (end.outcome != DIBS_GRANTED) {
//             printf("%s (%s), held by process %u\n", dibs_outcome_name(end.outcome),
//                    dibs_reason_name(end.code), end.holder.pid);
//         } else {
//             const char *device = "?";
//             dibs_lease_attribute(session, &end.lease, 0, "device", &device);
//             printf("device %s is mine\n", device);
//             code = dibs_release(session, &end.lease, DIBS_NOWAIT);
//         }
//         dibs_close(session);
//         return code == 0 ? 0 : 1;
//     }
//
// Threads. A session is used by one thread at a time; threads that want to claim at the same time
// open sessions of their own (a handshake takes about 0.3 ms). Exempt, callable from any thread at
// any time: dibs_version, dibs_strerror, the functions dibs_…_name, and what opens something of its
// own: dibs_connect, dibs_events_open, dibs_dump, dibs_load, dibs_account_set, dibs_account_reset,
// dibs_account_delete, dibs_report, dibs_pull, dibs_dispatch_report, dibs_dispatch_orders,
// dibs_offers, dibs_inspect; what only computes:
// dibs_keepalive_next, dibs_offer_take; and, from any thread as long as the session is open:
// dibs_snapshot, dibs_pool_totals, dibs_pool_latency, dibs_reported_latency, dibs_account_share,
// dibs_fd. The library starts no thread, installs no signal handler and raises no signal; a signal
// does not end a wait.
//
// Fork. A child does not inherit a session: every function that is given one answers DIBS_EFORK
// there, and dibs_close only gives back the child's copy. The parent's session is not affected.
//
// Memory. Everything a session needs is taken by dibs_connect, and no function that is given one
// allocates; dibs_events_open takes a subscription's, dibs_dump and dibs_load take theirs and give
// it back. What a function returns by pointer belongs to the session and is read-only; each says
// how long it stays. What is passed in is read during the call only.
//
// Options. An options struct starts with `size`, which the caller sets to sizeof of the struct as
// it was compiled; what lies beyond is taken as 0. A null pointer stands for a struct of zeroes
// unless said otherwise. Text ends with a zero byte.
//
// Time is in nanoseconds, and only durations cross this interface. A timeout is ≥ 0 or
// DIBS_FOREVER; a negative one is refused.
//
// Codes. A function returns 0, DIBS_ALREADY_ENDED, which is the only positive code, or a negative
// one from the list below; one that returns a count, a descriptor or a state says so, and then what
// is not negative is that and no code. A negative code of
// dibs_claim or dibs_submit means refused: nothing is held, and nothing comes of it. What becomes
// of an accepted claim is no error but its outcome, in its completion.
#ifndef DIBS_DIBS_H
#define DIBS_DIBS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define DIBS_API __attribute__((visibility("default")))
#else
#define DIBS_API
#endif

#define DIBS_VERSION_MAJOR 0
#define DIBS_VERSION_MINOR 1
#define DIBS_VERSION_PATCH 0

#define DIBS_FOREVER INT64_MAX
#define DIBS_NOWAIT ((int64_t)0)
#define DIBS_SECOND ((int64_t)1000000000)
#define DIBS_MILLISECOND ((int64_t)1000000)

#define DIBS_NAME_MAX 63           // bytes of a pool's or slot's name
#define DIBS_PAYLOAD_MAX 16384     // bytes of a claim's body, options and labels, encoded
#define DIBS_OPTIONS_MAX 16        // options of a claim, attributes of an announcement
#define DIBS_RESOURCES_MAX 6       // of a pool's slots
#define DIBS_RESOURCE_NAME_MAX 31  // bytes of a resource's name, without a zero byte
#define DIBS_META_MAX 255          // bytes of a claim's text for who inspects
#define DIBS_OFFERS_MAX 64         // of one answer
#define DIBS_LABELS_MAX 32
#define DIBS_UNITS_MAX 256
#define DIBS_PARTS_MAX 8  // pools of one claim

// ---- Codes. Each has this one meaning, wherever it appears: as what a function returns, or as
//      `code` of a completion.
enum {
    DIBS_OK = 0,
    DIBS_ALREADY_ENDED = 1,  // that lease has ended before: there was nothing to do

    // said by the broker
    DIBS_EPOOL = -1,         // no such pool
    DIBS_EUNITS = -2,        // no units, or more than a claim of that pool may have
    DIBS_EBACKLOG = -3,      // too many claims wait; see retry_after_ns
    DIBS_EARENA = -4,        // no room for the payload now; see retry_after_ns
    DIBS_EBUSY = -5,         // no slot was idle, and the claim would not wait
    DIBS_ECOLD = -6,         // no slot was idle: make one yourself, and announce it
    DIBS_EDRAINING = -7,     // the pool or the broker takes no new claims
    DIBS_EDUPLICATE = -8,    // its key is in use by an earlier claim, named by holder.claim; the
                             // application or task is there
    DIBS_ELIMIT = -9,        // a limit of this session or user: claims, leases, sessions, unread
                             // completions, questions at once
    DIBS_EPAYLOAD = -10,     // payload or answer malformed, or larger than pool or session take
    DIBS_ENOTFOUND = -11,    // no such lease, claim, slot, application or task
    DIBS_ESTALE = -12,       // a fence or round of an earlier grant
    DIBS_ENOTHOLDER = -13,   // another session's; `holder` names it
    DIBS_ESTATE = -14,       // not allowed in the present state of slot, lease or broker
    DIBS_EREFUSED = -15,     // by the worker; worker_code says why
    DIBS_ENOROOM = -16,      // this session has no room for it: larger down_payload or rings
    DIBS_ENAMEINUSE = -17,   // another session has it, or it comes with an open order
    DIBS_ETABLES = -18,      // the broker's tables are full
    DIBS_EHOLDERGONE = -19,  // the holder's process has ended
    DIBS_EWORKERLOST = -20,  // the worker's process has ended, or withdrew the slot
    DIBS_EEXPIRED = -21,     // the lease was not kept alive, or given back, in time
    DIBS_EDONE = -22,        // the worker said done
    DIBS_EMALFORMED = -23,   // an operation that is not one; of an application's groups: they were
                             // dropped
    DIBS_ENOTALLOWED = -24,  // not allowed to this user
    DIBS_EREVOKED = -25,  // ended from outside (dibs release, cancel), or taken for a better claim
    DIBS_ESTATELOST = -26,   // the broker's state failed its checks; it has begun anew. Returned in
                             // the place of DIBS_ESESSION where that has ended the session
    DIBS_EUNKILLABLE = -27,  // a pool of strict expiry, and the broker may not kill this process
    DIBS_EENDED = -28,       // that lease has ended: there is nothing to adopt
    DIBS_EADOPTED = -29,     // another session of this user has adopted the lease
    DIBS_EUNAVAILABLE = -30,   // no slot of the pool has as much of a resource, whoever holds what
    DIBS_EVECTOR = -31,        // not a part of a slot of this pool: see dibs_claim_options.least
    DIBS_EOFFEREXPIRED = -32,  // the slot has not so much any more: see dibs_claim_options.offer
    DIBS_EELSEWHERE = -33,     // a pool of another cluster: see dibs_pool
    DIBS_EAPPLICATION = -34,   // the application has ended, or is ending
    DIBS_ERESERVATIONTIME = -35,    // not all placeholders of its gang came in time
    DIBS_ERESERVATIONFAILED = -36,  // they cannot come: its pool drains or goes
    DIBS_EMANAGERGONE = -37,        // nobody has adopted the application in time

    // said by the library
    DIBS_EARGUMENT = -101,    // a null pointer, or a value that no other code names
    DIBS_ESIZE = -102,        // `size` of an options struct is not one that ever was
    DIBS_EFORK = -103,        // the session belongs to the parent process
    DIBS_ENOBROKER = -104,    // nobody listens at the socket, or nobody answered in time
    DIBS_EVERSION = -105,     // library and broker are of versions that do not fit together
    DIBS_EHANDSHAKE = -106,   // the broker let nobody in, or its answer cannot be read
    DIBS_ESYSTEM = -107,      // a system call failed; errno says why
    DIBS_ESESSION = -108,     // the broker has ended this session; see dibs_end_code
    DIBS_EBROKERLOST = -109,  // the broker is gone, and this session with it
    DIBS_ENEGATIVE = -110,    // a negative timeout or interval
    DIBS_ENAME = -111,        // a name that cannot be one: see dibs_pool, dibs_announce
    DIBS_EOPTIONS = -112,     // more than 16 options, or one without a key
    DIBS_ELABELS = -113,      // more than 32 labels, or one that is null, empty or over 63 bytes
    DIBS_EFULL = -114,        // ring or payload area is full: the broker must read first
    DIBS_EUNREAD = -115,      // completions that wait to be reaped have taken the room: reap first
    DIBS_ETIMEDOUT = -116,    // nothing came within the timeout; what was asked stands
    DIBS_EREADY = -117,       // not armed: there is something to reap
    DIBS_ETORN = -118,        // the broker stopped while it published these counters
    DIBS_ENOVALUE = -119      // no attribute of that key; no answer
};

// How a claim ended.
enum {
    DIBS_NO_OUTCOME = 0,  // it has not; or the completion is not a claim's
    DIBS_GRANTED = 1,
    DIBS_EXPIRED = 2,  // its timeout passed
    DIBS_CANCELLED = 3,
    DIBS_REJECTED = 4,  // `code` says why
    DIBS_BROKER_LOST = 5
};

typedef struct dibs_session dibs_session;

// ---- Any thread, any time. None of these has a code to return.

// major << 16 | minor << 8 | patch of the library that is linked.
DIBS_API uint32_t dibs_version(void);
// A sentence for a code, a word for an outcome, a word for a code. Static text, never null.
DIBS_API const char* dibs_strerror(int code);
DIBS_API const char* dibs_outcome_name(int outcome);
DIBS_API const char* dibs_reason_name(int code);
// A word for a DIBS_WAIT_….
DIBS_API const char* dibs_wait_name(int reason);

// ---- Sessions. Threads: dibs_connect any; the rest one at a time per session.

typedef struct dibs_connect_options {
    size_t size;
    const char* socket_path;  // null: $DIBS_SOCKET, else $XDG_RUNTIME_DIR/dibs/dibs.sock, else
                              // /run/dibs/dibs.sock
    int64_t timeout_ns;       // for the handshake as a whole, signals or not; 0 = 5 s
    // Sizes, powers of two; 0 = the default.
    uint32_t submission_entries;  // 8 .. 4096, 128: operations that the broker has not read, and
                                  // one more, which is dibs_close's
    uint32_t completion_entries;  // 16 .. 16384, 256: at least twice as many
    uint32_t up_payload;          // 4096 .. 4 MiB, 64 KiB: payloads the broker has not read
    uint32_t down_payload;        // 4096 .. 4 MiB, 64 KiB: attributes, answers, assignments
    uint32_t leases_max;          // 8 .. 1024, 256: claims and leases at once
    int32_t spin_us;              // how long a wait spins before it sleeps, while the broker is on
                                  // another CPU: 0 = 25; negative: it sleeps at once
    char* error_text;             // null, or where a sentence about a failure goes, which begins
                                  // with the socket's path, but for DIBS_ENAME and `connected`
    size_t error_text_size;
    const int* connected;  // null, or a SOCK_SEQPACKET socket that is connected to the broker's:
                           // the session is that of the process which connected it, lives as long
                           // as that process, and is used by this one, whose end does not end it.
                           // The socket is the library's once this succeeds, else still the
                           // caller's to close: it is no longer fit for a second try
    int32_t tree;          // not 0: the control group (cgroup2) of the process that connects is its
                           // own, and what the session's process starts lives in it: when that
                           // process dies, its leases end with the group's last process. The group
                           // is a leaf, owned by this user, and nothing else is in it yet; else
                           // DIBS_ENOTALLOWED, and error_text says why
} dibs_connect_options;

// Opens a session. DIBS_EARGUMENT (session null), DIBS_ESIZE, DIBS_ENEGATIVE, DIBS_ENAME (path
// too long for a socket), DIBS_ENOBROKER, DIBS_EVERSION, DIBS_EHANDSHAKE, DIBS_ENOTALLOWED (this
// user gets no session), DIBS_ELIMIT (as many, as large or as often as it may), DIBS_EDRAINING (the
// broker is about to stop), DIBS_ESYSTEM.
DIBS_API int dibs_connect(const dibs_connect_options* options, dibs_session** session);

// Ends the session: what it holds is given back, its claims are cancelled, its slots withdrawn. A
// broker that is stopped learns of it when it goes on, however much lies unread before it.
// Everything it returned by pointer is gone. Null is allowed. DIBS_EFORK.
DIBS_API int dibs_close(dibs_session* session);

// Why the session has ended: 0 while it lives, else the broker's code (DIBS_EMALFORMED: it found
// an entry or index that the library cannot have written; DIBS_ELIMIT: completions were left unread
// until it had no room for one more; DIBS_ESTATELOST: every session has ended with the state), or
// DIBS_EBROKERLOST. DIBS_EFORK, DIBS_EARGUMENT.
//
// Every function that waits learns of the end, and so do dibs_reap and dibs_next_assignment without
// a timeout, dibs_dispatch, dibs_end_code and dibs_keepalive: at once of an end by the broker, in
// some 100 ms of the loss of broker and keeper. dibs_lease_state learns of an end by the broker.
DIBS_API int dibs_end_code(dibs_session* session);

// ---- Pools. Read from memory that the broker publishes: no system call, no round trip.
//      Threads: one at a time per session; any where that is said.

#define DIBS_POOL_SET 0x80000000u

// The number of a pool, which stays the same, and no other pool's, as long as this session lives.
// A name has 1 to 63 letters, digits, ".", "_" and "-", a letter first. DIBS_ENAME, DIBS_EPOOL,
// DIBS_EELSEWHERE, DIBS_ETORN, DIBS_EARGUMENT, DIBS_EFORK.
//
// The name may be that of a pool set ([[set]] of the configuration): several pools under one name.
// Its number has the bit DIBS_POOL_SET and says nothing else to its reader. It is for dibs_claim,
// and where the broker ranks its pools (`rank = "load"`) for DIBS_OP_CLAIM of dibs_submit, too;
// every other function that takes a pool answers DIBS_EPOOL: a set has no slots, counters or limits
// of its own, its pools have. It stays the set's while the configuration has the set, whatever its
// members are. The end of a claim of a set says which pool it was in.
//
// `cluster::pool` names a pool of a cluster: with the broker's own name (`cluster` of the
// configuration) that pool, with another one DIBS_EELSEWHERE.
DIBS_API int dibs_pool(dibs_session* session, const char* name, uint32_t* pool);

typedef struct dibs_pool_limits {
    size_t size;
    char name[DIBS_NAME_MAX + 1];
    uint32_t units_max;       // of one claim
    uint32_t payload_max;     // bytes
    uint32_t answer_max;      // bytes
    uint32_t attributes_max;  // bytes of one slot
    int32_t has_workers;      // 0 = a counted pool
    int32_t draining;
} dibs_pool_limits;

// DIBS_ESIZE, DIBS_EPOOL, DIBS_ETORN, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_describe(dibs_session* session, uint32_t pool, dibs_pool_limits* limits);

typedef struct dibs_counters {
    size_t size;
    uint32_t slots;         // whole ones: idle, reserved, leased, recovering, unknown or shared
    uint32_t idle;          // in the ready queue
    uint32_t reserved;      // chosen, their workers asked
    uint32_t leased;        // and each part of a slot that is; so it may be more than `slots`
    uint32_t parked;        // of them: put aside by their holders when the broker last looked
    uint32_t recovering;    // given back and not yet ready again
    uint32_t unknown;       // their worker must say
    uint32_t queued;        // claims: waiting and confirming
    uint32_t confirming;    // claims whose workers have been asked
    uint32_t shared;        // slots of which parts are leased
    uint64_t hits;          // claims granted without waiting
    int64_t last_grant_ns;  // broker's time of the last grant, 0 = never
} dibs_counters;

// One consistent picture of a pool's counters, in some ten nanoseconds. Any thread, as long as the
// session is open. DIBS_ESIZE, DIBS_EPOOL, DIBS_ETORN, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_snapshot(dibs_session* session, uint32_t pool, dibs_counters* counters);

typedef struct dibs_totals {
    size_t size;
    // Claims of the pool since it was made: accepted = granted + expired + cancelled + rejected +
    // those that still wait. A claim that was rejected on arrival is in none of them.
    uint64_t accepted;
    uint64_t granted;
    uint64_t expired;
    uint64_t cancelled;
    uint64_t rejected;
    uint64_t released;
    // Of the broker: entries that it found behind a sleep, and that a client's safety net had to
    // ring for. Not 0 means that a wake-up was lost. The ring is the client's word, so clients of
    // the broker's own user and root are counted alone; `dibs metrics` tells what others say.
    uint64_t net_found_work;
} dibs_totals;

// What has become of a pool's claims so far; one consistent picture, like dibs_snapshot. Any
// thread, as long as the session is open. DIBS_ESIZE, DIBS_EPOOL, DIBS_ETORN, DIBS_EARGUMENT,
// DIBS_EFORK.
DIBS_API int dibs_pool_totals(dibs_session* session, uint32_t pool, dibs_totals* totals);

// How long something took, of all the times that were counted: so many hundredths of them took at
// most so long. A number is at most a sixteenth more than what it stands for; of none, all are 0.
typedef struct dibs_latency {
    size_t size;
    uint64_t count;
    int64_t p50_ns;
    int64_t p90_ns;
    int64_t p99_ns;
    int64_t p999_ns;  // 99.9 of a hundred
    int64_t longest_ns;
} dibs_latency;

// How long the granted claims of a pool waited, from the broker's reading of them to their grant,
// as the broker measures it; a parked lease that is taken again asks nobody, and is not counted
// here nor below. Any thread, as long as the session is open. DIBS_ESIZE, DIBS_EPOOL,
// DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_pool_latency(dibs_session* session, uint32_t pool, dibs_latency* latency);
// How long granted claims took, from their submission until the answer was seen, of all pools and
// sessions together, as the clients report it: the broker sums up what each says of itself, and
// believes of a session no more of them than it has answered. Any thread, as long as the session is
// open. DIBS_ESIZE, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_reported_latency(dibs_session* session, dibs_latency* latency);
// The same of this session alone: what it reports. One thread at a time per session. DIBS_ESIZE,
// DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_session_latency(dibs_session* session, dibs_latency* latency);

// How often this session and the broker have woken each other, and for what. A claim and its
// release cost neither while both spin, or where a parked lease is taken again.
typedef struct dibs_wakeups {
    size_t size;
    uint64_t bells;  // the session has woken the broker; of these, as the last of what it asked:
    uint64_t claim_bells;    // it claimed
    uint64_t release_bells;  // it released; the rest: all else
    uint64_t sleeps;         // a call of this session has slept until the broker woke it; of these:
    uint64_t claim_sleeps;   // for the outcome of a claim
} dibs_wakeups;

// One thread at a time per session. DIBS_ESIZE, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_session_wakeups(dibs_session* session, dibs_wakeups* wakeups);

// The place of an account, by its name; it stays the same as long as the account is known.
// DIBS_ENAME, DIBS_ENOTFOUND, DIBS_ETORN, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_account(dibs_session* session, const char* name, uint32_t* place);

// What an account may have of the pools that are ordered by account, and what it has had.
typedef struct dibs_share {
    size_t size;
    char name[DIBS_NAME_MAX + 1];
    int32_t configured;   // 0 = claims or sessions name it, and nobody has configured it
    uint32_t held;        // slots, now
    uint32_t waiting;     // claims, now
    uint64_t rate;        // millionths of slots that it may hold all the time: over the sum of all
                          // accounts' the share that it was configured to get
    uint64_t used_ns;     // slots times time for which it has held them: over the sum of all
                          // accounts' the share that it got. Two looks tell that of the time
                          // between them
    uint64_t counted_ns;  // used_ns counts from so long ago
} dibs_share;

// One consistent picture of the account at a place, counted up to the broker's last turn. Places
// begin at 0 and may have gaps (DIBS_ENOTFOUND); beyond the last, DIBS_EARGUMENT. Any thread, as
// long as the session is open. DIBS_ESIZE, DIBS_ENOTFOUND, DIBS_ETORN, DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_account_share(dibs_session* session, uint32_t place, dibs_share* share);

// ---- Claims and what comes back. Threads: one at a time per session.

typedef struct dibs_option {
    const char* key;    // not empty
    const char* value;  // null = ""
} dibs_option;

// What a claim does when no slot is idle.
enum {
    DIBS_BUSY_AS_POOL = 0,  // as its pool is configured
    DIBS_BUSY_WAIT = 1,
    DIBS_BUSY_REJECT = 2,  // ends rejected, DIBS_EBUSY
    DIBS_BUSY_COLD = 3     // ends rejected, DIBS_ECOLD
};

// What the granted lease lets happen when a better claim wants its slot.
enum {
    DIBS_PREEMPT_AS_POOL = 0,  // as its pool is configured (`preempt`): never, if it is not
    DIBS_PREEMPT_AT_ONCE = 1,  // it ends: DIBS_LEASE_ENDED, DIBS_EREVOKED
    DIBS_PREEMPT_GRACE = 2,    // DIBS_LEASE_REVOKING, then it ends
    DIBS_PREEMPT_NEVER = 3
};

// What prolongs a lease that has an interval. Without one it lasts as long as this process.
enum {
    DIBS_KEEP_BY_CALLS = 0,  // dibs_keepalive
    DIBS_KEEP_BY_WORD = 1    // dibs_touch, and dibs_keepalive
};

// What a claim could have of one slot when it was asked for: dibs_offers. A value: copy it freely.
typedef struct dibs_offer {
    char pool[DIBS_NAME_MAX + 1];
    uint32_t slot;   // number within the pool
    uint32_t count;  // of its resources
    uint64_t stamp;  // of what the pool offered then
    char resources[DIBS_RESOURCES_MAX][DIBS_RESOURCE_NAME_MAX + 1];
    uint64_t amounts[DIBS_RESOURCES_MAX];
} dibs_offer;

// Slots of one more pool, which a claim wants too.
typedef struct dibs_pool_units {
    uint32_t pool;
    uint32_t units;  // 0 = 1
} dibs_pool_units;

typedef struct dibs_claim_options {
    size_t size;
    int64_t timeout_ns;   // 0 = now or not at all; DIBS_FOREVER
    int64_t interval_ns;  // of keepalives; the pool may cut it. 0 = the lease lasts as long as
                          // this process, and needs none
    uint32_t units;       // 0 = 1; at most 256; all or none, under one lease
    int32_t when_busy;
    uint8_t key[16];  // all zero = none. One claim per user and key at a time: a second one is
                      // rejected (DIBS_EDUPLICATE) while the first waits or its lease lives
    // For the worker, unread by the broker.
    const void* body;
    size_t body_size;
    const dibs_option* options;
    size_t option_count;
    // Labels that a slot must have, all of them, in a pool ordered by account; elsewhere for the
    // worker like the above; in a counted pool that is not, DIBS_EPAYLOAD by DIBS_KEY_ORDER. 1 to
    // 63 bytes each, compared byte by byte.
    const char* const* labels;
    size_t label_count;
    // What follows matters in pools ordered by account only, `priority` in those ordered by it
    // (docs/scheduling.md).
    // Labels that a slot should have. One that lacks some may be granted all the same: then its
    // worker is told which, and so is `provision` of the completion.
    const char* const* prefer;
    size_t prefer_count;
    int32_t priority;          // 0 = 1; higher is better; more than the user's policy allows is
                               // rejected, DIBS_ENOTALLOWED
    int32_t preempt;           // DIBS_PREEMPT_…
    int64_t preempt_grace_ns;  // of DIBS_PREEMPT_GRACE: between the event and the end of the lease
    const char* account;  // that pays; null = the user's, which policy says. Another one takes an
                          // administrator: DIBS_ENOTALLOWED
    int32_t requeue;      // not 0: when its lease is taken it waits again, in its old place;
                          // else it is forgotten, and comes back only as a new claim
    int32_t keep;         // DIBS_KEEP_…
    // A part of one slot, in a pool whose slots have resources (docs/configuration.md): at least so
    // much of each, as "NAME=AMOUNT", the amount a whole number or one with KiB, MiB, GiB or TiB;
    // at most DIBS_RESOURCES_MAX texts. What is not named is 0. Null: whole slots. The slot with
    // the least room left afterwards is taken. What the lease has of each is an attribute of its
    // slot, "resource.NAME". DIBS_EVECTOR, DIBS_EUNAVAILABLE.
    const char* const* least;
    size_t least_count;
    // And at most so much, where the slot has it; null: as `least`.
    const char* const* most;
    size_t most_count;
    // Accepts this offer, of the pool that is claimed, else DIBS_EARGUMENT, or of one of the set
    // that is: a part of its slot, now or not at all, whatever timeout_ns says; `least` null: all
    // that it says. DIBS_EOFFEREXPIRED if that is not there any more, or claims wait for it; at
    // once, without asking, if it is more than the offer has, or of no pool of the set. It must
    // live until the claim has been submitted.
    const dibs_offer* offer;
    // For who inspects the claim or its lease, unread by the broker: at most DIBS_META_MAX bytes,
    // none of them a control character, else DIBS_EPAYLOAD. Null = none.
    const char* meta;
    // Further pools, DIBS_PARTS_MAX − 1 at most: slots of the pool that is claimed and of each of
    // these at once, all of them or none, under one lease (dibs_lease_part). While it waits it
    // holds nothing. All pools are in order of arrival, of cooperative expiry and without
    // resources, else the claim is rejected, DIBS_ESTATE; none is named twice or is a set:
    // DIBS_EARGUMENT. At most 256 units in all: DIBS_EUNITS. A user's limits count it once for each
    // pool.
    const dibs_pool_units* also;
    size_t also_count;
    // The claim is that of this task of this application of the session's user, in this group of
    // it, if any (null): see "Applications" below. It is held until the application lets it be
    // served. Null: of no application. DIBS_ENAME; else it ends rejected: DIBS_ENOTFOUND (no such
    // application or group), DIBS_EAPPLICATION, DIBS_EENDED (the task has ended), DIBS_EDUPLICATE
    // (it has a claim or a lease; holder.claim names it), DIBS_ESTATE (another pool than the
    // application's), DIBS_ETABLES.
    const char* application;
    const char* task;
    const char* group;
} dibs_claim_options;

// A lease's name. A value: copy it freely. All zero is no lease.
typedef struct dibs_lease {
    uint64_t id;
    uint64_t fence;
    uint64_t session;  // which session was granted it
    uint32_t tag;
    uint32_t units;  // over several pools those of all, one pool's behind the other's
} dibs_lease;

// Who holds what was wanted; claim 0: nobody is named. Of another user's lease only its account
// and age are told, but to administrators: pid is 0, claim DIBS_HIDDEN_CLAIM, and uid the holder's
// only where that is its account, else DIBS_HIDDEN_UID.
#define DIBS_HIDDEN_UID UINT32_MAX
#define DIBS_HIDDEN_CLAIM UINT64_MAX
typedef struct dibs_holder {
    uint32_t uid;
    uint32_t pid;
    int64_t age_ns;  // of its lease
    uint64_t claim;  // its claim's number
} dibs_holder;

enum {
    DIBS_CLAIM_ENDED = 1,     // a claim has its outcome
    DIBS_RESULT = 2,          // an operation's code
    DIBS_LEASE_GRACE = 3,     // a lease has expired: keep it alive or release it before its grace
                              // ends; in a pool of lazy expiry, before its room is wanted
    DIBS_LEASE_ENDED = 4,     // a lease has ended without its holder's doing; `code` says why
    DIBS_LEASE_REVOKING = 5,  // a better claim takes the slot: release it within interval_ns, then
                              // the lease ends; in a pool of strict expiry its holder is killed. A
                              // keepalive does not prolong it, and says what is left
    DIBS_LEASE_REQUEUED = 6   // a lease has ended, `code` says why, and its claim waits again, in
                              // its place and without a timeout: another DIBS_CLAIM_ENDED with the
    // same user_data will come. To cancel it: dibs_cancel with its ticket,
    // or dibs_release of the lease that has ended. Of a program that leaves
    // its completions unread that second end may come alone
};

// Which setting has refused a claim: a key of the broker's configuration, or one of the session.
enum {
    DIBS_KEY_POOLS = 1,          // [[policy]] pools
    DIBS_KEY_PRIORITY_MAX = 2,   // [[policy]] priority_max
    DIBS_KEY_ACCOUNT = 3,        // [[policy]] account: administrators may have another one pay
    DIBS_KEY_LEASES = 4,         // [[policy]] leases: so many are held, or claims wait that may be
    DIBS_KEY_BACKLOG = 5,        // [[policy]] backlog: so many claims wait
    DIBS_KEY_CLAIM_SHARE = 6,    // limits.claims: three quarters are in use, and the rest is for
    DIBS_KEY_LEASE_SHARE = 7,    // users with fewer than refused_at; limits.leases
    DIBS_KEY_LABEL_SHARE = 8,    // limits.label_sets
    DIBS_KEY_PAYLOAD_SHARE = 9,  // limits.arena
    DIBS_KEY_ORDER = 10,         // [[pool]] order: nobody would read the claim's labels
    DIBS_KEY_DOWN_PAYLOAD = 11,  // down_payload of dibs_connect: the claim needs refused_at bytes
                                 // of it for slots and answers, and as many are not free now
    DIBS_KEY_LABEL_SETS = 12,    // [[policy]] label_sets: so many claims, leases and slots are the
                                 // user's, each of which may have a label set
    DIBS_KEY_ARENA = 13,         // [[policy]] arena: the user's payloads and attributes have as
                                 // many bytes with the claim's, or fewer leave too little room
    DIBS_KEY_RESOURCES = 14,     // [[pool]] resources: refused_at is the place, in the order of
                              // their names, of the first of which a slot has less than is wanted
    DIBS_KEY_SLOT_SHARE = 15,  // limits.slots, of which a part takes one: as DIBS_KEY_CLAIM_SHARE
    DIBS_KEY_TASK_SHARE = 16   // limits.tasks: half are in use, and a user with refused_at or more,
                               // a quarter of all, adds none
};

typedef struct dibs_completion {
    uint64_t user_data;  // of the operation; of a lease's event its claim's
    int32_t kind;
    int32_t outcome;
    int32_t code;            // 0, DIBS_ALREADY_ENDED or negative
    uint32_t provision;      // granted: bit i = a slot of it lacks prefer[i]
    uint64_t claim;          // number of the claim: order of arrival at the broker, from 1
    dibs_lease lease;        // granted, or the one whose event or result this is
    int64_t interval_ns;     // granted: by a claim or a keepalive; DIBS_LEASE_GRACE and
                             // DIBS_LEASE_REVOKING: what is left, DIBS_FOREVER = no end is set
    int64_t retry_after_ns;  // rejected: worth trying again then; 0 = not said
    int64_t worker_code;     // DIBS_EREFUSED
    dibs_holder holder;      // expired, rejected, DIBS_ENOTHOLDER
    uint64_t slot;           // announced
    uint64_t round;          // of the announced slot
    uint32_t refused_by;     // not allowed, limit, payload, no room: DIBS_KEY_…; 0 = not said
    uint32_t refused_at;     // that key's number, where it has one
    uint32_t pool;           // of a claim's end: its pool; of a claim of a set the member that
                             // granted it, or whose answer this is
    uint32_t reserved;
} dibs_completion;

// In a pool with a quantum a claim that asks for one slot and nothing else (a timeout and when_busy
// apart) takes a lease again that this session has released and the broker has not asked back: in
// some ten nanoseconds, without the broker.
//
// Claims and waits for the outcome: 0, and `end` says which. At the timeout, should the broker not
// say so itself within another 20 ms, the library ends the claim as expired; should it be granted
// later, it is released. Completions of other operations that arrive meanwhile are kept for
// dibs_reap; should they leave no room to read the outcome (DIBS_EUNREAD), the claim is ended in
// the same way. options null: one unit, for ever, bound to this process. DIBS_EARGUMENT,
// DIBS_ESIZE, DIBS_EPOOL, DIBS_EUNITS, DIBS_ENEGATIVE, DIBS_EPAYLOAD, DIBS_ENAME (account),
// DIBS_EOPTIONS, DIBS_ELABELS, DIBS_EFULL, DIBS_EUNREAD, DIBS_ELIMIT, DIBS_ESESSION,
// DIBS_EBROKERLOST, DIBS_EFORK.
//
// Of a pool set (DIBS_EPOOL: it is no more; DIBS_ETORN): asks its members one after the other, in
// the order of the set, for a slot now; where a worker has to confirm, it is waited for. If none
// grants one, and the claim may wait, it waits in each member that has answered DIBS_EBUSY, as
// a claim of that pool that came now: a place in each backlog, which counts against this session's
// and this user's limits. The first grant is the outcome; the other claims are cancelled, and what
// one of them is granted meanwhile is released at once. Where the set changes meanwhile, the claim
// leaves the pools that are no longer members and waits in those that are new, within 100 ms. What
// `end` is otherwise:
//   rejected   no member is left to wait in. At first: the answer of the first member that was
//              busy, else of the last one (which drains, is not for this user, has no such
//              resource …); later: the last rejection that came (a member drains while the claim
//              waits there, or its when_busy is not to wait). DIBS_EPOOL: the set is no more, or
//              has no member that is there
//   expired    the timeout has passed; `holder` is of the first member that was busy
//   cancelled  one of the claims was cancelled from outside (dibs cancel)
// A claim with a key waits in one member alone, the first that was busy, because a key has one
// claim at a time. A claim that brings a payload writes it once for each member: DIBS_EFULL where
// up_payload has no room, or submission_entries no line, for any of them; with room for some it
// waits in those.
DIBS_API int dibs_claim(dibs_session* session,
                        uint32_t pool,
                        const dibs_claim_options* options,
                        dibs_completion* end);

// ---- Many operations at a time. Threads: one at a time per session.

typedef struct dibs_announce_options dibs_announce_options;

enum {
    DIBS_OP_CLAIM = 1,      // pool, claim; sets ticket
    DIBS_OP_CANCEL = 2,     // ticket
    DIBS_OP_RELEASE = 3,    // lease
    DIBS_OP_FAIL = 4,       // lease
    DIBS_OP_KEEPALIVE = 5,  // lease, interval_ns
    DIBS_OP_ANNOUNCE = 6,   // pool, announce
    DIBS_OP_READY = 7,      // slot, round
    DIBS_OP_CONFIRM = 8,    // slot, round, answer
    DIBS_OP_REFUSE = 9,     // slot, round, worker_code, DIBS_TRY_AGAIN
    DIBS_OP_DONE = 10,      // slot, round, answer, DIBS_THEN_READY
    DIBS_OP_WITHDRAW = 11,  // slot
    DIBS_OP_PROTECT = 12    // slot, DIBS_ON
};

enum {
    DIBS_QUIET = 1,  // not of claims: nobody is told how it ended, no completion comes
    DIBS_TRY_AGAIN = 2,
    DIBS_THEN_READY = 4,
    DIBS_ON = 8
};

typedef struct dibs_op {
    size_t size;  // of each element: of an array that of the first counts
    int32_t kind;
    uint32_t flags;
    uint64_t user_data;
    uint64_t ticket;  // names a claim that has no outcome yet
    uint32_t pool;
    uint32_t reserved;
    const dibs_claim_options* claim;
    const dibs_announce_options* announce;
    const dibs_lease* lease;
    int64_t interval_ns;
    uint64_t slot;
    uint64_t round;
    int64_t worker_code;
    const void* answer;
    size_t answer_size;
} dibs_op;

// Submits operations in order and returns how many were accepted; the first refused one stops it.
// If that is the very first, its code is returned: those of dibs_claim, DIBS_ENOTFOUND (no claim
// of that ticket), DIBS_ALREADY_ENDED never: that is a result. Every accepted operation that is
// not quiet gets exactly one completion.
DIBS_API int dibs_submit(dibs_session* session, dibs_op* ops, size_t count);

// Takes up to `count` completions and returns how many; waits until there is one, at most
// timeout_ns, so 0 is returned when none came in time. Leases' events come here too.
// DIBS_EARGUMENT, DIBS_ENEGATIVE, DIBS_EFORK; and, once nothing is left to take, DIBS_ESESSION,
// DIBS_EBROKERLOST: every claim and operation without an answer has had a completion then.
DIBS_API int dibs_reap(dibs_session* session,
                       dibs_completion* completions,
                       size_t count,
                       int64_t timeout_ns);

// Cancels the claim of a ticket. Its outcome comes as its completion (granted, if the grant was
// faster: then its lease has been ended too). 0, DIBS_ENOTFOUND: it has its outcome already.
// DIBS_EFULL, DIBS_ESESSION, DIBS_EBROKERLOST, DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_cancel(dibs_session* session, uint64_t ticket);

// Why a claim waits.
enum {
    DIBS_WAIT_NONE = 0,
    DIBS_WAIT_BEHIND = 1,  // others stand before it; `obstacle` says why the first of them waits
    DIBS_WAIT_HELD = 2,    // every slot is held
    DIBS_WAIT_UNITS = 3,   // fewer slots are idle than it wants
    DIBS_WAIT_CONFIRMING = 4,   // its slots are chosen, and their workers have not all answered
    DIBS_WAIT_UNCONFIRMED = 5,  // as many workers are being asked as the pool allows
    DIBS_WAIT_LEASES = 6,       // the broker's lease rows are used up
    DIBS_WAIT_RECOVERING = 7,   // nothing is held, and no slot is ready again
    DIBS_WAIT_NO_SLOTS = 8,     // the pool has none: no worker has announced one
    DIBS_WAIT_NEXT_TURN = 9,    // it is about to be granted
    // Pools ordered by account.
    DIBS_WAIT_PROMISED = 10,  // a slot has been taken from another for it; left_ns until it comes
    DIBS_WAIT_LEFT_OUT = 11,  // its account may have nothing now, and takes nothing for free
    DIBS_WAIT_LABELS = 12,    // no slot has its labels; `label` is on none of them
    DIBS_WAIT_LABEL_LIMIT = 13,  // its account holds label_held slots with `label`, of label_limit
    DIBS_WAIT_HELD_BACK = 14,    // the idle slots are kept together for a claim of several units
    // Any pool.
    DIBS_WAIT_DRAINED = 15,  // an administrator has drained every slot
    // Pools ordered by account.
    DIBS_WAIT_OVER_LIMIT = 16,  // it wants more slots with `label` than its account's label_limit
    // Pools ordered by priority.
    DIBS_WAIT_ON_HOLD = 17,  // its priority is 0: it is not in line until that changes
    // Pools whose slots have resources.
    DIBS_WAIT_LACKS = 18,      // first in line; no slot has as much of a resource free
    DIBS_WAIT_SLOT_ROWS = 19,  // first in line; the broker's slot rows are used up
    // Elastic pools: why there are too few workers for the first in line.
    DIBS_WAIT_NO_PROVISIONER = 20,  // no type of worker has a provisioner
    DIBS_WAIT_BEING_MADE = 21,      // some are ordered, and not there yet
    DIBS_WAIT_AT_QUOTA = 22,        // there may be no more, by workers_max or a provider's quota
    DIBS_WAIT_PAUSING = 23,         // a pause after failed starts, at capacity, or after others
    DIBS_WAIT_LIMIT = 24,           // no more may run for now, after an overload or at quota
    // Pools in order of arrival.
    DIBS_WAIT_OTHER_POOLS = 25,  // what it lacks is held back for a claim over several pools; or it
                                 // is one, and another of its pools keeps it waiting
    // Of tasks of applications, which are held by them; and of who waits behind a gang.
    DIBS_WAIT_GANG = 26,         // its application reserves its gang, which is not whole
    DIBS_WAIT_NO_MANAGER = 27,   // its application has no manager, or recovers
    DIBS_WAIT_PLACEHOLDER = 28,  // no placeholder of its group is free
    DIBS_WAIT_BEHIND_GANG = 29   // what it lacks is reserved for the gang of an application
};

// Why a claim is of its class.
enum {
    DIBS_CLASS_NONE = 0,        // its pool has no classes
    DIBS_CLASS_BALANCE = 1,     // the first class of which its account has anything
    DIBS_CLASS_NO_ACCOUNT = 2,  // free: no account, or one that is not configured
    DIBS_CLASS_NO_BALANCE = 3,  // free: its account has nothing of any class
    DIBS_CLASS_FANOUT = 4       // free: its account holds as many such slots as it may
};
enum { DIBS_FREE_CLASS = 5 };

// Why a claim does not take another's slot.
enum {
    DIBS_PREEMPT_NONE = 0,          // does not arise
    DIBS_PREEMPT_FOR_FREE = 1,      // claims of the free class do not
    DIBS_PREEMPT_DISABLED = 2,      // its pool does not
    DIBS_PREEMPT_UNITS = 3,         // claims of several units do not
    DIBS_PREEMPT_BANNED = 4,        // its account itself runs something of a worse class
    DIBS_PREEMPT_NO_CANDIDATE = 5,  // nothing that it could take runs at a worse class
    DIBS_PREEMPT_BALANCE = 6,       // its account has no more than the cheapest of these has cost
    DIBS_PREEMPT_NEXT_TURN = 7      // it will
};

typedef struct dibs_explanation {
    size_t size;
    int32_t reason;      // DIBS_WAIT_…
    int32_t obstacle;    // the same, of the first in line
    uint32_t position;   // 1 = first in line; 0 = its workers are being asked
    uint32_t waiting;    // claims in line
    uint32_t units;      // that it wants
    uint32_t confirmed;  // of them, by their workers
    uint32_t idle;       // slots of the pool
    uint32_t slots;
    int64_t waited_ns;
    int64_t left_ns;     // until its timeout, or until its workers must have answered; DIBS_FOREVER
    dibs_holder holder;  // who has held a slot of the pool for longest
    uint64_t claim;      // its number, for `dibs explain`

    // Pools ordered by account. There `position` is in the order in which the pool serves: class,
    // more labels first, arrival; `obstacle` is what keeps this claim apart from those before it;
    // `holder` has held one of the slots with its labels for longest.
    int32_t account_class;  // 0, the best, to 4; DIBS_FREE_CLASS
    int32_t class_reason;   // DIBS_CLASS_…: why that class; DIBS_CLASS_NONE: no such pool
    int32_t preempt;        // DIBS_PREEMPT_…: why it does not take another's slot
    uint32_t better;        // of those before it: of a better class
    uint32_t fitting;       // slots with its labels
    uint32_t fanout_max;    // DIBS_CLASS_FANOUT: slots that its account may hold with these labels,
    uint32_t fanout_held;   // and those that it does
    uint32_t label_limit;   // DIBS_WAIT_LABEL_LIMIT
    uint32_t label_held;
    char account[64];  // who pays
    char label[64];
} dibs_explanation;

// Asks the broker why the claim of a ticket waits, over a connection of its own; takes some 100 µs,
// at most 5 s. DIBS_ENOTFOUND: it does not wait any more. DIBS_ESIZE, DIBS_ELIMIT (too many ask at
// once), DIBS_ENOTALLOWED, DIBS_ENOBROKER, DIBS_EVERSION, DIBS_EHANDSHAKE, DIBS_ESYSTEM,
// DIBS_ESESSION, DIBS_EBROKERLOST, DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_explain(dibs_session* session, uint64_t ticket, dibs_explanation* why);

// ---- Event loops. Threads: one at a time per session, but for dibs_fd.
//
//     for (;;) {
//         if (dibs_arm(session) == DIBS_OK) poll(… dibs_fd(session), POLLIN …, ≤ 100 ms …);
//         dibs_dispatch(session);
//         … dibs_reap(session, completions, count, DIBS_NOWAIT) …
//     }
//
// Poll at most 100 ms at a time while anything is outstanding.

// The one descriptor: readable when the broker has something, or is gone. It belongs to the
// session: do not read, write or close it. Any thread. DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_fd(dibs_session* session);
// Asks the broker to make the descriptor readable. DIBS_EREADY: not armed, dispatch first.
// DIBS_ESESSION, DIBS_EBROKERLOST, DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_arm(dibs_session* session);
// Takes in what has come and returns how many completions and assignments wait to be taken. Never
// blocks. DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_dispatch(dibs_session* session);

// ---- Leases. Where a wait_ns is asked for: DIBS_NOWAIT submits and returns 0, and nobody is told
//      how it ended; else the broker's code is awaited and returned, DIBS_ETIMEDOUT if it does not
//      come in time, DIBS_EUNREAD if unread completions leave no room to read it: what was asked
//      stands then, too. What the session knows itself is returned in either case. All of them may
//      return DIBS_EARGUMENT, DIBS_EFORK, DIBS_ESESSION, DIBS_EBROKERLOST, DIBS_ENEGATIVE,
//      DIBS_EFULL, DIBS_EUNREAD. Threads: one at a time per session.

// Gives back what is held. In a pool with a quantum the lease of such a claim is parked: put aside
// for this session's next one, and free for everybody, because the broker takes it back when
// another claim needs it, or some seconds after its last use. Its fence grows with each use: a
// resource that compares fences compares those of one slot; two slots may show the same.
// DIBS_ALREADY_ENDED, DIBS_ESTALE, DIBS_ENOTFOUND, DIBS_ENOTHOLDER. A
// lease of another session is always asked for at the broker, for at most 5 s if not waited for.
DIBS_API int dibs_release(dibs_session* session, const dibs_lease* lease, int64_t wait_ns);
// The same; what is held is broken, and its worker must say ready before it is granted again.
DIBS_API int dibs_fail(dibs_session* session, const dibs_lease* lease, int64_t wait_ns);

// Prolongs the lease to interval_ns from now (0 = as granted; the pool may cut it). granted_ns may
// be null; it is set if the result was awaited. A lease in its grace lives again. Codes as of
// dibs_release.
DIBS_API int dibs_keepalive(dibs_session* session,
                            const dibs_lease* lease,
                            int64_t interval_ns,
                            int64_t wait_ns,
                            int64_t* granted_ns);

// Prolongs a lease that was claimed with DIBS_KEEP_BY_WORD (or adopted from one that was), without
// asking: it adds one to the lease's word in this session's memory, in some ten nanoseconds and
// without a system call, however often. The broker reads the word when the lease is about to
// expire. If it has changed since the last look, the lease goes on for one interval, as granted,
// from its old expiry: so a lease lapses one to two intervals after its last touch, less the up to
// 10 ms that the broker looks late (intervals of less than 20 ms are for calls).
//
// DIBS_OK says that it was touched. What has expired is not touched alive: DIBS_EEXPIRED, once this
// is known, while its grace runs or its room is not wanted yet, and dibs_keepalive revives it.
// DIBS_EREVOKED: a better claim takes the slot. DIBS_ALREADY_ENDED: it has ended, and its slot may
// be another's. DIBS_ESTATE: this lease is kept by calls, or needs neither. DIBS_ENOTFOUND (another
// session's), DIBS_ESTALE. It learns of the session's end as dibs_keepalive does. After fork a
// child touches nothing: DIBS_EFORK.
//
//     want.interval_ns = 2 * DIBS_SECOND;  // a loop that hangs loses the lease in 2 to 4 seconds
//     want.keep = DIBS_KEEP_BY_WORD;
//     int code = dibs_claim(session, pool, &want, &end);
//     while (code == DIBS_OK && end.outcome == DIBS_GRANTED && work_is_left()) {
//         do_some_work();
//         code = dibs_touch(session, &end.lease);
//     }
DIBS_API int dibs_touch(dibs_session* session, const dibs_lease* lease);

// Takes over a lease of another session of this user, by the id and fence that its holder has
// passed on, and waits for the broker; wait_ns > 0. From then on its life is bound to this session,
// and keepalives are this session's to send; the adoption counts as one. `lease` is its name here,
// with the id, fence and units of the grant, whose attributes and answers come along; one that is
// kept by its word still is, by this session's. A session
// that gives up waiting (DIBS_ETIMEDOUT) releases what it is given late.
//
// The former holder reaps DIBS_LEASE_ENDED, DIBS_EADOPTED; what it still says of the lease is
// answered DIBS_ALREADY_ENDED or, from a session that never held it, DIBS_ENOTHOLDER. It is there
// until then: if its process dies first, the lease has ended and there is nothing to adopt. So a
// wrapper that claims for a command lets its child adopt, and leaves when the child has said so:
//
//     claim ─► fork ─► child: dibs_connect, dibs_adopt, tell the parent, exec
//                      parent: wait to be told (or for the child's end: the lease is still its own)
//
// A session outlives the exec of its process; a child of that process does not have it.
// DIBS_EENDED (it has ended), DIBS_ENOTFOUND (it never was), DIBS_ENOTALLOWED (another user's),
// DIBS_ESTALE (another fence), DIBS_ESTATE (this session's already), DIBS_EEXPIRED (its holder is
// being killed), DIBS_EUNKILLABLE, DIBS_ENOROOM, DIBS_ELIMIT, DIBS_ETIMEDOUT.
DIBS_API int dibs_adopt(
    dibs_session* session, uint64_t id, uint64_t fence, int64_t wait_ns, dibs_lease* lease);

// Who holds a lease that the last DIBS_ENOTHOLDER was about; all zero: there was none.
// DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_last_holder(dibs_session* session, dibs_holder* holder);

// Accessors: no system call but of dibs_lease_remaining, which reads the clock. They know leases of
// this session only: DIBS_ENOTFOUND for others; DIBS_ALREADY_ENDED once it was given back;
// DIBS_ESTALE, DIBS_EARGUMENT, DIBS_EFORK. What they return by pointer stays until the lease ends.
// Of a lease that ended without its holder's doing, all of it may be read until the session claims,
// adopts or announces; if dibs_done has brought another answer, that one is its worker's, beside
// the first, to which a pointer stays good.

enum { DIBS_LIVE = 0, DIBS_IN_GRACE = 1, DIBS_ENDED = 2 };
// Returns one of the three; of a lease of this session that it does not know any more, DIBS_ENDED.
// `code` (may be null) says why it has ended, or is about to: DIBS_EREVOKED in grace means that a
// better claim takes the slot. DIBS_ALREADY_ENDED: it has ended, and the session has forgotten why.
DIBS_API int dibs_lease_state(dibs_session* session, const dibs_lease* lease, int* code);
// Sets what is left of the interval, or of a revocation's grace: ≥ 0, DIBS_FOREVER if bound to this
// process. Counted from when the library read the grant, or sent the keepalive, or the lease was
// touched; the broker counts from the grant itself, and may give a touched lease more.
DIBS_API int dibs_lease_remaining(dibs_session* session, const dibs_lease* lease, int64_t* left_ns);

typedef struct dibs_slot {
    uint32_t number;  // within its pool; of a counted pool the index from 0
    uint32_t attributes_size;
    const char* attributes;  // "key=value", each ended by a zero byte
    const void* answer;      // of its worker, opaque; null = none
    size_t answer_size;
} dibs_slot;

// The slot of unit 0 .. units − 1. DIBS_EUNITS, DIBS_ENOVALUE (its room cannot be read). Of a lease
// that has ended, too, until the session claims again; but once the broker has been killed after
// that end, what is read may be another's.
DIBS_API int dibs_lease_slot(dibs_session* session,
                             const dibs_lease* lease,
                             uint32_t unit,
                             dibs_slot* slot);
// One attribute of that slot. DIBS_EUNITS, DIBS_ENOVALUE (`value` is left as it is).
DIBS_API int dibs_lease_attribute(dibs_session* session,
                                  const dibs_lease* lease,
                                  uint32_t unit,
                                  const char* key,
                                  const char** value);
// Its worker's answer. DIBS_EUNITS, DIBS_ENOVALUE.
DIBS_API int dibs_lease_answer(dibs_session* session,
                               const dibs_lease* lease,
                               uint32_t unit,
                               const void** answer,
                               size_t* answer_size);

// What a lease has of one pool. The first part's id and fence are the lease's own; what writes to
// what a further part guards shows that part's fence.
typedef struct dibs_part {
    uint32_t pool;
    uint32_t units;
    uint32_t first_unit;  // dibs_lease_slot has its slots from there on
    uint64_t id;
    uint64_t fence;
} dibs_part;

// The part at `index`, in the order in which the claim named the pools; a lease over one pool has
// one. DIBS_EUNITS (there is none), DIBS_ENOVALUE (its room cannot be read); else as above.
DIBS_API int dibs_lease_part(dibs_session* session,
                             const dibs_lease* lease,
                             uint32_t index,
                             dibs_part* part);

// ---- When to call dibs_keepalive: for programs that do not touch, and have a loop of their own.
//      Arithmetic alone: no session, no clock, no state but what is passed. Threads: any.

enum {
    DIBS_KEEPALIVE_WAIT = 1,  // wait so long, then call
    DIBS_KEEPALIVE_LOST = 2,  // no whole call fits before the lease expires
    DIBS_KEEPALIVE_END = 3    // no call can help: the lease is not there, or the session is not
};

// What to ask for as interval_ns, of a claim and of each keepalive, where nothing speaks against
// it.
#define DIBS_KEEPALIVE_INTERVAL (120 * DIBS_SECOND)

typedef struct dibs_keepalive_policy {
    size_t size;
    // 0 = the default, each.
    int64_t margin_ns;     // 30 s: so long before the expiry it is prolonged
    int64_t wait_most_ns;  // 5 min: but it never waits longer for that
    int64_t call_ns;       // 10 s: what one call may take, as wait_ns of dibs_keepalive
    int64_t retry_ns;      // 2 s: the first wait after a call that has failed; the next one is half
                           // as long again
    int64_t retry_most_ns;  // 30 s: and so on up to this
    int64_t pause_ns;       // 1 s: no two calls are closer
    // Kept by the function; 0 at first.
    uint32_t failures;  // calls in a row
    uint32_t reserved;
} dibs_keepalive_policy;

// What to do next: returns a DIBS_KEEPALIVE_…, and sets wait_ns (0 unless it is to be waited).
// `code`: what the last dibs_keepalive returned; DIBS_OK of a lease that has just been granted.
// `left_ns`: what is left of the lease by now, as dibs_lease_remaining says. `random`: any 64 bits,
// others each time, so that not all holders try again at once.
//
//   DIBS_OK                      wait until the margin begins, at most wait_most_ns and at least
//                                pause_ns
//   DIBS_ETIMEDOUT, DIBS_EFULL,  wait retry_ns and so on, less up to a fifth, but no longer than
//   DIBS_EUNREAD                 until the last call that fits; none fits: it is lost
//   any other                    the end
//
// An interval of less than pause_ns and call_ns together takes smaller ones than the defaults.
//
//     for (int kept = DIBS_OK; dibs_lease_remaining(session, &lease, &left_ns) == DIBS_OK;) {
//         next = dibs_keepalive_next(&policy, kept, left_ns, random_bits(), &wait_ns);
//         if (next != DIBS_KEEPALIVE_WAIT) break;
//         wait_for(wait_ns);
//         kept = dibs_keepalive(session, &lease, DIBS_KEEPALIVE_INTERVAL, 10 * DIBS_SECOND, NULL);
//     }
//
// DIBS_ESIZE, DIBS_ENEGATIVE, DIBS_EARGUMENT (policy or wait_ns is null).
DIBS_API int dibs_keepalive_next(
    dibs_keepalive_policy* policy, int code, int64_t left_ns, uint64_t random, int64_t* wait_ns);

// ---- Workers. A worker announces slots, then takes assignments and speaks of them by slot and
//      round. wait_ns, and the codes that all may return, as for leases; besides DIBS_ENOTFOUND,
//      DIBS_ENOTHOLDER, DIBS_ESTALE (that round is over), DIBS_ESTATE.
//      Threads: one at a time per session.

struct dibs_announce_options {
    size_t size;
    const char* name;  // null = none; else unique in its pool. The same again replaces labels and
                       // attributes, and needs no more room
    const char* const* labels;
    size_t label_count;
    const dibs_option* attributes;  // travel with every grant
    size_t attribute_count;
    uint64_t worker_tag;   // the worker's own name for it; comes back with assignments
    int32_t is_protected;  // not to be granted until unprotected
    int32_t ready;         // idle at once
    // In a pool whose slots have resources: what this one has, "NAME=AMOUNT" each (a whole number,
    // or a size such as "32GiB"); 0 of what is not named. Null: what it had before, at first what
    // the pool says. Of a slot of which parts are leased it is no less than these have:
    // DIBS_ESTATE.
    const char* const* resources;
    size_t resource_count;  // at most DIBS_RESOURCES_MAX
    // How many parts of it there may be at a time, at most DIBS_UNITS_MAX, else DIBS_EVECTOR; 0: it
    // is leased as a whole alone. Each takes as much of the session's credit as a slot does.
    uint32_t parts;
    uint32_t reserved;
    // The order that this worker was made for, the body of its DIBS_CREATE; null: none. One
    // that is not there (any more), or another user's, makes it an ordinary worker. DIBS_EARGUMENT:
    // it is no order.
    const char* order;
};

// Offers a slot, waits for the broker and sets its id. wait_ns > 0. A session offers at most 3/16
// as many slots as it has more completion_entries than submission_entries: 24 by default.
// DIBS_EPOOL, DIBS_ENAME, DIBS_EOPTIONS, DIBS_ELABELS, DIBS_EVECTOR, DIBS_EPAYLOAD, DIBS_ENOROOM,
// DIBS_ENAMEINUSE, DIBS_EDRAINING, DIBS_ETABLES, DIBS_ENOTALLOWED, DIBS_ETIMEDOUT. After
// DIBS_ETIMEDOUT, announce it again by the same name to learn its id.
DIBS_API int dibs_announce(dibs_session* session,
                           uint32_t pool,
                           const dibs_announce_options* options,
                           int64_t wait_ns,
                           uint64_t* slot);

enum {
    DIBS_ASSIGN = 1,    // the slot is chosen for a claim: confirm or refuse
    DIBS_REVOKE = 2,    // it is no longer held: clean it, then say ready
    DIBS_REVOKING = 3,  // a better claim takes it: what runs there has left_ns to end in. Say done
                        // if it ends earlier; else DIBS_REVOKE follows. There is nothing to confirm
    DIBS_CREATE = 4,    // to a provisioner: make a worker of the type for this order. `body` is its
                        // text, with its end, until the next call; a secret of its user's
    DIBS_STOP = 5       // to a provisioner: stop the worker that was made for this order
};

typedef struct dibs_assignment {
    int32_t kind;
    uint32_t number;  // of the slot, within its pool
    uint64_t slot;
    uint64_t round;  // which assignment: name it in every word about it
    uint64_t worker_tag;
    uint64_t claim;  // number of the claim
    // What the claim brought; stays until the worker's next word about this slot.
    const void* body;
    size_t body_size;
    size_t option_count;
    size_t label_count;
    dibs_option options[DIBS_OPTIONS_MAX];
    const char* labels[DIBS_LABELS_MAX];
    // Labels that the claim prefers: where bit i of `provision` is set the slot lacks prefer[i],
    // and its worker provides what that means before it confirms.
    size_t prefer_count;
    const char* prefer[DIBS_LABELS_MAX];
    uint32_t provision;
    uint32_t width;   // DIBS_CREATE: claims for so many more workers of that size wait
    int64_t left_ns;  // DIBS_REVOKING
    // Of a part of a slot: what it has of each resource, "NAME=AMOUNT". Then `slot` is the part's
    // id, which every word about it names, and `number` and worker_tag are its slot's. It is gone
    // when it would be ready; the slot is asked for one part after the other, and serves them side
    // by side. Of DIBS_CREATE, where the pool's slots have resources: what its worker is to have at
    // least, in all.
    size_t resource_count;
    const char* resources[DIBS_RESOURCES_MAX];
} dibs_assignment;

// The next assignment, revocation or word of one to come, or order; waits at most timeout_ns.
// DIBS_ETIMEDOUT:
// none came. DIBS_EUNREAD: reap first. DIBS_EPAYLOAD: one came, slot and round are set, but its
// payload cannot be read: refuse it.
DIBS_API int dibs_next_assignment(dibs_session* session,
                                  int64_t timeout_ns,
                                  dibs_assignment* assignment);

// The slot is clean and may be granted.
DIBS_API int dibs_ready(dibs_session* session, uint64_t slot, uint64_t round, int64_t wait_ns);
// The assignment is taken; with the last of its claim's the lease begins. The answer goes to the
// holder; at most the pool's answer_max bytes, else DIBS_EPAYLOAD: at once of a slot that this
// session offers, and then nothing is said; by the broker of a part, and of one that it has
// withdrawn, so only where wait_ns is not 0. Too late for a claim that has ended, or waits again,
// it is DIBS_OK as well and releases the slot; DIBS_REVOKE tells of that, unless the pool says
// release_is_ready, where the slot may be granted again at once.
DIBS_API int dibs_confirm(dibs_session* session,
                          uint64_t slot,
                          uint64_t round,
                          const void* answer,
                          size_t answer_size,
                          int64_t wait_ns);
// The assignment is not taken. try_again: the claim waits on; else it ends rejected with `code`.
DIBS_API int dibs_refuse(dibs_session* session,
                         uint64_t slot,
                         uint64_t round,
                         int64_t code,
                         int try_again,
                         int64_t wait_ns);
// The work is done: the lease ends, and its holder may read the answer, of at most answer_max bytes
// as above. then_ready: and the slot may be granted at once.
DIBS_API int dibs_done(dibs_session* session,
                       uint64_t slot,
                       uint64_t round,
                       const void* answer,
                       size_t answer_size,
                       int then_ready,
                       int64_t wait_ns);
// The slot is offered no longer; a lease on it runs on, then it is gone.
DIBS_API int dibs_withdraw(dibs_session* session, uint64_t slot, int64_t wait_ns);
// on: not to be granted until it is taken back; a present lease runs on. Of a slot that has been
// assigned, dibs_confirm takes it back.
DIBS_API int dibs_protect(dibs_session* session, uint64_t slot, int on, int64_t wait_ns);

// ---- Provisioners make and stop the workers of elastic pools (workers_max), as many as claims
//      need. One session is the provisioner of a type of workers; it takes orders with
//      dibs_next_assignment and answers them:
//
//     dibs_provide(session, pool, "small", 1, 1, DIBS_SECOND);
//     while (dibs_next_assignment(session, DIBS_FOREVER, &order) == DIBS_OK) {
//         if (order.kind == DIBS_CREATE) {
//             const int made = start_worker(order.body) == 0 ? DIBS_CREATED : DIBS_NOT_STARTED;
//             dibs_provisioned(session, order.slot, made, DIBS_SCOPE_TYPE, NULL, DIBS_SECOND);
//         } else if (order.kind == DIBS_STOP) {
//             stop_worker(order.slot);
//         }
//     }
//
//      An order's id is `slot`, and becomes the id of the slot that its worker announces: by
//      dibs_announce with its text, within boot_timeout, by a session of the provisioner's
//      user. A worker that has been announced counts as created, whatever the answer. When the
//      provisioner's session ends its workers stay; the next one gets the orders that it had not
//      answered, with texts of their own; the others fail at boot_timeout if no worker comes.
//      wait_ns and the codes that all may return as for workers. Threads: one at a time per
//      session.

// Takes the role of provisioner of a type (on), or gives it up. `tag`, at most 65535, comes back as
// worker_tag with the type's orders. A user may provide where its [[policy]] says so (provisions).
// DIBS_EPOOL, DIBS_ENAME (type), DIBS_ENOTFOUND (no such type), DIBS_ENAMEINUSE (another session
// has the role), DIBS_ENOTHOLDER (to give up), DIBS_ENOROOM (the session has not
// 2 × workers_max more completion_entries than submission_entries), DIBS_ENOTALLOWED.
DIBS_API int dibs_provide(
    dibs_session* session, uint32_t pool, const char* type, uint32_t tag, int on, int64_t wait_ns);

// What became of an order.
enum {
    DIBS_CREATED = 0,      // its worker is starting
    DIBS_STOPPED = 1,      // it will not come, or has ended
    DIBS_AT_QUOTA = 2,     // as many workers as there may be; the next is asked for when one ends
    DIBS_AT_CAPACITY = 3,  // none to be had now, of what the scope names
    DIBS_OVERLOADED = 4,   // too many orders: fewer are asked for, for a while
    DIBS_NOT_STARTED = 5   // tried and failed: again after a pause, 100 ms to 30 s
};

// Of DIBS_AT_CAPACITY.
enum {
    DIBS_SCOPE_POOL = 0,   // all types of the pool
    DIBS_SCOPE_GROUP = 1,  // of `quota_group`; null: of the order's type
    DIBS_SCOPE_TYPE = 2    // of the same provider_type, and preemptible or not, as the order's type
};

// Answers an order. DIBS_ENOTFOUND: it is over; nothing changed. DIBS_ENOTHOLDER: not of a type
// that this session provides. DIBS_ESTATE: at quota or capacity for a worker that has come.
DIBS_API int dibs_provisioned(dibs_session* session,
                              uint64_t order,
                              int answer,
                              int scope,
                              const char* quota_group,
                              int64_t wait_ns);

// ---- Applications: groups of tasks with one life. An APPLICATION has a name, of its user, and a
//      pool; its manager is the session that added or adopted it. Its TASKS are scheduled by claims
//      that name them (dibs_claim_options.application), of any session of the user. Its GROUPS, if
//      it has any, are its GANG: they hold as many slots as they have members, as PLACEHOLDERS,
//      before any task of it runs. Each task of a group then takes one of these. docs/gangs.md is
//      the guide.
//
//     dibs_app_group group = {0};
//     group.name = "worker";
//     group.members = 2;
//     dibs_app app = {0};
//     app.size = sizeof app;
//     app.name = "training";
//     app.pool = pool;
//     app.groups = &group;
//     app.group_count = 1;
//     uint64_t number = 0;
//     int code = dibs_app_add(session, &app, DIBS_SECOND, &number);
//     dibs_app_event event = {0};
//     event.size = sizeof event;
//     while (code == DIBS_OK && event.state != DIBS_APP_RUNNING)
//         code = dibs_app_next(session, &event, 60 * DIBS_SECOND);
//     dibs_claim_options want = {0};  // in as many processes as there are members
//     want.size = sizeof want;
//     want.timeout_ns = DIBS_FOREVER;
//     want.application = "training";
//     want.task = "rank-0";
//     want.group = "worker";
//     dibs_completion end = {0};
//     if (code == DIBS_OK) code = dibs_claim(session, pool, &want, &end);
//     if (code == DIBS_OK) code = dibs_app_complete(session, "training", DIBS_SECOND);
//
//      An application outlives its manager's session for manager_timeout_ns: within it another
//      session of its user adopts it, else it fails (DIBS_EMANAGERGONE). Its name stays taken when
//      it has ended, until it is removed. wait_ns as for leases; codes that all may return:
//      DIBS_EARGUMENT, DIBS_EFORK, DIBS_ESESSION, DIBS_EBROKERLOST, DIBS_ENEGATIVE, DIBS_ENAME,
//      DIBS_EFULL, DIBS_EUNREAD, DIBS_ETIMEDOUT (what was asked stands, too), DIBS_ENOTFOUND (no
//      such application of this user), DIBS_EMALFORMED. Names have 1 to 63 bytes, none of them a
//      control character; what is passed is read during the call only. Threads: one at a time per
//      session, but for dibs_app_state_name: any.

#define DIBS_APP_GROUPS_MAX 32  // of one application

// What happens at the time-out of a gang that is not whole.
enum {
    DIBS_GANG_SOFT = 0,  // it is given up, and its tasks are served as slots come
    DIBS_GANG_HARD = 1   // the application fails: DIBS_ERESERVATIONTIME
};

enum {
    DIBS_APP_NEW = 1,
    DIBS_APP_SUBMITTED = 2,
    DIBS_APP_ACCEPTED = 3,   // about to be decided on
    DIBS_APP_RESERVING = 4,  // its placeholders take slots
    DIBS_APP_RESUMING = 5,   // its reservation has timed out, and goes
    DIBS_APP_RUNNING = 6,    // its tasks are served
    DIBS_APP_COMPLETED = 7,
    DIBS_APP_FAILING = 8,
    DIBS_APP_FAILED = 9,
    DIBS_APP_KILLING = 10,
    DIBS_APP_KILLED = 11,
    DIBS_APP_REJECTED = 12,
    DIBS_APP_RECOVERING = 13,  // nothing is decided before dibs_app_recovered
    DIBS_APP_REMOVED = 14      // by another process, before its end: nothing more is told of it
};

// So many members at least, each of which wants so much of one slot: "NAME=AMOUNT", as of a claim;
// null: a whole one.
typedef struct dibs_app_group {
    const char* name;
    uint32_t members;
    uint32_t reserved;
    const char* const* resource;
    size_t resource_count;
} dibs_app_group;

typedef struct dibs_app {
    size_t size;
    const char* name;
    uint32_t pool;     // in order of arrival, or of priority; no set
    int32_t priority;  // of what its gang reserves, in a pool in order of priority; 0 = 1
    const dibs_app_group* groups;
    size_t group_count;              // at most DIBS_APP_GROUPS_MAX; 0: no gang
    int64_t placeholder_timeout_ns;  // of the reservation, and then of placeholders that no task
                                     // takes; 0 = 15 min; DIBS_FOREVER
    int64_t manager_timeout_ns;      // without a manager; 0 = the broker's (5 min); DIBS_FOREVER
    int64_t age_ns;                  // since it was made: what a listing says
    int32_t style;                   // DIBS_GANG_…
    int32_t recover;         // not 0: as after a loss of all state: its tasks are added one by one,
                             // and it goes on at dibs_app_recovered
    const char* parameters;  // null = none; "placeholderTimeoutInSeconds=30
                             // gangSchedulingStyle=Hard": what it names counts, before the fields
    const char* tags;        // null = none; at most DIBS_META_MAX bytes, for who looks
} dibs_app;

// Adds an application, and makes this session its manager; wait_ns > 0. *number (null = unwanted)
// is its number. DIBS_EDUPLICATE: it is there, and stays as it is; *number is its own, and
// dibs_app_adopt makes this session its manager. DIBS_EAPPLICATION: one of that name has ended:
// remove it, or choose another name. Groups that cannot be (no members, a name twice, resources
// that are none of the pool) are dropped, all of them: an event with DIBS_EMALFORMED says so, and
// the application goes on without a gang. One that its pool can never serve is added, and fails; an
// event says why. DIBS_EPOOL, DIBS_ENOTALLOWED (pool, or priority, of the user's policy),
// DIBS_ELIMIT (the user has a quarter of the broker's rows), DIBS_ENOROOM (the session has room for
// 3/32 as many applications as it has more completion_entries than submission_entries: 12 by
// default), DIBS_ETABLES, DIBS_EVECTOR (no "NAME=AMOUNT"), DIBS_EPAYLOAD (parameters, tags),
// DIBS_ESIZE.
DIBS_API int dibs_app_add(dibs_session* session,
                          const dibs_app* app,
                          int64_t wait_ns,
                          uint64_t* number);
// This session becomes the manager of one that has none; wait_ns > 0. Its next event says which
// state it is in. DIBS_ENOTHOLDER (another session is), DIBS_ALREADY_ENDED (this one is),
// DIBS_EAPPLICATION, DIBS_ENOROOM.
DIBS_API int dibs_app_adopt(dibs_session* session,
                            const char* name,
                            int64_t wait_ns,
                            uint64_t* number);
// A running application has done its work: placeholders go, claims of its tasks end rejected
// (DIBS_EAPPLICATION). DIBS_ESTATE: it does not run.
DIBS_API int dibs_app_complete(dibs_session* session, const char* name, int64_t wait_ns);
// It fails: likewise, and leases of its tasks stay. DIBS_ESTATE: it has ended, or is ending.
DIBS_API int dibs_app_fail(dibs_session* session, const char* name, int64_t wait_ns);
// The same, and leases of its tasks are revoked.
DIBS_API int dibs_app_kill(dibs_session* session, const char* name, int64_t wait_ns);
// Forgets it, whatever its state, and its events that have not been read; its name is free.
// wait_ns > 0. DIBS_ESTATE: *tasks (null = unwanted) of its tasks have not ended.
DIBS_API int dibs_app_remove(dibs_session* session,
                             const char* name,
                             int64_t wait_ns,
                             uint64_t* tasks);
// Of one that was added with `recover`: all its tasks have been added. DIBS_ESTATE: it is none.
DIBS_API int dibs_app_recovered(dibs_session* session, const char* name, int64_t wait_ns);

typedef struct dibs_app_task {
    size_t size;
    const char* name;
    const char* group;  // null = in none
    int32_t priority;   // among the application's; 0 = 1
    int32_t assigned;   // not 0, of a recovering one: it runs already, outside of any lease
} dibs_app_task;

// Adds a task, which a claim that names it would do as well. DIBS_EDUPLICATE: it is there, and
// stays as it is; DIBS_ENOTFOUND (the group, too), DIBS_EAPPLICATION, DIBS_ETABLES, DIBS_ELIMIT,
// DIBS_ESIZE.
DIBS_API int dibs_app_add_task(dibs_session* session,
                               const char* name,
                               const dibs_app_task* task,
                               int64_t wait_ns);
// Forgets a task that has ended. DIBS_ALREADY_ENDED: there is no such application or task;
// DIBS_ESTATE: it has not ended.
DIBS_API int dibs_app_remove_task(dibs_session* session,
                                  const char* name,
                                  const char* task,
                                  int64_t wait_ns);
// The task has done its work: its claim ends, or its lease. DIBS_ALREADY_ENDED.
DIBS_API int dibs_app_complete_task(dibs_session* session,
                                    const char* name,
                                    const char* task,
                                    int64_t wait_ns);

typedef struct dibs_app_event {
    size_t size;
    uint64_t number;
    int32_t state;                 // DIBS_APP_…: now
    int32_t before;                // the same: a warning, about tasks alone, or of who adopts it
    int32_t code;                  // DIBS_OK, or why
    uint32_t tasks_failed;         // of those that had no claim: with this
    char name[DIBS_NAME_MAX + 1];  // empty: the session manages it no more
} dibs_app_event;

// What happens to the applications that this session manages, in order; waits at most timeout_ns.
// DIBS_ETIMEDOUT: nothing. DIBS_EUNREAD: reap first. DIBS_ESIZE. Once the end of one has been read,
// its room is another one's.
DIBS_API int dibs_app_next(dibs_session* session, dibs_app_event* event, int64_t timeout_ns);
// "running", …; "unknown".
DIBS_API const char* dibs_app_state_name(int state);

// ---- Events: what the broker decides, as it decides it. A subscription is a connection of its own
//      and needs no session; of another user's claims and leases it is told kind, pool, account and
//      time (`full` is 0), an administrator everything. The broker waits for no subscriber: what
//      one does not read in time it misses, and is told how much. Threads: dibs_events_open any;
//      the rest one at a time per subscription.

typedef struct dibs_events dibs_events;

enum {
    DIBS_EVENT_RESULT = 0,       // of an operation: code
    DIBS_EVENT_ANNOUNCED = 1,    // slot, its id
    DIBS_EVENT_ASSIGN = 2,       // to a worker: slot, round, claim
    DIBS_EVENT_REVOKE = 3,       // to a worker: slot, round
    DIBS_EVENT_ANSWER = 4,       // a worker's answer to a holder; code DIBS_EDONE: its last
    DIBS_EVENT_GRANT = 5,        // claim, lease id, fence, slots; value = interval, ns
    DIBS_EVENT_END = 6,          // of a claim without a grant: outcome, code, holder; of a rejected
                                 // one value = when to try again, ns, or DIBS_EREFUSED: what its
                                 // worker said, an int64_t
    DIBS_EVENT_ADOPTED = 7,      // lease id, fence, slots
    DIBS_EVENT_LEASE_GRACE = 8,  // expired: value = broker time at which the grace ends; all ones:
                                 // when its room is wanted
    DIBS_EVENT_KILL = 9,         // the holder of a strict lease
    DIBS_EVENT_LEASE_END = 10,   // lease id, fence, code, slots; holder.uid = who released it from
                                 // outside, of those that the listener may see
    DIBS_EVENT_SLOT_GONE = 11,   // slot
    DIBS_EVENT_DEMAND = 12,      // of a pool: value = claims that wait; id = ns that the first of
                                 // them has waited; hit_permille; fence = workers of an elastic
                                 // pool that may still be made, else all ones
    DIBS_EVENT_DRAINED = 13,     // a pool; without one the broker
    DIBS_EVENT_PROMOTE = 14,     // claim, account, from_class, to_class
    DIBS_EVENT_DEMOTE = 15,      // likewise
    DIBS_EVENT_PREEMPT = 16,     // claim takes the slot of holder.claim, which has cost cost_micros
    DIBS_EVENT_REFUND = 17,      // cost_micros to the account of holder.claim
    DIBS_EVENT_PULLED = 18,      // a reported worker: slot, claim
    DIBS_EVENT_SESSION_OPENED = 19,
    DIBS_EVENT_SESSION_ENDED = 20,
    DIBS_EVENT_MORE_SLOTS = 21,  // slots of the event before: more than DIBS_EVENT_SLOTS
    DIBS_EVENT_LOST = 22,        // no event: value = how many were missed here
    DIBS_EVENT_CREATE = 23,      // to a provisioner: make a worker: slot, type, the order's id
    DIBS_EVENT_STOP = 24,        // to a provisioner: stop one: likewise
    // Of a dispatched pool: entry, its number in `id`. DIBS_EVENT_END, too.
    DIBS_EVENT_LOCK = 25,
    DIBS_EVENT_UNLOCK = 26,
    DIBS_EVENT_START = 27,         // on the worker of `slot`
    DIBS_EVENT_KILL_PROCESS = 28,  // likewise
    DIBS_EVENT_FORGET = 29,        // it, or its exited process
    // Of an application, its number in `id`; `entry` is its name, its task's or its group's.
    DIBS_EVENT_APPLICATION = 30,  // from_class, to_class = DIBS_APP_… before and now; code
    DIBS_EVENT_TASK = 31,         // of a task without a claim: from_class, to_class = DIBS_TASK_…
    DIBS_EVENT_PLACEHOLDER = 32  // of a group: to_class = DIBS_PLACEHOLDER_…, slot, and in `value`
                                 // which of the group's
};

// What has become of a placeholder.
enum {
    DIBS_PLACEHOLDER_BOUND = 0,     // it holds the slot
    DIBS_PLACEHOLDER_REPLACED = 1,  // a task's lease has it
    DIBS_PLACEHOLDER_RELEASED = 2,  // it is not needed any more, or its time is over
    DIBS_PLACEHOLDER_LOST = 3       // its slot is gone
};

// The state of a task.
enum {
    DIBS_TASK_NEW = 1,
    DIBS_TASK_SCHEDULING = 2,  // its claim is held, or waits
    DIBS_TASK_ALLOCATED = 3,   // workers are asked
    DIBS_TASK_BOUND = 4,       // it has its lease
    DIBS_TASK_COMPLETED = 5,
    DIBS_TASK_KILLED = 6,
    DIBS_TASK_REJECTED = 7,
    DIBS_TASK_FAILED = 8
};

#define DIBS_EVENT_SLOTS 16

typedef struct dibs_event {
    size_t size;
    uint64_t number;  // grows by one from event to event, of everybody's
    int64_t time_ns;  // of the turn, by the broker's clock
    int32_t kind;     // DIBS_EVENT_…
    int32_t full;     // 0: another user's; only what is said above is set
    int32_t outcome;
    int32_t code;
    int32_t provision;  // the worker must make itself fit for the claim's labels
    int32_t is_void;    // a refund to an account that is gone
    uint32_t uid;       // of the session that it is about; all ones = none
    uint32_t pid;
    uint32_t session;  // with its generation, the client: s3.1
    uint32_t session_generation;
    uint32_t units;
    uint32_t slot;  // within its pool; all ones = none
    uint32_t round;
    uint32_t from_class;
    uint32_t to_class;
    uint32_t slot_count;    // in `slots`
    uint32_t hit_permille;  // of 1,000 grants, those that did not wait
    uint32_t reserved;
    uint64_t claim;  // its number; 0 = none
    uint64_t id;     // of the lease or slot
    uint64_t fence;
    uint64_t value;
    dibs_holder holder;  // uid all ones = nobody
    int64_t cost_micros[5];
    uint32_t slots[DIBS_EVENT_SLOTS];
    char pool[DIBS_NAME_MAX + 1];
    char account[DIBS_NAME_MAX + 1];
    char type[DIBS_NAME_MAX + 1];
    char entry[DIBS_NAME_MAX + 1];  // of a dispatched pool, an application; empty = none
} dibs_event;

// Subscribes; of the options, socket_path and error_text count. Events begin with the next turn.
// Codes as of dibs_connect. DIBS_EVERSION: the broker tells no events.
DIBS_API int dibs_events_open(const dibs_connect_options* options, dibs_events** events);
// The next event; waits at most timeout_ns. DIBS_ETIMEDOUT: none came. DIBS_EBROKERLOST: the broker
// is gone, or has let this subscription go: open another one. DIBS_ESIZE, DIBS_ENEGATIVE,
// DIBS_EHANDSHAKE (what came is no event), DIBS_ESYSTEM, DIBS_EFORK, DIBS_EARGUMENT.
DIBS_API int dibs_events_next(dibs_events* events, int64_t timeout_ns, dibs_event* event);
// Readable when an event is there and none is left in the library: call next until it times out.
// Returns it. DIBS_EARGUMENT, DIBS_EFORK.
DIBS_API int dibs_events_fd(dibs_events* events);
// Ends the subscription; null is allowed. DIBS_EFORK: this process's copy alone was given back.
DIBS_API int dibs_events_close(dibs_events* events);
// "grant", "lease_end", …; "unknown".
DIBS_API const char* dibs_event_name(int kind);

// ---- The whole state, for administrators. Of the options, socket_path and error_text (of a
//      broker that is not reached) count. Threads: any.

// Writes the broker's state as one snapshot (schemas/snapshot.fbs) to the descriptor, as it stands
// between two turns, without holding the broker up. DIBS_ENOTALLOWED, DIBS_ESTATE (another dump is
// being made), DIBS_ENOBROKER, DIBS_EVERSION, DIBS_EHANDSHAKE, DIBS_ELIMIT, DIBS_ENAME, DIBS_ESIZE,
// DIBS_ESYSTEM, DIBS_EARGUMENT.
DIBS_API int dibs_dump(const dibs_connect_options* options, int fd);
// Makes the snapshot that the descriptor has to its end the state of the broker, to which nobody is
// attached; returns when the broker is about to go on from it. Sessions in it end: their processes
// are not there. DIBS_ESTATE: refused, and nothing has changed (what is wrong, or who is attached,
// `dibs load` says); else codes as of dibs_dump.
DIBS_API int dibs_load(const dibs_connect_options* options, int fd);

// ---- Accounts, and workers that do not attach: for administrators. Each function asks the broker
//      over a connection of its own and waits for its answer, at most 5 s. Of the options,
//      socket_path and error_text count: the text is the broker's sentence about a refusal, or says
//      which broker was not reached. All of them may return DIBS_ENOTALLOWED, DIBS_ENOBROKER,
//      DIBS_EVERSION, DIBS_EHANDSHAKE, DIBS_ELIMIT (too many ask at once), DIBS_ENAME, DIBS_ESIZE,
//      DIBS_ESYSTEM, DIBS_EARGUMENT, DIBS_EPAYLOAD (more than one question has room for). Threads:
//      any.
//
//     // 3 slots of the best class at any time, and at most 2 with labels that begin with "gpu:"
//     const int64_t rate[] = {3 * DIBS_MICROS};
//     const dibs_label_limit limit = {"gpu", 2};
//     dibs_account_change change = {0};
//     change.size = sizeof change;
//     change.fields = DIBS_ACCOUNT_RATE;
//     change.rate = rate;
//     change.rate_count = 1;
//     change.label_limits = &limit;
//     change.label_limit_count = 1;
//     code = dibs_account_set(NULL, "web", &change);

#define DIBS_MICROS ((int64_t)1000000)  // of a slot, or of a second of one: one
#define DIBS_CLASSES 5
#define DIBS_NO_LIMIT UINT32_MAX
#define DIBS_PULLERS_MAX 8  // workers that ask at once

typedef struct dibs_label_limit {
    const char* key;  // the part before ":" of a label
    uint32_t slots;   // DIBS_NO_LIMIT takes the limit away
} dibs_label_limit;

// Which fields of a change are given; what is not stays, or is as a new account has it.
enum {
    DIBS_ACCOUNT_RATE = 1,
    DIBS_ACCOUNT_BALANCE = 2,
    DIBS_ACCOUNT_CHARGE_MAX = 4,
    DIBS_ACCOUNT_FANOUT_MAX = 8,
    DIBS_ACCOUNT_NO_FREE_TASKS = 16
};

typedef struct dibs_account_change {
    size_t size;
    uint32_t fields;        // DIBS_ACCOUNT_…
    int32_t no_free_tasks;  // not 0: what it cannot pay for waits
    const int64_t* rate;    // by class, the best first; at most DIBS_CLASSES, the missing ones are
                            // 0: millionths of slots that it may hold all the time
    size_t rate_count;
    const int64_t* balance;  // likewise: millionths of slots times seconds
    size_t balance_count;
    int64_t charge_max_ns;  // its rate is saved up for so long at most
    uint32_t fanout_max;    // paid slots of claims with the same labels; 0 = any
    uint32_t reserved;
    const dibs_label_limit* label_limits;  // each replaces that key's; the others stay
    size_t label_limit_count;              // at most DIBS_LABELS_MAX
} dibs_account_change;

// Makes an account, or changes one while it is in use; change null: nothing but that it is there.
// DIBS_ENEGATIVE (charge_max_ns), DIBS_ESTATE (refused; the error text says why).
DIBS_API int dibs_account_set(const dibs_connect_options* options,
                              const char* name,
                              const dibs_account_change* change);
// Its balance becomes what is given, by class; what is not is 0. DIBS_ENOTFOUND (no configured
// account of that name), DIBS_ESTATE.
DIBS_API int dibs_account_reset(const dibs_connect_options* options,
                                const char* name,
                                const int64_t* balance,
                                size_t balance_count);
// What it holds stays, and its claims wait on in the free class. DIBS_ENOTFOUND.
DIBS_API int dibs_account_delete(const dibs_connect_options* options, const char* name);

// What is said of a worker that does not attach, in a worker pool ordered by account.
enum {
    DIBS_REPORT_IDLE = 1,      // worker, labels
    DIBS_REPORT_RUNNING = 2,   // worker, claim
    DIBS_REPORT_ABSENT = 3,    // claim: nobody runs it, and nobody wants it any more
    DIBS_REPORT_UNASSIGN = 4,  // worker, claim, error: it is taken off the worker and waits again
    DIBS_REPORT_AGAIN = 5  // claim: it is announced again, with labels, prefer and account where
                           // given. If it runs, it waits again with these
};

typedef struct dibs_worker_report {
    size_t size;
    int32_t kind;  // DIBS_REPORT_…
    int32_t reserved;
    const char* pool;
    const char* worker;  // its name, 1 to 63 bytes
    uint64_t claim;      // its number
    int64_t age_ns;      // how long ago it was so; what is older than what is known changes nothing
    const char* const* labels;
    size_t label_count;
    const char* const* prefer;
    size_t prefer_count;
    const char* account;  // null = stays
    const char* error;    // null = none
} dibs_worker_report;

// DIBS_EPOOL, DIBS_ENEGATIVE, DIBS_ELABELS, DIBS_ENOTFOUND (no such claim, or not on that worker),
// DIBS_ESTATE (not such a pool, or otherwise refused; the error text says why).
DIBS_API int dibs_report(const dibs_connect_options* options, const dibs_worker_report* report);

typedef struct dibs_puller {
    const char* worker;
    const char* const* labels;
    size_t label_count;
} dibs_puller;

typedef struct dibs_pulled {
    char worker[DIBS_NAME_MAX + 1];
    uint64_t claim;  // what it is to run; 0 = nothing. To be confirmed by DIBS_REPORT_RUNNING, and
                     // told again until then
    uint64_t abort;  // what it is to end first; 0 = nothing
    uint32_t provision_count;
    uint32_t reserved;
    // Labels that the claim prefers and the worker lacks.
    char provision[DIBS_LABELS_MAX][DIBS_NAME_MAX + 1];
} dibs_pulled;

// Asks for work for `count` workers, at most DIBS_PULLERS_MAX, as of age_ns ago: each is idle
// unless it has work that it has not confirmed. Fills at most `count` answers and returns how many.
// DIBS_EPOOL, DIBS_ENEGATIVE, DIBS_ELABELS, DIBS_ESTATE as of dibs_report.
DIBS_API int dibs_pull(const dibs_connect_options* options,
                       const char* pool,
                       const dibs_puller* workers,
                       size_t count,
                       int64_t age_ns,
                       dibs_pulled* pulled);

// ---- Dispatched pools: for administrators, who keep a queue elsewhere and run what it has on
//      workers that do not attach. The broker says what is to be done; what is so is reported. Each
//      call is a connection of its own. Threads: any.

#define DIBS_ORDERS_MAX 64  // of one answer

// What is said.
enum {
    DIBS_DISPATCH_ENTRY = 1,    // entry; state, and what `fields` names: as the queue has it
    DIBS_DISPATCH_QUEUE = 2,    // members: all entries that a reading found; or failed
    DIBS_DISPATCH_LOCK = 3,     // entry: somebody has locked it, and so on
    DIBS_DISPATCH_UNLOCK = 4,   // entry
    DIBS_DISPATCH_CANCEL = 5,   // entry
    DIBS_DISPATCH_FORGET = 6,   // entry
    DIBS_DISPATCH_DONE = 7,     // entry; failed, error: its lock, unlock or kill has ended
    DIBS_DISPATCH_WORKER = 8,   // worker, state; type: of one that is new
    DIBS_DISPATCH_PROCESS = 9,  // worker, entry: its process is alive there; exited: it was
    DIBS_DISPATCH_PROBE = 10,   // worker; failed
    DIBS_DISPATCH_RUN = 11,     // worker: it takes work, and is stopped when it is idle for long
    DIBS_DISPATCH_HOLD = 12,    // worker: it takes nothing new, and is not stopped
    DIBS_DISPATCH_DRAIN = 13    // worker: it takes nothing new, and is stopped
};

// The state of an entry; 0 = stays, and a new one is queued.
enum {
    DIBS_ENTRY_QUEUED = 1,
    DIBS_ENTRY_LOCKED = 2,
    DIBS_ENTRY_RUNNING = 3,
    DIBS_ENTRY_COMPLETE = 4,
    DIBS_ENTRY_CANCELLED = 5
};

// The state of a worker.
enum {
    DIBS_WORKER_UNKNOWN = 0,
    DIBS_WORKER_BOOTING = 1,
    DIBS_WORKER_IDLE = 2,
    DIBS_WORKER_RUNNING = 3,
    DIBS_WORKER_SHUTDOWN = 4,
    DIBS_WORKER_ABSENT = 5
};

// Which fields of an entry are given; what is not stays, or is as of a new one: priority 1, no
// supervisor, any type.
enum { DIBS_ENTRY_PRIORITY = 1, DIBS_ENTRY_SUPERVISOR = 2, DIBS_ENTRY_TYPES = 4 };

typedef struct dibs_dispatched {
    size_t size;
    int32_t kind;   // DIBS_DISPATCH_…
    int32_t state;  // DIBS_ENTRY_…, DIBS_WORKER_…
    const char* pool;
    const char* entry;  // its name, 1 to 63 bytes, as of a worker
    const char* worker;
    const char* type;    // of a worker; null = as it was
    int64_t age_ns;      // how long ago it was so, the process exited, or the reading or the probe
                         // began; what is older than what is known changes nothing
    uint32_t fields;     // DIBS_ENTRY_PRIORITY, ...
    int32_t priority;    // the highest is served first; 0 = held
    int32_t supervisor;  // not 0: it makes others
    int32_t exited;      // not 0: the process has
    int32_t failed;      // not 0: the reading, the operation, the probe has
    int32_t reserved;
    const char* const* members;  // of a queue: any number; of an entry: types that suit it, some
                                 // ten at most, none = any
    size_t member_count;
    const char* error;  // null = none
} dibs_dispatched;

// DIBS_EPOOL, DIBS_ENEGATIVE, DIBS_EPAYLOAD (too many types), DIBS_ENOTFOUND (no such entry, worker
// or type), DIBS_ESTATE (no such pool, or otherwise refused; the error text says why).
DIBS_API int dibs_dispatch_report(const dibs_connect_options* options, const dibs_dispatched* said);

enum {
    DIBS_ORDER_LOCK = 1,    // the entry, in the queue; then DIBS_DISPATCH_DONE
    DIBS_ORDER_UNLOCK = 2,  // likewise
    DIBS_ORDER_KILL = 3,    // its process on the worker; then DIBS_DISPATCH_DONE
    DIBS_ORDER_START = 4    // a process of it, on the worker; then DIBS_DISPATCH_PROCESS
};

typedef struct dibs_order {
    int32_t kind;     // DIBS_ORDER_…
    uint32_t slot;    // of the worker, within its pool
    uint64_t number;  // of the entry, in the order in which they were first seen
    char entry[DIBS_NAME_MAX + 1];
    char worker[DIBS_NAME_MAX + 1];
    char type[DIBS_NAME_MAX + 1];  // of the worker
} dibs_order;

// What is to be done, the best entry's first; each is told until somebody says that it is done.
// Fills at most `count`, 1 to DIBS_ORDERS_MAX, and returns how many; while there is nothing, or
// just what had the stamp *stamp (null = unwanted, 0 = no stamp), waits at most wait_ns for
// something else. 0: nothing, when the time is over. *stamp is another one whenever something else
// is to be done. DIBS_EPOOL, DIBS_ENEGATIVE, DIBS_ESTATE as of dibs_dispatch_report.
DIBS_API int dibs_dispatch_orders(const dibs_connect_options* options,
                                  const char* pool,
                                  dibs_order* orders,
                                  size_t count,
                                  int64_t wait_ns,
                                  uint64_t* stamp);

// ---- Offers, and what a lease is: questions that anybody may ask, each over a connection of its
//      own. Threads: any.

typedef struct dibs_offers_query {
    size_t size;
    const char* pool;
    // As of dibs_claim_options. Both null: whatever there is, by slot number. Else none that has
    // less than `least`; those with all of `most` first, the nearest to it first, then the smaller
    // ones, likewise. Equal ones come in another order for each who asks.
    const char* const* least;
    size_t least_count;
    const char* const* most;
    size_t most_count;
    // While there is none, or what is offered still has the stamp `after_stamp` (0 = no stamp):
    // waits so long for others. A lease that expires in a pool of lazy expiry makes others.
    int64_t wait_ns;
    uint64_t after_stamp;
} dibs_offers_query;

// Fills at most `count` offers, 1 to DIBS_OFFERS_MAX, and returns how many there are; 0: none, when
// the time is over. *stamp (null = unwanted) is another one whenever others are offered. Nothing is
// offered while claims wait in the pool, while it, or the broker, drains, or while no accept would
// be granted: no row is left, or as many workers are asked as may be. An offer is no promise:
// dibs_claim_options.offer. DIBS_EPOOL; DIBS_ENEGATIVE; as of a claim DIBS_EVECTOR (no such
// resources) and DIBS_EUNAVAILABLE (more than a slot has), and the error text says which.
DIBS_API int dibs_offers(const dibs_connect_options* options,
                         const dibs_offers_query* query,
                         dibs_offer* offers,
                         size_t count,
                         uint64_t* stamp);

// What to accept of an offer, at most `most` (texts as of a claim): *taken has that much. Where
// nothing would be left of some resource that it has, that is the whole offer, since nobody could
// have the rest. DIBS_EVECTOR: nothing of it, or no amounts of its resources.
DIBS_API int dibs_offer_take(const dibs_offer* offer,
                             const char* const* most,
                             size_t most_count,
                             dibs_offer* taken);

typedef struct dibs_inspection {
    uint64_t lease;
    uint64_t fence;
    uint64_t claim;       // its number
    int64_t age_ns;       // since it was granted
    int64_t kept_ns;      // since its last keepalive
    int64_t interval_ns;  // 0 = bound to its holder's life
    int64_t left_ns;      // to its end; DIBS_FOREVER
    int64_t expired_ns;   // for how long; 0 = not. Of an ended one: when it ended
    int64_t ended_ns;     // since its end, if it has ended
    int32_t ended;        // not 0: it has
    int32_t code;         // why: DIBS_OK: its holder gave it back; DIBS_EHOLDERGONE: its holder's
                          // process has ended, or the broker has killed it; DIBS_EEXPIRED, ...
    uint32_t uid;         // DIBS_HIDDEN_UID: another user's, of which only pool, account and age_ns
                          // are told
    uint32_t pid;
    uint32_t units;
    uint32_t slot;   // number of the first one
    uint32_t count;  // of resources; 0: whole slots
    uint32_t reserved;
    char resources[DIBS_RESOURCES_MAX][DIBS_RESOURCE_NAME_MAX + 1];
    uint64_t amounts[DIBS_RESOURCES_MAX];
    char pool[DIBS_NAME_MAX + 1];
    char account[DIBS_NAME_MAX + 1];
    char state[16];  // live, grace, expired, revoking, killing, parked, unkillable, outlived, ended
    char meta[DIBS_META_MAX + 1];
} dibs_inspection;

// A lease by its id (dibs_lease.id). One that has ended is known for `ended_leases_for` (docs/
// configuration.md), or until 1,024 others have ended, and not to a broker that has taken over
// since. DIBS_ENOTFOUND.
DIBS_API int dibs_inspect(const dibs_connect_options* options,
                          uint64_t lease,
                          dibs_inspection* inspection);

#ifdef __cplusplus
}
#endif

#endif
