// tests/demo/sampler_test.cpp -- a picture in which a slot is missing is found.
// SPDX-License-Identifier: Apache-2.0
#include "demo/sampler.hpp"

#include <gtest/gtest.h>

namespace dibs::ctl::demo {
namespace {

dibs_counters picture(uint32_t idle, uint32_t leased, uint32_t slots) {
    dibs_counters counters{};
    counters.idle = idle;
    counters.leased = leased;
    counters.slots = slots;
    return counters;
}

TEST(Sampler, AcceptsPicturesThatAddUp) {
    Sampler sampler(8);
    sampler.weigh(picture(8, 0, 8));
    dibs_counters all = picture(1, 1, 8);
    all.reserved = 1;
    all.recovering = 1;
    all.unknown = 4;
    all.queued = 5;
    sampler.weigh(all);
    EXPECT_EQ(sampler.samples(), 2U);
    EXPECT_EQ(sampler.broken(), 0U);
    EXPECT_EQ(sampler.most_queued(), 5U);
}

TEST(Sampler, FindsASlotThatIsMissingOrCountedTwice) {
    Sampler sampler(8);
    sampler.weigh(picture(7, 0, 8));
    sampler.weigh(picture(8, 1, 8));
    EXPECT_EQ(sampler.broken(), 2U);
    EXPECT_EQ(sampler.first_broken(),
              "idle 7, reserved 0, leased 0, recovering 0, unknown 0 of 8 "
              "slots, 8 expected");
}

TEST(Sampler, FindsAPoolThatHasShrunk) {
    Sampler sampler(8);
    sampler.weigh(picture(7, 0, 7));
    EXPECT_EQ(sampler.broken(), 1U);
}

}  // namespace
}  // namespace dibs::ctl::demo
