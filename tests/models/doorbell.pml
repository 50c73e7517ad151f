/* tests/models/doorbell.pml -- a ring with a sleeping consumer: no wake-up is lost, whoever dies.
 *
 * One producer publishes ENTRIES lines and rings if the consumer says that it sleeps; one consumer
 * polls, arms its word, looks again, sleeps until the bell or the death notice. It is the pair
 * publish_submissions / arm_submissions of shm/doorbell.hpp; the other direction has the same shape.
 *
 * Stores go through a store buffer of one word for each side, as on real processors: a store is
 * seen by the other side only when it has been flushed, which may happen at any later time. A
 * sequentially consistent store flushes at once. The producer may die after any of its steps; the
 * kernel then flushes what it had stored and raises the death notice.
 *
 * Correct: in every end state the consumer has read all that was published.
 * Variants that must fail: NO_BARRIER (the producer's store is not flushed before its load),
 * NO_RECHECK (the consumer does not look again), NO_DEATH_DRAIN (a death notice does not read the
 * ring).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ENTRIES
#define ENTRIES 3
#endif

byte tail;            /* as the consumer's loads see it */
byte tail_buffer;     /* stored by the producer, not yet flushed */
bool tail_buffered;
bool need_wakeup;     /* as the producer's loads see it */
bool need_buffer;
bool need_buffered;
bool bell;            /* edge: set by a ring, taken by the wake-up */
bool dead;            /* the death notice */
byte published;       /* ghost: what the producer has stored, flushed or not */
byte head;            /* the consumer's cursor */
bool finished;        /* ghost: the producer will do no more */

inline flush_tail() {
    if
    :: tail_buffered -> tail = tail_buffer; tail_buffered = false
    :: else -> skip
    fi
}

inline flush_need() {
    if
    :: need_buffered -> need_wakeup = need_buffer; need_buffered = false
    :: else -> skip
    fi
}

/* The memory system: may flush either buffer whenever it likes. */
active proctype memory() {
end:
    do
    :: atomic { tail_buffered -> flush_tail() }
    :: atomic { need_buffered -> flush_need() }
    od
}

active proctype producer() {
    bool rings;
    do
    :: published < ENTRIES ->
        atomic { flush_tail(); tail_buffer = published + 1; tail_buffered = true;
                 published = published + 1 };
#ifndef NO_BARRIER
        atomic { flush_tail() };              /* seq_cst store */
#endif
        if
        :: true -> goto died                  /* published and not rung */
        :: true -> skip
        fi;
        rings = need_wakeup;                  /* seq_cst load */
        if
        :: rings -> bell = true
        :: else -> skip
        fi
    :: published == ENTRIES -> break
    :: true -> goto died
    od;
    finished = true;
    goto done;
died:
    atomic { flush_tail(); dead = true; finished = true };
done:
    skip
}

inline read_ring() {
    do
    :: head < tail -> head = head + 1
    :: head >= tail -> break
    od
}

active proctype consumer() {
    bool buried;
poll:
    read_ring();
    atomic { flush_need(); need_buffer = true; need_buffered = true };
    atomic { flush_need() };                  /* seq_cst store */
#ifndef NO_RECHECK
    if
    :: head < tail -> atomic { flush_need(); need_wakeup = false }; goto poll
    :: else -> skip
    fi;
#endif
end_sleep:
    if
    :: atomic { bell -> bell = false }; need_wakeup = false; goto poll
    :: atomic { dead && !buried -> buried = true };
#ifndef NO_DEATH_DRAIN
        read_ring();
#endif
        goto end_sleep
    fi
}

/* Nothing can move any more and something lies unread: a wake-up was lost. */
active proctype witness() {
end_watch:
    atomic {
        (timeout) ->
        assert(!finished || head == published)
    }
}
