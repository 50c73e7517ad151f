// tests/process/client_provision_test.cpp -- libdibs and dibsd: a session that makes the workers of
// an elastic pool, and who may say to be made for its orders.
// SPDX-License-Identifier: Apache-2.0
#include <signal.h>

#include <string>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/stall.hpp"

namespace dibs::test {
namespace {

const char* const kElastic =
    "[[pool]]\nname = \"py\"\nkind = \"worker\"\nworkers_max = 2\nreservation_ttl = \"10min\"\n"
    "[[pool]]\nname = \"fixed\"\nkind = \"worker\"\n"
    "[[pool]]\nname = \"huge\"\nkind = \"worker\"\nworkers_max = 100000\n";

int provide(const Attached& session, const char* type = "py", int on = 1) {
    return dibs_provide(session, session.pool(), type, 7, on, DIBS_FOREVER);
}

struct Asked {
    uint64_t id = 0;
    std::string text;
};

Asked next_order(const Attached& provisioner) {
    dibs_assignment order = {};
    EXPECT_EQ(dibs_next_assignment(provisioner, DIBS_FOREVER, &order), DIBS_OK);
    EXPECT_EQ(order.kind, DIBS_CREATE);
    EXPECT_EQ(order.worker_tag, 7U);
    return {order.slot, {static_cast<const char*>(order.body), order.body_size}};
}

uint64_t take_order(const Attached& worker, const std::string& order, int ready) {
    dibs_announce_options options = {};
    options.size = sizeof options;
    options.ready = ready;
    options.order = order.c_str();
    uint64_t slot = 0;
    EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot), DIBS_OK);
    return slot;
}

uint64_t announce(const Attached& worker, const std::string& order) {
    return take_order(worker, order, 1);
}

int provisioned(const Attached& session, uint64_t order, int answer) {
    return dibs_provisioned(session, order, answer, DIBS_SCOPE_TYPE, nullptr, DIBS_FOREVER);
}

TEST(Provision, AWorkerTakesTheOrderThatItWasMadeForOnce) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached provisioner(dibsd.socket(), "py");
    const Attached client(dibsd.socket(), "py");
    const Attached worker(dibsd.socket(), "py");
    ASSERT_EQ(provide(provisioner), DIBS_OK);
    const dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    client.submit(&want);
    const Asked order = next_order(provisioner);
    EXPECT_EQ(provisioned(provisioner, order.id, DIBS_CREATED), DIBS_OK);
    EXPECT_EQ(provisioned(provisioner, order.id, DIBS_CREATED), DIBS_OK);  // said twice
    EXPECT_EQ(announce(worker, order.text), order.id);
    EXPECT_NE(announce(worker, order.text), order.id) << "replayed";
    EXPECT_EQ(provisioned(provisioner, order.id, DIBS_AT_QUOTA), DIBS_ESTATE);
    dibs_assignment assigned = {};
    ASSERT_EQ(dibs_next_assignment(worker, DIBS_FOREVER, &assigned), DIBS_OK);
    EXPECT_EQ(assigned.slot, order.id);
}

TEST(Provision, AStrangersTokenMakesAnOrdinaryWorker) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached provisioner(dibsd.socket(), "py");
    const Attached client(dibsd.socket(), "py");
    const Attached worker(dibsd.socket(), "py");
    ASSERT_EQ(provide(provisioner), DIBS_OK);
    const dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    client.submit(&want);
    const Asked order = next_order(provisioner);
    std::string other = order.text;
    other.back() = other.back() == '0' ? '1' : '0';
    EXPECT_NE(announce(worker, other), order.id);
    EXPECT_EQ(announce(worker, order.text), order.id) << "the order is as it was";
}

TEST(Provision, WhatIsNoOrderIsRefused) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached worker(dibsd.socket(), "py");
    for (const char* text : {"",
                             "x",
                             "0000000000000000-0000000000000000000000000000000",
                             "0000000000000000-0000000000000000000000000000000g",
                             "0000000000000000-000000000000000000000000000000000"}) {
        dibs_announce_options options = {};
        options.size = sizeof options;
        options.order = text;
        uint64_t slot = 0;
        EXPECT_EQ(dibs_announce(worker, worker.pool(), &options, DIBS_FOREVER, &slot),
                  DIBS_EARGUMENT)
            << text;
    }
}

TEST(Provision, OneSessionHasTheRoleOfATypeThatIsThere) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached first(dibsd.socket(), "py");
    const Attached second(dibsd.socket(), "py");
    EXPECT_EQ(provide(first, "small"), DIBS_ENOTFOUND);
    EXPECT_EQ(provide(first, "a b"), DIBS_ENAME);
    EXPECT_EQ(provide(second, "py", 0), DIBS_ENOTHOLDER);
    EXPECT_EQ(provide(first), DIBS_OK);
    EXPECT_EQ(provide(first), DIBS_OK);
    EXPECT_EQ(provide(second), DIBS_ENAMEINUSE);
    EXPECT_EQ(provide(first, "py", 0), DIBS_OK);
    EXPECT_EQ(provide(second), DIBS_OK);
    const Attached fixed(dibsd.socket(), "fixed");
    EXPECT_EQ(provide(fixed, "fixed"), DIBS_ENOTFOUND);
    const Attached huge(dibsd.socket(), "huge");
    EXPECT_EQ(provide(huge, "huge"), DIBS_ENOROOM);
}

TEST(Provision, TheNextProvisionerIsToldOfAnUnansweredOrderWithATokenOfItsOwn) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached first(dibsd.socket(), "py");
    const Attached second(dibsd.socket(), "py");
    const Attached client(dibsd.socket(), "py");
    const Attached worker(dibsd.socket(), "py");
    ASSERT_EQ(provide(first), DIBS_OK);
    const dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    client.submit(&want);
    const Asked order = next_order(first);
    ASSERT_EQ(provide(first, "py", 0), DIBS_OK);
    ASSERT_EQ(provide(second), DIBS_OK);
    const Asked again = next_order(second);
    EXPECT_EQ(again.id, order.id);
    EXPECT_NE(again.text, order.text);
    EXPECT_EQ(provisioned(first, order.id, DIBS_CREATED), DIBS_ENOTHOLDER);
    EXPECT_NE(announce(worker, order.text), order.id) << "made for the one before";
    EXPECT_EQ(announce(worker, again.text), order.id);
}

TEST(Provision, AnswersToWhatIsNoOrderChangeNothing) {
    const Folder folder;
    const Dibsd dibsd(folder, kElastic);
    const Attached provisioner(dibsd.socket(), "py");
    const Attached other(dibsd.socket(), "py");
    ASSERT_EQ(provide(provisioner), DIBS_OK);
    EXPECT_EQ(provisioned(provisioner, 12345, DIBS_CREATED), DIBS_ENOTFOUND);
    EXPECT_EQ(provisioned(provisioner, 0, 6), DIBS_EARGUMENT);
    const dibs_claim_options want = Attached::asking(DIBS_FOREVER);
    other.submit(&want);
    const Asked order = next_order(provisioner);
    EXPECT_EQ(provisioned(other, order.id, DIBS_NOT_STARTED), DIBS_ENOTHOLDER);
    EXPECT_EQ(provisioned(provisioner, order.id, DIBS_NOT_STARTED), DIBS_OK);
    EXPECT_EQ(provisioned(provisioner, order.id, DIBS_CREATED), DIBS_ENOTFOUND);
    EXPECT_NE(next_order(provisioner).id, order.id);  // after its pause
}

// Workers that boot while the broker is stopped: one that has been announced, and one that has not.
class BootTimeOut : public testing::Test {
  protected:
    static constexpr uint64_t kMs = 1'000'000;
    static constexpr const char* kBoots =
        "[[pool]]\nname = \"py\"\nkind = \"worker\"\nworkers_max = 3\nboot_timeout = \"1600ms\"\n"
        "reservation_ttl = \"10min\"\n";

    template <typename Lose>
    void neither_fails_by(const std::string& socket, Lose lose_time) {
        const Attached provisioner(socket, "py");
        const Attached client(socket, "py");
        const Attached worker(socket, "py");
        ASSERT_EQ(provide(provisioner), DIBS_OK);
        const dibs_claim_options want = Attached::asking(DIBS_FOREVER);
        client.submit(&want);
        client.submit(&want);
        const Asked one = next_order(provisioner);
        const Asked other = next_order(provisioner);
        EXPECT_EQ(take_order(worker, one.text, 0), one.id);
        lose_time();
        ASSERT_EQ(announce(worker, other.text), other.id) << "the order has failed";
        ASSERT_EQ(dibs_ready(worker, one.id, 0, DIBS_FOREVER), DIBS_OK);
        for (int assigned = 0; assigned < 2; ++assigned) {
            dibs_assignment next = {};
            ASSERT_EQ(dibs_next_assignment(worker, DIBS_FOREVER, &next), DIBS_OK);
            EXPECT_EQ(next.kind, DIBS_ASSIGN);
        }
        // Time goes on: one that does not come fails, and another is ordered.
        client.submit(&want);
        EXPECT_NE(next_order(provisioner).id, next_order(provisioner).id);
    }
};

TEST_F(BootTimeOut, StandsWhileTheBrokerIsStopped) {
    const Folder folder;
    const Dibsd dibsd(folder, kBoots);
    neither_fails_by(dibsd.socket(), [&] {
        stop(dibsd.pid());
        let_pass(2'000 * kMs);
        dibsd.signal(SIGCONT);
    });
}

}  // namespace
}  // namespace dibs::test
