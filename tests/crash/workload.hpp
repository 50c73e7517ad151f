// tests/crash/workload.hpp -- random commands that mean something to a core's present state.
//
// Each kind of operation is drawn by name, so that a test can ask for all of them and count what
// it got. Everything follows from the seed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "broker/core/core.hpp"

namespace dibs::tests {

enum class Operation : uint8_t {
    kOpenSession,
    kClaim,
    kClaimMany,
    kClaimOverPools,
    kClaimByLoad,
    kAddApplication,
    kClaimOfMember,
    kAddTask,
    kApplicationGoesOn,
    kApplicationEnds,
    kRemoveTask,
    kCancel,
    kRelease,
    kFail,
    kKeepalive,
    kAdopt,
    kKillFailed,
    kSteerRelease,
    kSteerRenew,
    kSteerCancel,
    kAnnounce,
    kAnnounceAgain,
    kReady,
    kConfirm,
    kRefuseRetry,
    kRefuse,
    kDone,
    kWithdraw,
    kProtect,
    kSessionDeath,
    kHolderDeath,
    kDrainPool,
    kUndrainPool,
    kDrainAll,
    kUndrainAll,
    kGrowPool,
    kDeletePool,
    kSetAccount,
    kDeleteAccount,
    kResetBalance,
    kReportIdle,
    kReportRunning,
    kReportAbsent,
    kPull,
    kUnassign,
    kUpdateClaim,
    kHarvest,
    kTouch,
    kSetType,
    kProvide,
    kAnswerOrder,
    kAnnounceOrder,
    kReportToDispatch,
    kTimePasses,
    kCount
};
inline constexpr size_t kOperations = static_cast<size_t>(Operation::kCount);
const char* name_of(Operation operation);

// The worker pools ordered by account, of cooperative and of strict expiry.
inline constexpr uint32_t kFarm = 7;
inline constexpr uint32_t kVault = 8;

class Workload {
  public:
    Workload(core::Core& core, uint64_t seed) : core_(core), random_(seed) {}

    // Pools and sessions to begin with; runs a turn of its own.
    void set_up();
    // Applies one operation of the kind inside an open turn; false if nothing could mean it now.
    bool apply(Operation operation);
    // Instead, as the turn's only command: a claim that is told before it is applied. False, and
    // nothing done, if its grant cannot be foreseen.
    bool pledge();
    // The time of the next turn; kTimePasses makes it jump.
    core::TimeNs next_time() { return now_ += 1 + below(1000); }
    // The core after a recovery stands elsewhere in memory: nothing here points into it.
    uint64_t below(uint64_t bound) { return random_() % bound; }
    // There is a lease for kTouch.
    [[nodiscard]] bool lapses() const { return !core_.lapsing().empty(); }

  private:
    struct Bytes {
        std::vector<uint8_t> bytes;
    };
    [[nodiscard]] uint32_t any_session();
    [[nodiscard]] uint32_t dying_session();
    [[nodiscard]] uint32_t any_lease(uint32_t flags = 0);  // LeaseFlag: with all of these
    [[nodiscard]] bool is_open(uint32_t session) const;
    [[nodiscard]] uint32_t held_lease();  // of an open session
    [[nodiscard]] uint32_t any_claim();
    shm::SlotState asked_in_state();
    // A worker's slot in the state; kNoRow if there is none.
    [[nodiscard]] uint32_t any_slot(shm::SlotState state, bool kept = false);
    bool claim(uint16_t units_max);
    bool claim_over_pools();
    bool claim_by_load();
    bool add_application();
    bool claim_of_member();
    bool say_of_application(std::initializer_list<core::ApplicationEvent::Kind> kinds);
    [[nodiscard]] uint32_t gang_pool();
    std::string any_application() { return "g" + std::to_string(below(4)); }
    std::string any_task() { return "t" + std::to_string(below(6)); }
    std::string_view any_group() { return below(4) == 0 ? "more" : "rank"; }
    bool announce(bool again);
    bool say(core::WorkerWord::Kind kind, uint32_t slot, bool flag);
    bool end_lease(bool broken);
    bool steer(core::Steer::Kind kind);
    bool harvest();
    bool touch();
    core::PoolConfig tokens_of(uint32_t slots);
    bool set_account();
    core::PoolConfig elastic();
    bool set_type();
    bool provide();
    bool answer_order();
    bool announce_order();
    bool report_to_dispatch();
    [[nodiscard]] uint32_t any_order();
    bool report(core::Report::Kind kind);
    [[nodiscard]] uint32_t any_farm();
    bool pull();
    bool update_claim();
    [[nodiscard]] uint64_t any_number();
    std::string any_worker() { return "r" + std::to_string(below(6)); }
    core::Drain drain(bool on) {  // of a pool, or of one of its slots
        core::Drain drain{.pool = static_cast<uint32_t>(below(14)), .on = on};
        if (below(on ? 8 : 2) == 0) drain.number = static_cast<uint32_t>(below(6));
        return drain;
    }
    std::string any_account() { return "a" + std::to_string(below(4)); }
    std::vector<std::string_view> any_labels();

    core::Core& core_;
    std::mt19937_64 random_;
    core::TimeNs now_ = 1000;
    uint32_t counted_slots_ = 6;
    std::array<uint8_t, 2048> payload_{};
};

}  // namespace dibs::tests
