// tests/process/touched_test.cpp -- leases that are kept by their word beside a real dibsd: how
// long they live is read in the broker's own rows, and no test waits for time.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>
#include <signal.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>

#include "broker/core/ids.hpp"
#include "broker/core/store/state.hpp"
#include "broker/segments/mapping.hpp"
#include "clientlib/session.hpp"
#include "shm/memfd.hpp"
#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/kept_dibsd.hpp"

namespace dibs::test {
namespace {

constexpr int64_t kInterval = 100 * DIBS_MILLISECOND;

std::string gpus(const std::string& more) {
    return "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 2\n" + more;
}

dibs_completion keep(const Attached& client, int64_t interval_ns = kInterval) {
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    options.interval_ns = interval_ns;
    options.keep = DIBS_KEEP_BY_WORD;
    const dibs_completion end = client.claim(options);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
    return end;
}

// The lease's row in STATE, which the broker changes meanwhile.
class Row {
  public:
    Row(const KeptDibsd& dibsd, const dibs_lease& lease)
        : state_(open_descriptor(dibsd.keeper(), "/memfd:dibs-state")),
          mapping_(state_.get(), shm::size_of(state_.get())),
          rows_{mapping_.bytes()},
          row_(core::row_of(lease.id)) {}

    [[nodiscard]] const shm::LeaseRow& now() const { return rows_.leases[row_]; }
    [[nodiscard]] uint64_t expires_ns() const { return word(now().expires_ns); }
    [[nodiscard]] uint64_t touched() const { return word(now().touched); }
    void await_expiry(uint64_t at_ns) const {
        while (expires_ns() != at_ns)
            sched_yield();
    }

  private:
    static uint64_t word(const uint64_t& at) {
        return std::atomic_ref(const_cast<uint64_t&>(at)).load(std::memory_order_acquire);
    }
    shm::Descriptor state_;
    Mapping mapping_;
    core::State rows_;
    uint32_t row_;
};

void expect_expired(const Attached& client, const dibs_completion& held) {
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(event.code, DIBS_EEXPIRED);
    EXPECT_EQ(event.lease.id, held.lease.id);
    EXPECT_EQ(dibs_touch(client, &held.lease), DIBS_ALREADY_ENDED);
}

// One touch before each look, six times. Each look moves the expiry by one interval, from where it
// was. The last touch came behind the look before the last one, so after granted + 5 intervals; the
// lease expires at granted + 7: one to two intervals later.
TEST(Touched, LivesAsLongAsItIsTouchedAndNoLongerThanTwoIntervals) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client);
    const Row row(dibsd, held.lease);
    const uint64_t granted_ns = row.now().granted_ns;
    ASSERT_EQ(row.expires_ns(), granted_ns + kInterval);
    for (uint64_t look = 1; look <= 6; ++look) {
        ASSERT_EQ(dibs_touch(client, &held.lease), DIBS_OK);
        row.await_expiry(granted_ns + (look + 1) * kInterval);
        ASSERT_EQ(row.touched(), look);
        ASSERT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
    }
    expect_expired(client, held);
    EXPECT_EQ(row.expires_ns(), granted_ns + 7 * kInterval);
    EXPECT_EQ(row.touched(), 6U);
}

TEST(Touched, EndsAfterOneIntervalIfItNeverIs) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    // What the tag's last lease left in the word is not this one's.
    const dibs_completion before = keep(client, 200 * DIBS_SECOND);
    ASSERT_EQ(dibs_touch(client, &before.lease), DIBS_OK);
    ASSERT_EQ(dibs_release(client, &before.lease, DIBS_FOREVER), DIBS_OK);
    const dibs_completion held = keep(client);
    ASSERT_EQ(held.lease.tag, before.lease.tag);
    const Row row(dibsd, held.lease);
    const uint64_t granted_ns = row.now().granted_ns;
    expect_expired(client, held);
    EXPECT_EQ(row.expires_ns(), granted_ns + kInterval);
}

// A stopped holder touches nothing: where expiry is strict it is killed, and not before.
TEST(Touched, IsTheLifeOfAHolderWhereExpiryIsStrict) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus("expiry = \"strict\"\n"));
    Child holder([&](const Child& self) {
        const Attached own(dibsd.socket(), "gpu");
        const dibs_completion held = keep(own);
        const Row row(dibsd, held.lease);
        const uint64_t first_ns = row.expires_ns();
        while (row.expires_ns() < first_ns + 3 * kInterval)
            (void)dibs_touch(own, &held.lease);
        self.mark('k');
        raise(SIGSTOP);
    });
    ASSERT_EQ(holder.marked(), 'k');
    const Attached other(dibsd.socket(), "gpu");
    EXPECT_EQ(other.claim(Attached::asking(DIBS_FOREVER, 2)).outcome, DIBS_GRANTED);
    int status = 0;
    ASSERT_EQ(waitpid(holder.pid(), &status, 0), holder.pid());
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

// In its grace it is too late for a touch; a call revives it, and then touches count again.
TEST(Touched, RevivesNothingAndCountsAgainAfterAKeepalive) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus("grace = \"1000s\"\n"));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client);
    const Row row(dibsd, held.lease);
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    ASSERT_EQ(event.kind, DIBS_LEASE_GRACE);
    EXPECT_EQ(dibs_touch(client, &held.lease), DIBS_EEXPIRED);
    ASSERT_EQ(dibs_keepalive(client, &held.lease, 0, DIBS_FOREVER, nullptr), DIBS_OK);
    const uint64_t revived_ns = row.expires_ns();
    ASSERT_EQ(dibs_touch(client, &held.lease), DIBS_OK);
    row.await_expiry(revived_ns + kInterval);
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.kind, DIBS_LEASE_GRACE);
}

// Whatever a client writes there prolongs its own lease, by one interval a look, and nothing else.
TEST(Touched, IsWhateverAHostileClientWritesAndItsOwnLeaseAlone) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client);
    const dibs_completion theirs = keep(other);
    const Row row(dibsd, held.lease);
    const Row their_row(dibsd, theirs.lease);
    const uint64_t granted_ns = row.now().granted_ns;
    const uint64_t their_granted_ns = their_row.now().granted_ns;
    std::atomic<bool> over{false};
    std::thread flips([&] {
        const dibs_session* session = client;
        std::mt19937_64 random(1);  // NOLINT: the same words in each run
        while (!over) {
            for (uint32_t tag = 0; tag < session->sizes.tags; ++tag)
                session->touch_words[tag].touches.store(random(), std::memory_order_relaxed);
        }
    });
    row.await_expiry(granted_ns + 5 * kInterval);
    expect_expired(other, theirs);
    EXPECT_EQ(their_row.expires_ns(), their_granted_ns + kInterval);
    EXPECT_EQ(other.claim(Attached::asking(DIBS_FOREVER)).outcome, DIBS_GRANTED);
    over = true;
    flips.join();
    dibs_completion event = {};
    ASSERT_EQ(dibs_reap(client, &event, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(event.code, DIBS_EEXPIRED);
    EXPECT_EQ((row.expires_ns() - granted_ns) % kInterval, 0U);
}

// Its row, with what its word said last, is the successor's; the word is in the client's memory.
TEST(Touched, OutlivesItsBroker) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client);
    const Row row(dibsd, held.lease);
    const uint64_t granted_ns = row.now().granted_ns;
    for (uint64_t look = 1; look <= 6; ++look) {
        ASSERT_EQ(dibs_touch(client, &held.lease), DIBS_OK);
        if (look % 2 == 0) dibsd.kill_broker();
        row.await_expiry(granted_ns + (look + 1) * kInterval);
        ASSERT_EQ(row.touched(), look);
    }
    ASSERT_EQ(dibs_lease_state(client, &held.lease, nullptr), DIBS_LIVE);
    dibsd.kill_broker();  // touched before the death or not: the successor looks
    expect_expired(client, held);
    EXPECT_EQ(row.expires_ns(), granted_ns + 7 * kInterval);
}

// The holder's own touches are nothing to whoever has adopted the lease.
TEST(Touched, IsTheAdoptersToDo) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached wrapper(dibsd.socket(), "gpu");
    const Attached command(dibsd.socket(), "gpu");
    const dibs_completion held = keep(wrapper);
    const Row row(dibsd, held.lease);
    ASSERT_EQ(dibs_touch(wrapper, &held.lease), DIBS_OK);
    row.await_expiry(row.now().granted_ns + 2 * kInterval);
    dibs_completion adopted = {};
    ASSERT_EQ(dibs_adopt(command, held.lease.id, held.lease.fence, DIBS_FOREVER, &adopted.lease),
              DIBS_OK);
    const uint64_t adopted_ns = row.expires_ns();
    EXPECT_EQ(row.touched(), 0U);
    EXPECT_EQ(dibs_touch(wrapper, &held.lease), DIBS_ALREADY_ENDED);
    ASSERT_EQ(dibs_touch(command, &adopted.lease), DIBS_OK);
    row.await_expiry(adopted_ns + kInterval);
    expect_expired(command, adopted);
    EXPECT_EQ(row.expires_ns(), adopted_ns + kInterval);
}

TEST(Touched, IsOfNoChildThatWasForked) {
    const Folder folder;
    const KeptDibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client);
    const Row row(dibsd, held.lease);
    const uint64_t granted_ns = row.now().granted_ns;
    const Child child([&](const Child& self) {
        self.mark(dibs_touch(client, &held.lease) == DIBS_EFORK ? 'f' : 'x');
        for (;;)
            (void)dibs_touch(client, &held.lease);
    });
    EXPECT_EQ(child.marked(), 'f');
    expect_expired(client, held);
    EXPECT_EQ(row.expires_ns(), granted_ns + kInterval);
}

TEST(Touched, WakesNobody) {
    const Folder folder;
    const Dibsd dibsd(folder, gpus(""));
    const Attached client(dibsd.socket(), "gpu");
    const dibs_completion held = keep(client, 200 * DIBS_SECOND);
    constexpr uint64_t kTouches = 1'000'000;
    const uint64_t before = dibsd.voluntary_switches();
    for (uint64_t i = 0; i < kTouches; ++i)
        ASSERT_EQ(dibs_touch(client, &held.lease), DIBS_OK);
    EXPECT_LT(dibsd.voluntary_switches() - before, 100U);
    ASSERT_EQ(dibs_release(client, &held.lease, DIBS_FOREVER), DIBS_OK);
}

}  // namespace
}  // namespace dibs::test
