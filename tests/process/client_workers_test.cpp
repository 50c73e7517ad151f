// tests/process/client_workers_test.cpp -- libdibs and dibsd: a claim from a client to a worker and
// back, with payload and answer, refusals and deaths on the way.
// SPDX-License-Identifier: Apache-2.0
#include <poll.h>
#include <sched.h>

#include <atomic>
#include <string>
#include <thread>

#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

const char* const kBrowsers =
    "[[pool]]\nname = \"browsers\"\nkind = \"worker\"\nanswer_max = 64\nattributes_max = 64\n"
    "reservation_ttl = \"10min\"\n";

uint64_t announce(const Attached& worker, const char* name, uint64_t tag, bool ready = true) {
    const dibs_option attribute = {"port", name};
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.name = name;
    options.attributes = &attribute;
    options.attribute_count = 1;
    options.worker_tag = tag;
    options.ready = ready ? 1 : 0;
    uint64_t slot = 0;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
    return slot;
}

dibs_completion reap(const Attached& client) {
    dibs_completion end = {};
    EXPECT_EQ(dibs_reap(client, &end, 1, DIBS_FOREVER), 1);
    return end;
}

dibs_assignment next(const Attached& worker) {
    dibs_assignment assignment = {};
    EXPECT_EQ(dibs_next_assignment(worker, DIBS_FOREVER, &assignment), DIBS_OK);
    return assignment;
}

TEST(Work, TravelsToTheWorkerAndItsAnswerBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached worker(dibsd.socket(), "browsers");
    const Attached client(dibsd.socket(), "browsers");
    const uint64_t slot = announce(worker, "b-1", 31);
    const dibs_option option = {"url", "about:blank"};
    const char* labels[] = {"headless"};
    dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    want.body = "body";
    want.body_size = 4;
    want.options = &option;
    want.option_count = 1;
    want.labels = labels;
    want.label_count = 1;
    client.submit(&want);

    const dibs_assignment assignment = next(worker);
    EXPECT_EQ(assignment.kind, DIBS_ASSIGN);
    EXPECT_EQ(assignment.slot, slot);
    EXPECT_EQ(assignment.worker_tag, 31U);
    EXPECT_EQ(std::string(static_cast<const char*>(assignment.body), assignment.body_size), "body");
    ASSERT_EQ(assignment.option_count, 1U);
    EXPECT_STREQ(assignment.options[0].value, "about:blank");
    ASSERT_EQ(assignment.label_count, 1U);
    EXPECT_STREQ(assignment.labels[0], "headless");
    EXPECT_EQ(dibs_confirm(worker, slot, assignment.round, "ws://1", 6, DIBS_FOREVER), DIBS_OK);

    const dibs_completion held = reap(client);
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    const void* answer = nullptr;
    size_t size = 0;
    ASSERT_EQ(dibs_lease_answer(client, &held.lease, 0, &answer, &size), DIBS_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(answer), size), "ws://1");
    const char* port = nullptr;
    ASSERT_EQ(dibs_lease_attribute(client, &held.lease, 0, "port", &port), DIBS_OK);
    EXPECT_STREQ(port, "b-1");

    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_assignment revoked = next(worker);
    EXPECT_EQ(revoked.kind, DIBS_REVOKE);
    EXPECT_EQ(revoked.slot, slot);
    EXPECT_EQ(dibs_ready(worker, slot, revoked.round, DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.idle == 1; });
}

TEST(Work, EndsWithTheWorkersDoneAndItsAnswer) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached worker(dibsd.socket(), "browsers");
    const Attached client(dibsd.socket(), "browsers");
    const uint64_t slot = announce(worker, "b-1", 31);
    client.submit();
    const dibs_assignment assignment = next(worker);
    EXPECT_EQ(dibs_confirm(worker, slot, assignment.round, "ws://1", 6, DIBS_NOWAIT), DIBS_OK);
    const dibs_completion held = reap(client);
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    const void* first = nullptr;
    size_t first_size = 0;
    ASSERT_EQ(dibs_lease_answer(client, &held.lease, 0, &first, &first_size), DIBS_OK);
    EXPECT_EQ(dibs_done(worker, slot, assignment.round, "42", 2, 1, DIBS_FOREVER), DIBS_OK);
    const dibs_completion event = reap(client);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.code, DIBS_EDONE);
    const void* answer = nullptr;
    size_t size = 0;
    ASSERT_EQ(dibs_lease_answer(client, &held.lease, 0, &answer, &size), DIBS_OK);
    EXPECT_EQ(std::string(static_cast<const char*>(answer), size), "42");
    EXPECT_EQ(std::string(static_cast<const char*>(first), first_size), "ws://1");
    client.await([](const auto& pool) { return pool.idle == 1; });
}

// One slot of a sandbox host, of which two claims have a part each, side by side.
TEST(Work, TravelsInPartsOfOneSlot) {
    const Folder folder;
    const Dibsd dibsd(folder,
                      "[[pool]]\nname = \"boxes\"\nkind = \"worker\"\nanswer_max = 64\n"
                      "resources = { memory = \"8GiB\", cpu = 4 }\n");
    const Attached worker(dibsd.socket(), "boxes");
    const Attached client(dibsd.socket(), "boxes");
    const char* has[] = {"memory=32GiB", "cpu=8"};
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.name = "host";
    options.worker_tag = 31;
    options.ready = 1;
    options.resources = has;
    options.resource_count = 2;
    options.parts = 2;
    uint64_t slot = 0;
    ASSERT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
    const char* least[] = {"memory=12GiB"};
    const char* most[] = {"memory=16GiB", "cpu=3"};
    dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    want.body = "body";
    want.body_size = 4;
    want.least = least;
    want.least_count = 1;
    want.most = most;
    want.most_count = 2;
    client.submit(&want, 1);
    client.submit(&want, 2);

    uint64_t parts[2] = {};
    uint64_t rounds[2] = {};
    for (int at = 0; at < 2; ++at) {
        const dibs_assignment assignment = next(worker);
        EXPECT_EQ(assignment.kind, DIBS_ASSIGN);
        EXPECT_NE(assignment.slot, slot);
        EXPECT_EQ(assignment.worker_tag, 31U);
        const std::string body(static_cast<const char*>(assignment.body), assignment.body_size);
        EXPECT_EQ(body, "body");
        ASSERT_EQ(assignment.resource_count, 2U);
        EXPECT_STREQ(assignment.resources[0], "cpu=3");
        EXPECT_STREQ(assignment.resources[1], "memory=17179869184");
        parts[at] = assignment.slot;
        rounds[at] = assignment.round;
        // The counters follow the assignment; a second one would have come before them.
        client.await([](const auto& pool) { return pool.reserved == 1; });
        dibs_assignment second = {};
        EXPECT_EQ(dibs_next_assignment(worker, DIBS_NOWAIT, &second), DIBS_ETIMEDOUT);
        EXPECT_EQ(dibs_confirm(worker, parts[at], rounds[at], "here", 4, DIBS_FOREVER), DIBS_OK);
    }
    EXPECT_NE(parts[0], parts[1]);
    const dibs_completion first = reap(client);
    const dibs_completion second = reap(client);
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    ASSERT_EQ(second.outcome, DIBS_GRANTED);
    const char* memory = nullptr;
    ASSERT_EQ(dibs_lease_attribute(client, &first.lease, 0, "resource.memory", &memory), DIBS_OK);
    EXPECT_STREQ(memory, "17179869184");

    // Another session's word of a part, one of an earlier round, one of its slot.
    EXPECT_EQ(dibs_done(client, parts[0], rounds[0], nullptr, 0, 1, DIBS_FOREVER), DIBS_ENOTHOLDER);
    EXPECT_EQ(dibs_done(worker, parts[0], rounds[0] - 1, nullptr, 0, 1, DIBS_FOREVER), DIBS_ESTALE);
    EXPECT_EQ(dibs_protect(worker, parts[0], 1, DIBS_FOREVER), DIBS_ESTATE);
    EXPECT_EQ(dibs_ready(worker, slot, 0, DIBS_FOREVER), DIBS_ESTATE);

    EXPECT_EQ(dibs_done(worker, parts[0], rounds[0], nullptr, 0, 1, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap(client).kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(dibs_release(client, &second.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_assignment revoked = next(worker);
    EXPECT_EQ(revoked.kind, DIBS_REVOKE);
    EXPECT_EQ(revoked.slot, parts[1]);
    EXPECT_EQ(dibs_ready(worker, parts[1], rounds[1], DIBS_FOREVER), DIBS_OK);
    client.await([](const auto& pool) { return pool.idle == 1 && pool.leased == 0; });

    // More parts than a slot may have, than this session has completions for, and more than the
    // slot's parts have.
    options.parts = 257;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_EVECTOR);
    options.parts = 256;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_ENOROOM);
    has[0] = "swap=1";
    options.parts = 2;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_EVECTOR);
}

TEST(Work, ThatIsRefusedIsTriedAgainOrEndsWithTheWorkersCode) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached worker(dibsd.socket(), "browsers");
    const Attached client(dibsd.socket(), "browsers");
    const uint64_t first = announce(worker, "b-1", 31);
    client.submit();
    dibs_assignment assignment = next(worker);
    EXPECT_EQ(dibs_refuse(worker, first, assignment.round, 7, 1, DIBS_FOREVER), DIBS_OK);
    const uint64_t second = announce(worker, "b-2", 32);
    assignment = next(worker);
    EXPECT_EQ(assignment.slot, second);
    EXPECT_EQ(dibs_refuse(worker, second, assignment.round, -9, 0, DIBS_FOREVER), DIBS_OK);
    const dibs_completion end = reap(client);
    EXPECT_EQ(end.outcome, DIBS_REJECTED);
    EXPECT_EQ(end.code, DIBS_EREFUSED);
    EXPECT_EQ(end.worker_code, -9);
}

TEST(Work, WordsOfAnotherRoundOrSlotAreRefusedEachWithItsCode) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached worker(dibsd.socket(), "browsers");
    const Attached other(dibsd.socket(), "browsers");
    const uint64_t slot = announce(worker, "b-1", 31);
    other.submit();
    const dibs_assignment assignment = next(worker);
    EXPECT_EQ(dibs_confirm(worker, slot, assignment.round + 5, nullptr, 0, DIBS_FOREVER),
              DIBS_ESTALE);
    EXPECT_EQ(dibs_confirm(worker, slot + 1000, 1, nullptr, 0, DIBS_FOREVER), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_confirm(other, slot, assignment.round, nullptr, 0, DIBS_FOREVER),
              DIBS_ENOTHOLDER);
    const std::string large(65, 'a');
    EXPECT_EQ(dibs_confirm(worker, slot, assignment.round, large.data(), 65, DIBS_FOREVER),
              DIBS_EPAYLOAD);
    EXPECT_EQ(dibs_confirm(worker, slot, assignment.round, nullptr, 0, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(reap(other).outcome, DIBS_GRANTED);
    dibs_announce_options same = {};
    same.size = sizeof same;
    same.name = "b-1";
    uint64_t id = 0;
    EXPECT_EQ(dibs_announce(other, other.pool(), &same, DIBS_FOREVER, &id), DIBS_ENAMEINUSE);
}

TEST(Work, ProtectedOrNotReadyIsNotGranted) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached worker(dibsd.socket(), "browsers");
    const uint64_t slot = announce(worker, "b-1", 31, false);
    worker.await([](const auto& pool) { return pool.recovering == 1; });
    EXPECT_EQ(dibs_protect(worker, slot, 1, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_ready(worker, slot, 0, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(worker.claim(Attached::asking(0)).code, DIBS_EBUSY);
    EXPECT_EQ(dibs_protect(worker, slot, 0, DIBS_FOREVER), DIBS_OK);
    worker.await([](const auto& pool) { return pool.idle == 1; });
    EXPECT_EQ(dibs_withdraw(worker, slot, DIBS_FOREVER), DIBS_OK);
    worker.await([](const auto& pool) { return pool.slots == 0; });
}

TEST(Work, ThatFailedBringsItsWorkerBackThoughAReleaseWouldDo) {
    const Folder folder;
    const Dibsd dibsd(folder, std::string(kBrowsers) + "release_is_ready = true\n");
    const Attached worker(dibsd.socket(), "browsers");
    const Attached client(dibsd.socket(), "browsers");
    const uint64_t slot = announce(worker, "b-1", 31);
    for (const bool broken : {false, true}) {
        client.submit();
        const dibs_assignment assignment = next(worker);
        ASSERT_EQ(assignment.kind, DIBS_ASSIGN);
        dibs_confirm(worker, slot, assignment.round, nullptr, 0, DIBS_NOWAIT);
        const dibs_completion held = reap(client);
        if (broken) {
            EXPECT_EQ(dibs_fail(client, &held.lease, DIBS_FOREVER), DIBS_OK);
            EXPECT_EQ(next(worker).kind, DIBS_REVOKE);
            client.await([](const auto& pool) { return pool.recovering == 1; });
        } else {
            EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
            client.await([](const auto& pool) { return pool.idle == 1; });
        }
    }
}

// A worker in an event loop: it sleeps in poll and finds every assignment.
TEST(Work, ReachesAWorkerThatPolls) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    std::thread serving([&] {
        const Attached worker(dibsd.socket(), "browsers");
        announce(worker, "b-1", 1);
        for (int revoked = 0; revoked < 100;) {
            if (dibs_arm(worker) == DIBS_OK) {
                pollfd one = {dibs_fd(worker), POLLIN, 0};
                poll(&one, 1, 100);
            }
            dibs_dispatch(worker);
            dibs_assignment assignment;
            while (dibs_next_assignment(worker, DIBS_NOWAIT, &assignment) == DIBS_OK) {
                if (assignment.kind == DIBS_REVOKE) {
                    ++revoked;
                    dibs_ready(worker, assignment.slot, assignment.round, DIBS_NOWAIT);
                } else {
                    dibs_confirm(
                        worker, assignment.slot, assignment.round, nullptr, 0, DIBS_NOWAIT);
                }
            }
        }
    });
    const Attached client(dibsd.socket(), "browsers");
    for (int i = 0; i < 100; ++i) {
        const dibs_completion held = client.claim();
        ASSERT_EQ(held.outcome, DIBS_GRANTED);
        ASSERT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_OK);
    }
    serving.join();
    dibs_totals totals = {};
    totals.size = sizeof totals;
    EXPECT_EQ(dibs_pool_totals(client, client.pool(), &totals), DIBS_OK);
    EXPECT_EQ(totals.net_found_work, 0U);
}

TEST(Work, IsLostWithItsWorkersProcess) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    const Attached client(dibsd.socket(), "browsers");
    Child child([&](const Child&) {
        const Attached worker(dibsd.socket(), "browsers");
        const uint64_t slot = announce(worker, "b-1", 31);
        const dibs_assignment assignment = next(worker);
        dibs_confirm(worker, slot, assignment.round, nullptr, 0, DIBS_FOREVER);
        for (;;)
            pause();
    });
    const dibs_completion held = client.claim();
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    child.kill();
    const dibs_completion event = reap(client);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.code, DIBS_EWORKERLOST);
    client.await([](const auto& pool) { return pool.slots == 0; });
}

// Two threads, two sessions: a worker that serves, a client that claims as fast as it can.
TEST(Work, IsDoneAThousandTimesAndEveryWakeUpArrives) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    std::thread serving([&] {
        const Attached worker(dibsd.socket(), "browsers");
        announce(worker, "b-1", 1);
        announce(worker, "b-2", 2);
        for (int revoked = 0; revoked < 1000;) {
            const dibs_assignment assignment = next(worker);
            if (assignment.kind == DIBS_ASSIGN) {
                const int code =
                    dibs_confirm(worker, assignment.slot, assignment.round, "ok", 2, DIBS_NOWAIT);
                EXPECT_EQ(code, DIBS_OK);
            } else {
                ++revoked;
                EXPECT_EQ(dibs_ready(worker, assignment.slot, assignment.round, DIBS_NOWAIT),
                          DIBS_OK);
            }
        }
    });
    const Attached client(dibsd.socket(), "browsers");
    uint64_t fence = 0;
    for (int i = 0; i < 1000; ++i) {
        const dibs_completion held = client.claim();
        ASSERT_EQ(held.outcome, DIBS_GRANTED);
        ASSERT_GT(held.lease.fence, fence);
        fence = held.lease.fence;
        const void* answer = nullptr;
        size_t size = 0;
        ASSERT_EQ(dibs_lease_answer(client, &held.lease, 0, &answer, &size), DIBS_OK);
        ASSERT_EQ(std::string(static_cast<const char*>(answer), size), "ok");
        ASSERT_EQ(dibs_release(client, &held.lease, DIBS_NOWAIT), DIBS_OK);
    }
    serving.join();
    dibs_totals totals = {};
    totals.size = sizeof totals;
    EXPECT_EQ(dibs_pool_totals(client, client.pool(), &totals), DIBS_OK);
    EXPECT_EQ(totals.net_found_work, 0U);
}

}  // namespace
}  // namespace dibs::test
