// tests/sim/operator.hpp -- a process of an administrator's: it speaks for workers that do not
// attach, and changes accounts, pools and other people's claims while they run.
//
// It asks as the control thread's conversations do, and judges what it is answered. Some of what it
// says is what it was told; the rest contradicts that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tests/sim/actors.hpp"

namespace dibs::sim {

class Operator final : public Actor {
  public:
    using Actor::Actor;

  private:
    bool connect() override { return true; }
    void live() override;
    void one_thing();
    void finish();
    bool ask(AdminJob& job, const char* what);

    // --- of workers
    void pull();
    void take_pulled(const AdminJob& job);
    void say_what_is_so();
    void report();
    [[nodiscard]] std::string worker();
    [[nodiscard]] uint64_t number();
    [[nodiscard]] uint32_t reported_pool() const;
    void age(AdminJob& job);
    // --- of accounts
    void change_account();
    [[nodiscard]] bool set_account(const AccountSettings& settings, bool balance_given);
    void reload(const Config& config);
    [[nodiscard]] AccountSettings drawn_account();
    // --- of anybody's
    void look();
    void learn(const AdminJob& job);
    void steer();

    std::map<std::string, uint64_t> assigned_;  // claims, by worker, as told last
    std::vector<admin::LeaseT> leases_;         // seen
    std::vector<admin::ClaimT> claims_;
};

}  // namespace dibs::sim
