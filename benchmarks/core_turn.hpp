// benchmarks/core_turn.hpp -- plays one turn of a core, and those that it leaves work for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "broker/core/core.hpp"

namespace dibs::bench {

// `follow` hears what each of them has decided. They are 100 ns apart.
template <class Commands, class Follow>
void play_turn(core::Core& core,
               core::TimeNs& now,
               const Commands& commands,
               const Follow& follow) {
    core.begin_turn(now += 100);
    commands();
    for (;;) {
        core.decide();
        follow();
        core.commit();
        core.clear();
        if (!core.work_left()) return;
        core.begin_turn(now += 100);
    }
}

}  // namespace dibs::bench
