// broker/core/tap.hpp -- the interface that observes every command the core applies.
//
// The tap sees a command as it is applied, with spans that are valid during the call only. It sees
// a command that makes, changes or deletes a pool, makes or changes an account, or opens a session,
// once the core knows that it is no error: a refused command changes nothing. The command belongs
// to the core's open turn, at Core::now(); the tap sees the commit of every turn, with or without
// commands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/command_ref.hpp"

namespace dibs::core {

class Tap {
  public:
    virtual ~Tap() = default;
    virtual void hear(const CommandRef& command) = 0;
    virtual void hear_of_commit() = 0;
};

}  // namespace dibs::core
