/* tests/models/handover.pml -- who holds the descriptors of a session, when broker or keeper dies.
 *
 * A broker makes a session, gives its descriptors to the keeper, waits until the keeper says that
 * it has them, and only then welcomes the client. Either of the two may die at any point. When the
 * broker is dead the keeper starts the next one with what it holds; when the keeper is dead the
 * broker forks a new one and hands back what it holds. If both die before one could make up for the
 * other, all is lost, and that is the manual's word.
 *
 * Correct: a client that was welcomed keeps its session, unless both have died.
 * Variants that must fail: NO_ACK (the welcome leaves when the descriptors have been sent),
 * NO_HANDBACK (a new keeper starts with nothing).
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DEATHS
#define DEATHS 3
#endif

bool broker_lives = true;
bool keeper_lives = true;
bool broker_has;    /* the descriptors of the session */
bool keeper_has;
bool on_the_way;    /* sent, and not yet received: lost with the keeper that was to receive them */
bool acknowledged;
bool welcomed;
bool asked;
bool all_lost;
byte deaths;

active proctype client() {
    asked = true
}

/* The broker, generation after generation: what it knows dies with it, or comes from the keeper. */
active proctype broker() {
end_broker:
    do
    :: atomic { broker_lives && asked && !broker_has && !welcomed -> broker_has = true }
    :: atomic { broker_lives && broker_has && keeper_lives && !keeper_has && !on_the_way ->
                on_the_way = true }
    :: atomic { broker_lives && broker_has && !welcomed &&
#ifdef NO_ACK
                (on_the_way || keeper_has)
#else
                acknowledged
#endif
                -> welcomed = true }
    /* the keeper is dead: a new one, and everything to it */
    :: atomic { broker_lives && !keeper_lives ->
                keeper_lives = true; on_the_way = false; acknowledged = false;
                keeper_has = false;
#ifndef NO_HANDBACK
                keeper_has = broker_has; acknowledged = broker_has
#endif
              }
    od
}

active proctype keeper() {
end_keeper:
    do
    :: atomic { keeper_lives && on_the_way -> on_the_way = false; keeper_has = true }
    :: atomic { keeper_lives && keeper_has && broker_lives && !acknowledged ->
                acknowledged = true }
    /* the broker is dead, and that is proved: the next one, with what is here */
    :: atomic { keeper_lives && !broker_lives ->
                broker_lives = true; broker_has = keeper_has; acknowledged = keeper_has }
    od
}

active proctype fate() {
    do
    :: atomic { deaths < DEATHS && broker_lives ->
                deaths = deaths + 1; broker_lives = false; broker_has = false;
                acknowledged = false; all_lost = all_lost || !keeper_lives;
                /* what a dead sender has sent still arrives; nobody acknowledges to it */
              }
    :: atomic { deaths < DEATHS && keeper_lives ->
                deaths = deaths + 1; keeper_lives = false; keeper_has = false;
                on_the_way = false; all_lost = all_lost || !broker_lives }
    :: break
    od
}

/* Seen when all have come to rest: a living pair that has nothing of a welcomed session. */
active proctype witness() {
end_watch:
    atomic { (timeout) -> assert(all_lost || !welcomed || broker_has) }
}
