// benchmarks/peers/kinds.hpp -- what programs use in place of dibs, each as a source of slots.
//
// Servers and libraries of other projects are looked for when the benchmark runs; no build needs
// them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/placement.hpp"
#include "benchmarks/slot_source.hpp"

namespace dibs::bench {

struct Kind {
    std::string name;
    std::string absent;  // what is missing here; empty = it can be measured
    // With a server of its own on those CPUs, if it has one.
    std::function<std::unique_ptr<SlotSource>(uint32_t slots, const Cpus& server)> make;
};

enum class RedisWay { kPop, kMove, kScript };
Kind redis_kind(RedisWay way);
Kind beanstalkd_kind();
Kind nats_kind();
Kind zeromq_kind();
Kind postgresql_kind();

}  // namespace dibs::bench
