// tests/process/several_pools_test.cpp -- claims over several pools through libdibs, against a real
// dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/process/child.hpp"
#include "tests/process/kept_dibsd.hpp"
#include "tests/process/parked.hpp"

namespace dibs::test {
namespace {

std::string two_pools(const std::string& more = "") {
    return "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\n"
           "attributes = [{ device = \"a\" }, { device = \"b\" }]\n" +
           more + "[[pool]]\nname = \"port\"\nkind = \"counted\"\nslots = 1\n" + more;
}

// "gpu:UNITS port:1", or the other way round.
struct Asked {
    Asked(uint32_t units, const Attached& second, uint32_t further = 1)
        : also{second.pool(), further}, options(Attached::asking(DIBS_FOREVER, units)) {
        options.also = &also;
        options.also_count = 1;
    }
    dibs_pool_units also;
    dibs_claim_options options;
};

dibs_part part_of(const Attached& client, const dibs_lease& lease, uint32_t index) {
    dibs_part part = {};
    EXPECT_EQ(dibs_lease_part(client, &lease, index, &part), DIBS_OK);
    return part;
}

void await_rest(const Attached& gpu, const Attached& port) {
    for (const Attached* pool : {&gpu, &port})
        pool->await([](const dibs_counters& now) {
            return now.idle == now.slots && now.leased == 0 && now.queued == 0;
        });
}

TEST(SeveralPools, AreGrantedAtOnceUnderOneLease) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const Asked asked(2, port);
    const dibs_completion granted = gpu.claim(asked.options);
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_EQ(granted.pool, gpu.pool());
    EXPECT_EQ(granted.lease.units, 3U);
    const dibs_part first = part_of(gpu, granted.lease, 0);
    EXPECT_EQ(first.pool, gpu.pool());
    EXPECT_EQ(first.units, 2U);
    EXPECT_EQ(first.id, granted.lease.id);
    EXPECT_EQ(first.fence, granted.lease.fence);
    const dibs_part second = part_of(gpu, granted.lease, 1);
    EXPECT_EQ(second.pool, port.pool());
    EXPECT_EQ(second.units, 1U);
    EXPECT_EQ(second.first_unit, 2U);
    EXPECT_NE(second.id, first.id);
    EXPECT_EQ(second.fence, 1U);
    dibs_part none = {};
    EXPECT_EQ(dibs_lease_part(gpu, &granted.lease, 2, &none), DIBS_EUNITS);
    const char* device = nullptr;
    ASSERT_EQ(dibs_lease_attribute(gpu, &granted.lease, 1, "device", &device), DIBS_OK);
    EXPECT_STREQ(device, "b");
    dibs_slot slot = {};
    ASSERT_EQ(dibs_lease_slot(gpu, &granted.lease, 2, &slot), DIBS_OK);
    EXPECT_EQ(slot.number, 0U);
    EXPECT_EQ(slot.attributes_size, 0U);
    EXPECT_EQ(dibs_release(gpu, &granted.lease, DIBS_FOREVER), DIBS_OK);
    await_rest(gpu, port);
}

TEST(SeveralPools, OfALeaseOverOneAreOne) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const dibs_completion granted = gpu.claim();
    const dibs_part part = part_of(gpu, granted.lease, 0);
    EXPECT_EQ(part.pool, gpu.pool());
    EXPECT_EQ(part.units, 1U);
    EXPECT_EQ(part.fence, granted.lease.fence);
}

TEST(SeveralPools, InOppositeOrderWaitForNoOneAnother) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const Asked one(2, port);
    const Asked other(1, gpu, 2);
    const auto use = [](const Attached& client, const dibs_claim_options& options) {
        for (int round = 0; round < 200; ++round) {
            const dibs_completion end = client.claim(options);
            ASSERT_EQ(end.outcome, DIBS_GRANTED);
            ASSERT_EQ(dibs_release(client, &end.lease, DIBS_NOWAIT), DIBS_OK);
        }
    };
    std::thread first([&] { use(gpu, one.options); });
    use(port, other.options);
    first.join();
    await_rest(gpu, port);
}

TEST(SeveralPools, AreFreeAgainWhenTheHolderDies) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const pid_t child = fork();
    if (child == 0) {
        const Attached holder(dibsd.socket(), "gpu");
        const Asked asked(2, Attached(dibsd.socket(), "port"));
        (void)holder.claim(asked.options);
        for (;;)
            pause();
    }
    gpu.await([](const dibs_counters& now) { return now.leased == 2; });
    port.await([](const dibs_counters& now) { return now.leased == 1; });
    ASSERT_EQ(kill(child, SIGKILL), 0);
    await_rest(gpu, port);
}

TEST(SeveralPools, AreKeptAliveAndExpireTogether) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools("grace = \"1ms\"\n"));
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    Asked asked(1, port);
    asked.options.interval_ns = 300 * DIBS_MILLISECOND;
    const dibs_completion granted = gpu.claim(asked.options);
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    int64_t given_ns = 0;
    ASSERT_EQ(dibs_keepalive(gpu, &granted.lease, 0, 5 * DIBS_SECOND, &given_ns), DIBS_OK);
    EXPECT_EQ(given_ns, 300 * DIBS_MILLISECOND);
    await_rest(gpu, port);
    EXPECT_EQ(dibs_lease_state(gpu, &granted.lease, nullptr), DIBS_ENDED);
}

TEST(SeveralPools, StayWithTheirHolderWhenTheBrokerIsKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const Asked asked(2, port);
    const dibs_completion granted = gpu.claim(asked.options);
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    other.submit(&asked.options);  // waits over the death
    port.await([](const dibs_counters& now) { return now.queued == 1; });
    dibsd.kill_broker();
    const dibs_part second = part_of(gpu, granted.lease, 1);
    EXPECT_EQ(second.pool, port.pool());
    ASSERT_EQ(dibs_release(gpu, &granted.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_completion next = reap_one(other);
    ASSERT_EQ(next.outcome, DIBS_GRANTED);
    EXPECT_EQ(part_of(other, next.lease, 1).fence, second.fence + 1);
    EXPECT_EQ(dibs_release(other, &next.lease, DIBS_FOREVER), DIBS_OK);
    await_rest(gpu, port);
}

TEST(SeveralPools, AreGrantedOnceHoweverOftenTheBrokerIsKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const Asked asked(1, port);
    uint64_t fence = 0;
    for (int round = 0; round < 5; ++round) {
        gpu.submit(&asked.options);
        dibsd.kill_broker();  // before, between or behind grant and completion
        const dibs_completion end = reap_one(gpu);
        ASSERT_EQ(end.outcome, DIBS_GRANTED);
        const dibs_part second = part_of(gpu, end.lease, 1);
        ASSERT_GT(second.fence, fence);
        fence = second.fence;
        ASSERT_EQ(dibs_release(gpu, &end.lease, DIBS_FOREVER), DIBS_OK);
    }
    await_rest(gpu, port);
}

TEST(SeveralPools, RecallWhatIsParkedInAnyOfThem) {
    const Folder folder;
    const KeptDibsd dibsd(folder, parking_pool("gpu", 1, "1h") + parking_pool("port", 1, "1h"));
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    put(port, take(port));
    const Asked asked(1, port);
    const dibs_completion granted = gpu.claim(asked.options);  // and does not wait for an hour
    EXPECT_EQ(granted.outcome, DIBS_GRANTED);
}

TEST(SeveralPools, AreAdoptedTogether) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    const Attached port(dibsd.socket(), "port");
    const Asked asked(2, port);
    const dibs_completion granted = gpu.claim(asked.options);
    ASSERT_EQ(granted.outcome, DIBS_GRANTED);
    dibs_lease adopted = {};
    ASSERT_EQ(dibs_adopt(other, granted.lease.id, granted.lease.fence, 5 * DIBS_SECOND, &adopted),
              DIBS_OK);
    EXPECT_EQ(adopted.units, 3U);
    EXPECT_EQ(part_of(other, adopted, 1).pool, port.pool());
    const char* device = nullptr;
    ASSERT_EQ(dibs_lease_attribute(other, &adopted, 1, "device", &device), DIBS_OK);
    EXPECT_STREQ(device, "b");
    EXPECT_EQ(dibs_release(other, &adopted, DIBS_FOREVER), DIBS_OK);
    await_rest(gpu, port);
}

TEST(SeveralPools, NameEachPoolOnce) {
    const Folder folder;
    const KeptDibsd dibsd(folder, two_pools());
    const Attached gpu(dibsd.socket(), "gpu");
    const Asked asked(1, gpu);
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(gpu, gpu.pool(), &asked.options, &end), DIBS_EARGUMENT);
    Asked unknown(1, gpu);
    unknown.also.pool = 4000;
    EXPECT_EQ(dibs_claim(gpu, gpu.pool(), &unknown.options, &end), DIBS_EPOOL);
}

}  // namespace
}  // namespace dibs::test
