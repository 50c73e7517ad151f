// tests/process/client_expiry_test.cpp -- libdibs and dibsd: leases that are not kept alive, and
// leases that go from one process to another.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

std::string pool_of(const char* expiry) {
    return "socket_mode = \"0666\"\n[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\n"
           "expiry = \"" +
           std::string(expiry) + "\"\nattributes = [{ device = \"0\" }, { device = \"1\" }]\n";
}

dibs_claim_options kept_for(int64_t interval_ns, uint32_t units = 1) {
    dibs_claim_options options = Attached::asking(DIBS_FOREVER, units);
    options.interval_ns = interval_ns;
    return options;
}

// The child is dead, and was killed: seen at once, or not at all.
bool was_killed(const Child& child) {
    siginfo_t end = {};
    if (waitid(P_PID, static_cast<id_t>(child.pid()), &end, WEXITED | WNOHANG | WNOWAIT) != 0) {
        return false;
    }
    return end.si_pid == child.pid() && end.si_code == CLD_KILLED && end.si_status == SIGKILL;
}

// What a wrapper hands to whoever is to adopt its lease.
struct Passed {
    uint64_t id;
    uint64_t fence;
};
void pass(const Child& child, const dibs_lease& lease) {
    const Passed passed = {lease.id, lease.fence};
    const auto* bytes = reinterpret_cast<const char*>(&passed);
    for (size_t i = 0; i < sizeof passed; ++i)
        child.mark(bytes[i]);
}
Passed passed_by(const Child& child) {
    Passed passed = {};
    auto* bytes = reinterpret_cast<char*>(&passed);
    for (size_t i = 0; i < sizeof passed; ++i)
        bytes[i] = child.marked();
    return passed;
}

TEST(StrictExpiry, KillsAStoppedHolderBeforeItsSlotsAreGrantedAgain) {
    const Folder folder;
    const Dibsd dibsd(folder, pool_of("strict"));
    const Child holder([&](const Child& child) {
        const Attached client(dibsd.socket(), "gpu");
        (void)client.claim();  // not timed, and it ends as well
        (void)client.claim(kept_for(20 * DIBS_MILLISECOND));
        child.mark('h');
        raise(SIGSTOP);
    });
    ASSERT_EQ(holder.marked(), 'h');
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion granted = client.claim(Attached::asking(DIBS_FOREVER, 2));
    EXPECT_TRUE(was_killed(holder));
    EXPECT_EQ(granted.outcome, DIBS_GRANTED);
    EXPECT_EQ(granted.lease.fence, 3U);
}

TEST(StrictExpiry, LeavesAHolderAloneThatKeepsItsLeaseAlive) {
    const Folder folder;
    const Dibsd dibsd(folder, pool_of("strict"));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = client.claim(kept_for(200 * DIBS_SECOND));
    int64_t granted_ns = 0;
    EXPECT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, &granted_ns), DIBS_OK);
    EXPECT_EQ(granted_ns, 200 * DIBS_SECOND);
    EXPECT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
}

TEST(LazyExpiry, LetsALeaseLiveAgainUntilItsRoomIsWanted) {
    const Folder folder;
    const Dibsd dibsd(folder, pool_of("lazy"));
    const Attached holder(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    const dibs_completion held = holder.claim(kept_for(DIBS_MILLISECOND, 2));
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(holder, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_GRACE);
    EXPECT_EQ(dibs_lease_state(holder, &held.lease, nullptr), DIBS_IN_GRACE);
    // Nobody wants it: it is renewed after its expiry.
    ASSERT_EQ(dibs_keepalive(holder, &held.lease, 200 * DIBS_SECOND, DIBS_FOREVER, nullptr),
              DIBS_OK);
    EXPECT_EQ(dibs_lease_state(holder, &held.lease, nullptr), DIBS_LIVE);
    EXPECT_EQ(other.claim(Attached::asking(DIBS_NOWAIT)).code, DIBS_EBUSY);
    ASSERT_EQ(dibs_keepalive(holder, &held.lease, DIBS_MILLISECOND, DIBS_FOREVER, nullptr),
              DIBS_OK);
    ASSERT_EQ(dibs_reap(holder, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_GRACE);
    ASSERT_EQ(dibs_keepalive(holder, &held.lease, 200 * DIBS_SECOND, DIBS_NOWAIT, nullptr),
              DIBS_OK);
    while (dibs_lease_state(holder, &held.lease, nullptr) != DIBS_LIVE)
        sched_yield();
    ASSERT_EQ(dibs_keepalive(holder, &held.lease, DIBS_MILLISECOND, DIBS_FOREVER, nullptr),
              DIBS_OK);
    // Somebody waits: it is collected when it has expired.
    EXPECT_EQ(other.claim().lease.fence, 2U);
    int code = 0;
    while (dibs_lease_state(holder, &held.lease, &code) != DIBS_ENDED)
        sched_yield();
    EXPECT_EQ(code, DIBS_EEXPIRED);
    EXPECT_EQ(dibs_keepalive(holder, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_ALREADY_ENDED);
}

TEST(Adoption, BindsTheLeaseToAForkedChild) {
    const Folder folder;
    const Dibsd dibsd(folder, pool_of("cooperative"));
    const Attached other(dibsd.socket(), "gpu");
    auto wrapper = std::make_unique<Attached>(dibsd.socket(), "gpu");
    const dibs_completion held = wrapper->claim(Attached::asking(DIBS_FOREVER, 2));
    Child child([&](const Child& self) {
        const Attached own(dibsd.socket(), "gpu");
        dibs_lease lease = {};
        const char* device = "";
        const int code = dibs_adopt(own, held.lease.id, held.lease.fence, DIBS_FOREVER, &lease);
        const bool whole = code == DIBS_OK && lease.units == 2 && lease.fence == held.lease.fence &&
                           dibs_lease_attribute(own, &lease, 1, "device", &device) == DIBS_OK;
        self.mark(whole ? device[0] : 'x');
        while (true)
            pause();  // its session stays open
    });
    EXPECT_EQ(child.marked(), '1');
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(*wrapper, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.code, DIBS_EADOPTED);
    EXPECT_EQ(dibs_release(*wrapper, &held.lease, DIBS_FOREVER), DIBS_ALREADY_ENDED);
    wrapper.reset();
    const dibs_completion busy = other.claim(Attached::asking(DIBS_NOWAIT));
    EXPECT_EQ(busy.code, DIBS_EBUSY);
    EXPECT_EQ(busy.holder.pid, static_cast<uint32_t>(child.pid()));
    child.kill();
    EXPECT_EQ(other.claim(Attached::asking(DIBS_FOREVER, 2)).lease.fence, 2U);
}

TEST(Adoption, FindsNothingWhereTheHolderWasFasterToDie) {
    const Folder folder;
    const Dibsd dibsd(folder, pool_of("cooperative"));
    Child holder([&](const Child& self) {
        const Attached own(dibsd.socket(), "gpu");
        pass(self, own.claim().lease);
        while (true)
            pause();
    });
    const Passed passed = passed_by(holder);
    const Attached client(dibsd.socket(), "gpu");
    holder.kill();
    client.await([](const auto& pool) { return pool.leased == 0; });
    dibs_lease lease = {};
    EXPECT_EQ(dibs_adopt(client, passed.id, passed.fence, DIBS_FOREVER, &lease), DIBS_EENDED);
    EXPECT_EQ(lease.id, 0U);
}

TEST(Adoption, IsRefusedWithACodeForEachReason) {
    const Folder folder;
    ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
    const Dibsd dibsd(folder, pool_of("cooperative"));
    const Attached holder(dibsd.socket(), "gpu");
    const Attached client(dibsd.socket(), "gpu");
    const dibs_lease held = holder.claim().lease;
    dibs_lease lease = {};
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence + 1, DIBS_FOREVER, &lease), DIBS_ESTALE);
    EXPECT_EQ(dibs_adopt(client, held.id + 1, held.fence, DIBS_FOREVER, &lease), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_adopt(holder, held.id, held.fence, DIBS_FOREVER, &lease), DIBS_ESTATE);
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence, DIBS_NOWAIT, &lease), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence, -1, &lease), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence, DIBS_FOREVER, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence, DIBS_FOREVER, &lease), DIBS_OK);
    EXPECT_EQ(dibs_release(client, &lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(dibs_adopt(client, held.id, held.fence, DIBS_FOREVER, &lease), DIBS_EENDED);
}

TEST(Adoption, IsNotForAnotherUser) {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
    const Folder folder;
    ASSERT_EQ(chmod(folder.path().c_str(), 0755), 0);
    const Dibsd dibsd(folder, pool_of("cooperative"));
    const Attached holder(dibsd.socket(), "gpu");
    const dibs_lease held = holder.claim().lease;
    const Child stranger([&](const Child& self) {
        if (setuid(65534) != 0) return self.mark('?');
        const Attached own(dibsd.socket(), "gpu");
        dibs_lease lease = {};
        const int code = dibs_adopt(own, held.id, held.fence, DIBS_FOREVER, &lease);
        self.mark(code == DIBS_ENOTALLOWED ? 'n' : 'x');
    });
    EXPECT_EQ(stranger.marked(), 'n');
    EXPECT_EQ(dibs_lease_state(holder, &held, nullptr), DIBS_LIVE);
}

}  // namespace
}  // namespace dibs::test
