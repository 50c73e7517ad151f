// tests/broker/core/core_fixture.hpp -- a core over memory of its own, driven turn by turn.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "shm/lines.hpp"

namespace dibs::tests {

inline constexpr uint64_t kSecond = 1'000'000'000;

// An eighth of a broker's claims and leases: each test formats tables of its own and checks them.
inline constexpr core::Limits kFewRows{
    .claims = 8192, .leases = 2048, .applications = 64, .groups = 64, .tasks = 256};

class CoreFixture : public testing::Test {
  protected:
    explicit CoreFixture(const core::Limits& limits = kFewRows)
        : storage_(core::state_size(limits)) {
        core::format_state(memory(), limits);
        core_ = std::make_unique<core::Core>(memory());
    }

    std::span<std::byte> memory() { return storage_.bytes(); }
    core::Core& core() { return *core_; }
    // Another core over the same bytes, as if the broker had died.
    void attach() { core_ = std::make_unique<core::Core>(memory()); }

    // A turn at `now`: the commands, the pass, the commit. Returns what was decided; a turn that
    // the log cuts is followed to its end, one vector in all.
    template <class Commands>
    std::vector<core::Decision> turn(core::TimeNs now, const Commands& commands) {
        std::vector<core::Decision> all;
        core().begin_turn(now);
        commands();
        cuts_ = 0;
        for (;;) {
            core().decide();
            const auto decided = core().decisions();
            all.insert(all.end(), decided.begin(), decided.end());
            core().commit();
            core().clear();
            EXPECT_EQ(core().check_all(), std::vector<std::string>{});
            if (!core().work_left()) return all;
            ++cuts_;
            core().begin_turn(now);
        }
    }
    // How often the last turn was cut.
    [[nodiscard]] int cuts() const { return cuts_; }

    uint32_t counted_pool(const char* name, uint32_t slots) {
        core::PoolConfig config;
        config.name = name;
        config.slots = slots;
        config.backlog_max = 1'000'000;
        uint32_t row = shm::kNoRow;
        turn(0, [&] { row = core().set_pool(config, nullptr); });
        return row;
    }
    uint32_t session(uint32_t uid = 1000) {
        uint32_t row = shm::kNoRow;
        turn(0, [&] { row = core().open_session({.uid = uid, .pid = uid}); });
        return row;
    }
    void claim(uint32_t session, uint16_t tag, uint32_t pool, uint16_t units = 1) {
        core::Claim command;
        command.session = session;
        command.tag = tag;
        command.pool = pool;
        command.units = units;
        core().apply(command);
    }

  private:
    shm::Lines storage_;
    std::unique_ptr<core::Core> core_;
    int cuts_ = 0;
};

}  // namespace dibs::tests
