/* tests/models/expiry.pml -- strict expiry and adoption: nobody gets a slot while its last holder
 * may still use it.
 *
 * A holder and its child are two processes with a session each, a third process waits for the slot.
 * The lease may expire at any time. Then the broker sends SIGKILL, which arrives later, or fails;
 * the pidfd says when the process is dead. The child may adopt the lease, by its fence. The broker
 * grants the slot again when the holder's session has died, or when the holder releases it.
 * The holder's socket may hang up while the process lives: a descriptor closed is nobody's death.
 *
 * Correct: at no time two living processes believe that they hold the slot; what was adopted does
 * not end with its first holder.
 * Variants that must fail: NO_PROOF (granted again when the kill is sent), FAILED_IS_DEAD (a kill
 * that failed counts as one), HANGUP_IS_DEATH, NO_FENCE (an adoption is not checked against the
 * present lease), KEEP_OWNER (an adopted lease still ends with its first holder).
 * SPDX-License-Identifier: Apache-2.0
 */
#define NOBODY 9
#define HOLDER 0
#define CHILD 1
#define OTHER 2

/* processes */
bool alive[3] = true;
bool sent[3];      /* SIGKILL on its way */
bool hung_up[3];
bool noticed[3];   /* the broker has heard of the death */
bool believes[3];  /* holds the slot, as far as it knows */
byte believed[3];  /* under which fence */
/* the broker */
byte session = NOBODY;  /* the lease's */
byte first = NOBODY;    /* who it was granted to */
byte fence;
bool killing;
bool failed;
/* what clients have said, not yet read */
bool claim_line[3];
bool release_line[3];
byte release_fence[3];
bool adopt_line;
byte adopt_fence;
bool adopted;

#ifdef NO_FENCE
#define FENCE_FITS true
#define GIVER HOLDER   /* who it thinks that it adopts from */
#else
#define FENCE_FITS (fence == adopt_fence)
#define GIVER session
#endif
#define HOLDERS ((alive[0] && believes[0]) + (alive[1] && believes[1]) + (alive[2] && believes[2]))

inline grant(who) {
    atomic {
        claim_line[who] = false; session = who; first = who; fence = fence + 1; killing = false;
        believes[who] = true; believed[who] = fence;
        assert(HOLDERS <= 1)
    }
}

inline take_back() { session = NOBODY; killing = false }

inline died(who) {
    atomic { noticed[who] = true; claim_line[who] = false;
#ifdef KEEP_OWNER
             if
             :: first == who && session != NOBODY -> take_back()
             :: else -> skip
             fi;
#endif
             if
             :: session == who -> take_back()
             :: else -> skip
             fi }
}

inline drop(who) {
    if
    :: session == who -> take_back()
    :: else -> skip
    fi
}

active proctype broker() {
end_serving:
    do
    :: session == NOBODY && claim_line[HOLDER] && alive[HOLDER] -> grant(HOLDER)
    :: session == NOBODY && claim_line[OTHER] && !noticed[OTHER] -> grant(OTHER)
    /* release: by its session and fence */
    :: atomic { release_line[HOLDER] -> release_line[HOLDER] = false;
                if
                :: session == HOLDER && fence == release_fence[HOLDER] -> take_back()
                :: else -> skip
                fi }
    :: atomic { release_line[CHILD] -> release_line[CHILD] = false;
                if
                :: session == CHILD && fence == release_fence[CHILD] -> take_back()
                :: else -> skip
                fi }
    /* adopt: the old holder is told by the same turn */
    :: atomic { adopt_line -> adopt_line = false;
                if
                :: session != NOBODY && session != CHILD && !killing && FENCE_FITS ->
                   believes[GIVER] = false;
                   session = CHILD; believes[CHILD] = true; believed[CHILD] = fence;
                   adopted = true;
                   assert(HOLDERS <= 1)
                :: else -> skip
                fi }
    /* expiry */
    :: atomic { session != NOBODY && session != OTHER && !killing -> killing = true };
        if
        :: sent[session] = true
        :: failed = true       /* not permitted */
        fi;
#ifdef NO_PROOF
        take_back()
#endif
#ifdef FAILED_IS_DEAD
        if
        :: failed -> take_back()
        :: else -> skip
        fi
#endif
    /* the death notices */
    :: !alive[HOLDER] && !noticed[HOLDER] -> died(HOLDER)
    :: !alive[CHILD] && !noticed[CHILD] -> died(CHILD)
#ifdef HANGUP_IS_DEATH
    :: hung_up[HOLDER] && session == HOLDER -> drop(HOLDER)
#endif
    od
}

active proctype kernel() {
end:
    do
    :: atomic { sent[HOLDER] && alive[HOLDER] -> alive[HOLDER] = false }
    :: atomic { sent[CHILD] && alive[CHILD] -> alive[CHILD] = false }
    od
}

/* Claims, hands id and fence to its child, and stays, leaves, or dies; it may come back for more. */
active proctype holder() {
    byte times;
    do
    :: times < 2 && alive[HOLDER] ->
        times = times + 1;
        claim_line[HOLDER] = true;
end_claiming:
        (believes[HOLDER] || !alive[HOLDER]);
        if
        :: atomic { alive[HOLDER] && believes[HOLDER] -> adopt_fence = believed[HOLDER] }
        :: !alive[HOLDER] || !believes[HOLDER] -> skip
        fi;
end_holding:
        if
        :: atomic { alive[HOLDER] && believes[HOLDER] -> believes[HOLDER] = false;
                    release_fence[HOLDER] = believed[HOLDER]; release_line[HOLDER] = true }
        :: hung_up[HOLDER] = true
        :: alive[HOLDER] = false
        :: (!believes[HOLDER] || !alive[HOLDER])
        fi;
end_leaving:
        if
        :: (!believes[HOLDER] && !release_line[HOLDER])
        :: hung_up[HOLDER] || !alive[HOLDER] -> break
        fi
    :: break
    od
}

active proctype child() {
    if
    :: adopt_fence != 0 -> adopt_line = true
    :: true -> goto end
    fi;
end_waiting:
    (believes[CHILD]);
    if
    :: atomic { alive[CHILD] && believes[CHILD] -> believes[CHILD] = false;
                release_fence[CHILD] = believed[CHILD]; release_line[CHILD] = true }
    :: true -> skip
    fi;
end:
    skip
}

active proctype other() {
    claim_line[OTHER] = true
}

/* What was adopted is the child's as long as it lives and has not released it. */
active proctype witness() {
end_watch:
    atomic { (timeout) -> assert(!(adopted && alive[CHILD] && believes[CHILD]) || session == CHILD) }
}
