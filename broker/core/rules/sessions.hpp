// broker/core/rules/sessions.hpp -- opens sessions, and returns what a dead one had.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "broker/core/module.hpp"
#include "broker/core/store/chains.hpp"

namespace dibs::core {

// What a session's tag names: nothing, or a claim's row with one of these marks, or none.
inline constexpr uint32_t kTagFree = 0xffffffffU;
inline constexpr uint32_t kTagLease = 0x80000000U;
inline constexpr uint32_t kTagFresh = 0x40000000U;

struct Sessions : Module<Sessions> {
    explicit Sessions(const State& rows)
        : Module(rows),
          session_slots(rows.sessions.size(), rows.slots.size()),
          tags(rows.sessions.size()) {}

    Chains session_slots;                     // list: session, row: slot
    std::vector<std::vector<uint32_t>> tags;  // session → tag → claim row, or lease | kTagLease
    std::vector<uint32_t> dying;              // sessions whose things are being returned

    // sessions.cpp
    uint32_t open_session(const SessionOpen& open, std::string* why);
    void session_died(uint32_t session);
    void holder_died(uint32_t session);
    bool bury_the_dying();
    // It is outlived, and has nothing left to give back before its own death.
    [[nodiscard]] bool waits_for_tree(uint32_t session) const;

  private:
    // sessions.cpp
    void begin_to_die(uint32_t session, shm::SessionState as);
    bool bury(uint32_t session);
    void lose_slot(uint32_t slot);
};

}  // namespace dibs::core
