// broker/core/tap.hpp -- the interface that observes every command the core applies.
//
// The tap sees a command as it is applied, with spans that are valid during the call only. It sees
// a command that makes or changes a pool or an account, or opens a session, once the core knows
// that it is no error: a refused command changes nothing. The command belongs to the core's open
// turn, at Core::now(); the tap sees the commit of every turn, with or without commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "broker/core/command.hpp"

namespace dibs::core {

class Tap {
  public:
    virtual ~Tap() = default;
    virtual void hear(const PoolConfig& pool) = 0;
    virtual void hear_of_deleted_pool(uint32_t row, bool when_unused) = 0;
    virtual void hear(const AccountConfig& account) = 0;
    virtual void hear_of_deleted(std::string_view account) = 0;
    virtual void hear_of_reset(std::string_view account, std::span<const int64_t> balance) = 0;
    virtual void hear(const SessionOpen& open) = 0;
    virtual void hear_of_death(uint32_t session) = 0;
    virtual void hear(const Claim& claim, bool pledged) = 0;
    virtual void hear(const Cancel& cancel) = 0;
    virtual void hear(const Release& release) = 0;
    virtual void hear(const Keepalive& keepalive) = 0;
    virtual void hear(const Adopt& adopt) = 0;
    virtual void hear(const KillFailed& failed) = 0;
    virtual void hear(const Announce& announce) = 0;
    virtual void hear(const WorkerWord& word) = 0;
    virtual void hear(const Drain& drain) = 0;
    virtual void hear(const Steer& steer) = 0;
    virtual void hear(const Report& report) = 0;
    virtual void hear(const Pull& pull) = 0;
    virtual void hear(const Unassign& unassign) = 0;
    virtual void hear(const UpdateClaim& update) = 0;
    virtual void hear_of_commit() = 0;
};

}  // namespace dibs::core
