// tests/hostile/stranger.hpp -- a client that does with its own session whatever it can.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <random>
#include <string>

#include "shm/ring.hpp"

namespace dibs::test {

using Random = std::mt19937_64;

// An entry with anything in it; mostly what could almost be meant.
shm::Submission anything(Random& random);

// Each attaches, does one thing, and leaves; some end their session by it. `entries` counts what
// was put into the ring.
struct Stranger {
    std::string socket;
    Random random;
    std::atomic<uint64_t>* entries;

    void operate(uint64_t count);  // entries in good order, many at a time
    void scribble();               // anything into any word of its memory
    void jump();                   // sequences ahead, behind, zeroed
    void flip();                   // lines and payloads change while they are read
    void lie();     // in the words by which it says what it has read and how it sleeps
    void punch();   // takes the pages away
    void ignore();  // reads no completion
    void storm();   // rings, and fills its bell
};

}  // namespace dibs::test
