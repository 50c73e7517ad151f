// benchmarks/fixed_work.hpp -- work of a fixed size, untimed: under a profiler that counts
// instructions two runs agree to the last of them.
//
//   valgrind --tool=callgrind dibs-bench --work core --operations 100000 --batch 64
//   valgrind --tool=callgrind dibs-bench --work trace --trace FILE
//   valgrind --tool=callgrind --toggle-collect='*AccountCore::claim(unsigned int)'
//       dibs-bench --work accounts --operations 25600 --batch 64
//   DIBS_DIBSD=SCRIPT dibs-bench --work claim --operations 20000
//
// where SCRIPT is, with libdibs-valgrind-epoll.so built beside dibs-bench:
//
//   LD_PRELOAD=…/libdibs-valgrind-epoll.so exec valgrind --tool=callgrind
//       --separate-threads=yes --toggle-collect='dibs::Turn::take*' …/dibsd "$@"
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "benchmarks/options.hpp"
#include "benchmarks/placement.hpp"

namespace dibs::bench {

void do_fixed_work(const Options& options, const Placement& placement);

}  // namespace dibs::bench
