// tests/clientlib/allocation_test.cpp -- after dibs_connect the library takes no memory: every call
// of the allocator by this thread is counted.
// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include "tests/clientlib/fixture.hpp"

namespace {
thread_local uint64_t allocations = 0;
}

// The C library's own entry points: what malloc was before this program put itself in its place.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);

void* malloc(size_t size) {
    ++allocations;
    return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
    ++allocations;
    return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
    ++allocations;
    return __libc_realloc(memory, size);
}
}

namespace dibs::test {
namespace {

TEST(Allocation, IsCounted) {
    const uint64_t before = allocations;
    void* volatile memory = malloc(8);  // volatile: the pair is not optimised away
    free(memory);
    EXPECT_EQ(allocations, before + 1);
}

TEST(Allocation, DoesNotHappenOnTheClaimPath) {
    FakeBroker broker;
    Client client(broker);
    const dibs_option option = {"model", "large"};
    dibs_claim_options options = {};
    options.size = sizeof options;
    options.timeout_ns = DIBS_FOREVER;
    options.options = &option;
    options.option_count = 1;
    dibs_counters counters = {};
    counters.size = sizeof counters;
    dibs_op op = operation(DIBS_OP_CLAIM, 0);
    int failures = 0;
    const uint64_t before = allocations;
    for (int i = 0; i < 1000; ++i) {
        dibs_completion end = {};
        failures += dibs_claim(client, 0, &options, &end) != DIBS_OK ? 1 : 0;
        failures += dibs_keepalive(client, &end.lease, 0, DIBS_NOWAIT, nullptr) != DIBS_OK ? 1 : 0;
        failures += dibs_release(client, &end.lease, DIBS_FOREVER) != DIBS_OK ? 1 : 0;
        failures += dibs_submit(client, &op, 1) != 1 ? 1 : 0;
        failures += dibs_reap(client, &end, 1, DIBS_FOREVER) != 1 ? 1 : 0;
        failures += dibs_release(client, &end.lease, DIBS_NOWAIT) != DIBS_OK ? 1 : 0;
        failures += dibs_snapshot(client, 0, &counters) != DIBS_OK ? 1 : 0;
    }
    EXPECT_EQ(allocations, before);
    EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace dibs::test
