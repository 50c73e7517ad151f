// tests/sim/seam.hpp -- where a test can stand between two steps of the broker or the library.
//
// Some of our files are compiled for these tests against headers that seams.py has made from the
// real ones: the same text, with moment() around every store of a doorbell and in every pause, and
// with the tick counter and the CPU's number asked from here. Each test program defines the three.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace dibs::seam {

// Something else may happen now, or this may be the last that its process does.
void moment();
// The same, on the way to it.
template <class T>
T& met(T& what) {
    moment();
    return what;
}
uint64_t ticks();
uint32_t cpu();

}  // namespace dibs::seam
