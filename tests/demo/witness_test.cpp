// tests/demo/witness_test.cpp -- the witness sees a slot that is held twice.
// SPDX-License-Identifier: Apache-2.0
#include "demo/witness.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace dibs::ctl::demo {
namespace {

TEST(Witness, CountsUsesThatFollowEachOther) {
    Witness witness = Witness::create(3);
    witness.start_use(2, 7);
    EXPECT_EQ(witness.in_use(), 1U);
    EXPECT_EQ(witness.cells()[2].claim, 7U);
    witness.end_use(2, 7);
    witness.start_use(2, 8);
    witness.end_use(2, 8);
    EXPECT_EQ(witness.in_use(), 0U);
    EXPECT_EQ(witness.uses(), 2U);
    EXPECT_EQ(witness.faults(), 0U);
}

TEST(Witness, CatchesASlotThatIsHeldTwice) {
    Witness witness = Witness::create(1);
    witness.start_use(0, 7);
    witness.start_use(0, 8);
    EXPECT_EQ(witness.faults(), 1U);
    EXPECT_EQ(witness.cells()[0].last_fault, 8U);
    EXPECT_EQ(witness.cells()[0].claim, 7U);
}

TEST(Witness, CatchesAUseThatEndsUnderSomebodyElse) {
    Witness witness = Witness::create(1);
    witness.start_use(0, 7);
    witness.end_use(0, 9);
    EXPECT_EQ(witness.faults(), 1U);
}

TEST(Witness, IsOneMemoryForAllThatAttach) {
    Witness witness = Witness::create(2);
    Witness other = Witness::attach(dup(witness.fd()), 2);
    witness.start_use(1, 5);
    other.start_use(1, 6);
    EXPECT_EQ(witness.faults(), 1U);
    EXPECT_EQ(other.in_use(), 1U);
}

}  // namespace
}  // namespace dibs::ctl::demo
