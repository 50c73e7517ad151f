/* tests/models/parked.pml -- a parked lease: taken again by its holder, or recalled by the broker.
 *
 * The holder parks its lease and takes it again by compare-and-swap on its word; the broker's one
 * store to the word sets the wanted bit. Another client claims the slot, and will not wait at its
 * first claim. The broker may die between any two steps of a recall; a successor looks at the word
 * before anything else. The holder may die at any time, its word free or taken.
 *
 * Correct: at no time two clients use the slot; a grant's fence is beyond every take's before it; no
 * claim is refused while the lease is free; the slot is not lost.
 * Variants that must fail: END_FIRST (a row ends because its word was seen free, before that is made
 * wanted), COUNT_LATE (a take is counted after it), READ_EARLY (the broker reads the count before it
 * makes the word wanted), REFUSE_FIRST (a claim is refused before the word is looked at),
 * NO_TAG_PROOF (a claim with the tag of a lease that was recalled does not end it).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef TAKES
#define TAKES 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif

/* the word, and the count beside it */
bool free_bit;
bool wanted;
byte count;
/* the holder */
bool alive = true;
bool uses = true;
bool lost;         /* recalled: it has found out */
byte takes;        /* what it has really taken */
bool release_line; /* in its ring */
bool asks;         /* its lease is gone, so it claims anew, with the same tag */
/* committed rows */
bool leased = true;
bool row_wanted;
byte row_fence = 1;
byte pool_fence = 1;
/* the other client */
bool claims;
bool refused;
bool other_uses;
/* the broker */
byte deaths;
byte seen;         /* what it has read in this turn */

#define FENCE_USED (row_fence + takes)

active proctype holder() {
end_holder:
    do
    /* release */
    :: atomic { alive && uses && !wanted -> free_bit = true; uses = false }
    :: atomic { alive && uses && wanted && !release_line -> uses = false; release_line = true; lost = true }
    /* claim again */
    :: alive && !uses && !lost && takes < TAKES ->
#ifndef COUNT_LATE
        if
        :: atomic { alive -> count = takes + 1 }
        :: !alive
        fi;
#endif
        if
        :: atomic { alive && free_bit && !wanted ->
                    free_bit = false; uses = true; takes = takes + 1; assert(!other_uses) }
        :: atomic { alive && wanted -> lost = true; asks = true; free_bit = false; wanted = false }
        :: !alive
        fi;
#ifdef COUNT_LATE
        if
        :: atomic { alive -> count = takes }
        :: !alive
        fi
#endif
    :: !alive -> break
    od
}

active proctype fate() {
    atomic { alive -> alive = false; uses = false }
}

/* The row's end: the next grant is beyond what was read. */
inline end_row(read) {
    leased = false; row_wanted = false; pool_fence = pool_fence + read
}

inline die() { deaths = deaths + 1; goto successor }

active proctype broker() {
successor:
    atomic {
        if
        :: leased && wanted && !row_wanted && free_bit && alive -> end_row(count)
        :: leased && wanted && !row_wanted && !free_bit && alive -> row_wanted = true
        :: else
        fi
    };
end_broker:
    do
    /* a claim that finds the slot idle */
    :: atomic { claims && !leased && !other_uses ->
                assert(pool_fence + 1 > FENCE_USED); assert(!(alive && uses));
                other_uses = true; claims = false }
    /* a claim that lacks it: the word first */
    :: claims && leased && !row_wanted ->
#ifdef REFUSE_FIRST
        atomic { leased && !refused -> assert(!(alive && free_bit)); refused = true; claims = false }
#else
#ifdef END_FIRST
        if
        :: atomic { free_bit -> seen = count };
           atomic { leased -> end_row(seen) };
           atomic { wanted = true }
        :: else
        fi
#else
#ifdef READ_EARLY
        atomic { seen = count };
#endif
        /* only if it is free, or because its quantum is over */
        atomic { wanted = true };
        if
        :: deaths < DEATHS -> die()
        :: true
        fi;
#ifndef READ_EARLY
        atomic { seen = count };
#endif
        if
        :: deaths < DEATHS -> die()
        :: true
        fi;
        atomic {
            if
            :: leased && free_bit -> end_row(seen)
            :: leased && !free_bit -> row_wanted = true; assert(!(alive && free_bit)); refused = true
            :: else
            fi
        }
#endif
#endif
    /* the holder's release, with the fence of its take */
    :: atomic { release_line && leased -> release_line = false; end_row(takes) }
    /* its next claim finds the tag free */
    :: atomic { asks -> asks = false;
#ifndef NO_TAG_PROOF
                if
                :: leased -> end_row(count)
                :: else
                fi;
#endif
                assert(!leased || !alive) }
    /* its death; what its word says is read first */
    :: atomic { !alive && leased && !release_line -> end_row(count) }
    od
}

active proctype other() {
    claims = true
}

/* When all have come to rest: whoever may still take it, or has it; else it was lost. */
active proctype witness() {
end_watch:
    atomic { (timeout) -> assert(other_uses || refused) }
}
