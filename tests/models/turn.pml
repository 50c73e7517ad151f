/* tests/models/turn.pml -- a lease is granted, released and granted again, and the broker may be
 * killed between any two of its stores.
 *
 * One slot, two clients. A turn of the broker: save the old row, count the image, store the row,
 * commit, store the completion, clear. A successor recovers: uncommitted, it copies the image back;
 * committed, it repeats the completion. A client that has read a completion with a fence holds the
 * slot until it writes a release line; the broker consumes a line only with the turn that carries
 * it out.
 *
 * Correct: no two clients hold the slot; fences that are told grow; a claim is never lost.
 * Variants that must fail: NO_LOG (no image is saved), EARLY_STORE (the completion leaves before
 * the commit), COUNT_FIRST (the image is counted before it is whole), EARLY_CONSUME (a line is
 * consumed before the turn commits).
 * SPDX-License-Identifier: Apache-2.0
 */
#define FREE 0
#ifndef GRANTS
#define GRANTS 3
#endif
#ifndef DEATHS
#define DEATHS 2
#endif

/* STATE: one row (owner and fence), the log, the consumed indices */
byte owner;             /* FREE, or client + 1 */
byte fence;
byte log_owner;
byte log_fence;
bool log_counted;
bool committed;
byte staged_client;     /* completion in the log: client + 1, FREE = none */
byte staged_fence;
bool claim_line[2];     /* a claim or release lies in the client's ring */
bool release_line[2];
byte told[2];           /* DOWN: the last fence granted to the client; storing it again is harmless */

/* ghosts */
byte holding;           /* how many clients believe that they hold the slot */
byte last_told;
byte deaths;

inline recover() {
    if
    :: committed ->
        if
        :: staged_client != FREE -> told[staged_client - 1] = staged_fence
        :: else -> skip
        fi
    :: !committed && log_counted -> owner = log_owner; fence = log_fence
    :: else -> skip
    fi;
    committed = false; log_counted = false; staged_client = FREE
}

/* Between any two stores the broker may be killed; its successor recovers and starts over. */
inline may_die() {
    if
    :: deaths < DEATHS -> deaths = deaths + 1; atomic { recover() }; goto turn
    :: true -> skip
    fi
}

inline save() {
    skip;
#ifndef NO_LOG
#ifdef COUNT_FIRST
    log_counted = true; may_die();
#endif
    log_owner = owner; may_die();
    log_fence = fence; may_die();
#ifndef COUNT_FIRST
    log_counted = true; may_die();
#endif
#endif
}

inline finish(line) {
#ifdef EARLY_CONSUME
    line = false; may_die();
    committed = true; may_die();
#else
    /* commit and consumed index are one store: the index is a row of the same turn */
    atomic { committed = true; line = false }; may_die();
#endif
    if
    :: staged_client != FREE -> told[staged_client - 1] = staged_fence
    :: else -> skip
    fi;
    may_die();
    atomic { staged_client = FREE; log_counted = false; committed = false }
}

inline grant(who) {
    save();
    owner = who + 1; may_die();
    fence = fence + 1; may_die();
    staged_fence = fence;
    staged_client = who + 1; may_die();
#ifdef EARLY_STORE
    told[who] = fence; may_die();
#endif
    finish(claim_line[who])
}

inline release(who) {
    save();
    owner = FREE; may_die();
    finish(release_line[who])
}

active proctype broker() {
end_turn:
turn:
    do
    :: release_line[0] && owner == 1 -> release(0)
    :: release_line[1] && owner == 2 -> release(1)
    :: claim_line[0] && owner == FREE -> grant(0)
    :: claim_line[1] && owner == FREE -> grant(1)
    od
}

proctype client(byte me) {
    byte mine;
    byte count;
    do
    :: count < GRANTS ->
        count = count + 1;
        claim_line[me] = true;
        atomic { told[me] > mine -> mine = told[me]; holding = holding + 1;
                 assert(holding == 1); assert(mine > last_told); last_told = mine };
        atomic { holding = holding - 1; release_line[me] = true };
        /* the line is free again when the broker has consumed it */
        (!release_line[me])
    :: count == GRANTS -> break
    od
}

init { atomic { run client(0); run client(1) } }
