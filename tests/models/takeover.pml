/* tests/models/takeover.pml -- a keeper starts the next broker, and the old one may have a store or
 * two left to do.
 *
 * One slot, two clients, several generations of the broker over one STATE. A generation recovers,
 * then does turns as in turn.pml. It may be killed at any point; a signal is delivered some time
 * after it was sent, and until then the process runs on, however long it had been standing still.
 * The keeper may also find it hanging, rightly or not, and kill it. It starts the next generation
 * when the pidfd says that the last one is dead: that is after its last store.
 *
 * Correct: no two clients hold the slot, fences that are told grow.
 * Variants that must fail: NO_PROOF (the next one starts when the old one seems to hang, without a
 * kill), KILL_IS_PROOF (it starts when the kill has been sent), NO_REPEAT (the next one does not
 * repeat the stores of a turn that was committed: a grant is lost, and nothing moves any more).
 * SPDX-License-Identifier: Apache-2.0
 */
#define FREE 0
#ifndef GRANTS
#define GRANTS 1
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define GENERATIONS (DEATHS + 1)

/* STATE */
byte owner;          /* FREE, or client + 1 */
byte fence;
byte log_owner;
byte log_fence;
bool logged;
bool committed;
byte staged_client;
byte staged_fence;
/* the clients' rings */
bool claim_line[2];
bool release_line[2];
byte told[2];
/* processes */
bool sent[GENERATIONS];    /* SIGKILL is on its way */
bool killed[GENERATIONS];  /* it has arrived: not one statement more */
bool dead[GENERATIONS];    /* the pidfd says so */
byte current;
/* ghosts */
byte holding;
byte last_told;
byte served;

/* Of the line of `who`: a grant or the end of one. */
inline turn(who, wanted, line) {
    log_owner = owner;
    log_fence = fence;
    logged = true;
    owner = wanted;
    if
    :: wanted != FREE -> fence = fence + 1; staged_fence = fence; staged_client = wanted
    :: else -> skip
    fi;
    d_step { committed = true; line = false };
    if
    :: staged_client != FREE -> told[staged_client - 1] = staged_fence
    :: else -> skip
    fi;
    d_step { staged_client = FREE; logged = false; committed = false }
}

inline recover() {
    d_step {
        if
        :: committed && staged_client != FREE ->
#ifndef NO_REPEAT
            told[staged_client - 1] = staged_fence
#else
            skip
#endif
        :: !committed && logged -> owner = log_owner; fence = log_fence
        :: else -> skip
        fi;
        committed = false; logged = false; staged_client = FREE
    }
}

proctype broker(byte generation) {
    {
        recover();
end_serving:
        do
        :: release_line[0] && owner == 1 -> turn(0, FREE, release_line[0])
        :: release_line[1] && owner == 2 -> turn(1, FREE, release_line[1])
        :: claim_line[0] && owner == FREE -> turn(0, 1, claim_line[0])
        :: claim_line[1] && owner == FREE -> turn(1, 2, claim_line[1])
        od
    } unless {
        killed[generation] -> dead[generation] = true
    }
}

/* Whoever sends a signal does not know when it arrives. */
active proctype kernel() {
end:
    do
    :: atomic { sent[0] && !killed[0] -> killed[0] = true }
    :: atomic { sent[1] && !killed[1] -> killed[1] = true }
#if DEATHS > 1
    :: atomic { sent[2] && !killed[2] -> killed[2] = true }
#endif
    od
}

active proctype keeper() {
    atomic { run broker(0) };
end_watching:
    do
    :: atomic { dead[current] && current + 1 < GENERATIONS ->
                current = current + 1; run broker(current) }
    :: atomic { !sent[current] && current + 1 < GENERATIONS -> skip };
        /* it seems to hang, or somebody kills it */
#ifdef NO_PROOF
        atomic { current = current + 1; run broker(current) }
#else
        sent[current] = true;
#ifdef KILL_IS_PROOF
        atomic { current = current + 1; run broker(current) }
#endif
#endif
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
        (!release_line[me])
    :: count == GRANTS -> break
    od;
    served = served + 1
}

/* The last generation is not killed: whoever waits still then waits for ever. */
active proctype witness() {
end_watch:
    atomic { (timeout) -> assert(served == 2) }
}

init { atomic { run client(0); run client(1) } }
