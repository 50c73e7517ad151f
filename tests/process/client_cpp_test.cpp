// tests/process/client_cpp_test.cpp -- dibs.hpp and a real dibsd: what is held goes back by itself.
// SPDX-License-Identifier: Apache-2.0
#include "dibs/dibs.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/user.hpp"

namespace dibs::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const char* const kDevices =
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 1\n"
    "attributes = [{ device = \"7\" }]\n";
const char* const kBrowsers =
    "[[pool]]\nname = \"browsers\"\nkind = \"worker\"\nanswer_max = 64\nattributes_max = 64\n"
    "reservation_ttl = \"10min\"\n";

template <typename T>
constexpr bool kMovesOnly = std::is_move_constructible_v<T>&& std::is_move_assignable_v<T> &&
                            !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
                            std::is_nothrow_move_constructible_v<T>;
static_assert(kMovesOnly<Session> && kMovesOnly<Lease> && kMovesOnly<Claim> && kMovesOnly<Slot>);
static_assert(std::is_move_constructible_v<Completion> &&
              !std::is_copy_constructible_v<Completion>);

Session attach(const Dibsd& dibsd) {
    ConnectOptions options;
    options.socket_path = dibsd.socket().c_str();
    options.timeout = kForever;
    Result<Session> session = Session::connect(options);
    EXPECT_TRUE(session.has_value());
    return *std::move(session);
}

// A timeout of 0 would hold for a broker that is late, too.
ClaimOptions at_once() {
    ClaimOptions options;
    options.timeout = kForever;
    options.when_busy = DIBS_BUSY_REJECT;
    return options;
}

uint32_t leased(const Session& session, uint32_t pool) {
    return session.snapshot(pool)->leased;
}

void await_leased(const Session& session, uint32_t pool, uint32_t count) {
    while (leased(session, pool) != count)
        sched_yield();
}

TEST(CppLease, GoesBackAtTheEndOfItsScope) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    uint64_t fence = 0;
    {
        const Result<Lease> lease = session.claim("gpu", at_once());
        ASSERT_TRUE(lease.has_value());
        EXPECT_STREQ(lease->attribute("device").value_or(""), "7");
        EXPECT_FALSE(lease->attribute("colour").has_value());
        EXPECT_EQ(lease->units(), 1U);
        EXPECT_EQ(lease->state(), DIBS_LIVE);
        EXPECT_EQ(*lease->remaining(), kForever);
        await_leased(session, pool, 1);
        fence = lease->fence();
    }
    const Result<Lease> again = session.claim(pool, at_once());
    ASSERT_TRUE(again.has_value());
    EXPECT_GT(again->fence(), fence);
}

TEST(CppLease, ThatHasExpiredStaysEndedWhenItsTagIsGrantedAgain) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    ClaimOptions want;
    want.timeout = kForever;
    want.interval = milliseconds(1);
    const Lease first = *session.claim("gpu", want);
    dibs_completion told = {};
    while (told.kind != DIBS_LEASE_ENDED)
        ASSERT_EQ(dibs_reap(session.raw(), &told, 1, DIBS_FOREVER), 1);
    want.interval = kNoWait;
    const Lease second = *session.claim("gpu", want);
    ASSERT_EQ(second.raw().tag, first.raw().tag);
    int why = 0;
    EXPECT_EQ(first.state(&why), DIBS_ENDED);
    EXPECT_EQ(why, DIBS_ALREADY_ENDED);
    EXPECT_EQ(second.state(), DIBS_LIVE);
}

TEST(CppLease, MovesWithItsDuty) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session first = attach(dibsd);
    Session session = std::move(first);
    const uint32_t pool = *session.pool("gpu");
    Lease kept;
    {
        Lease lease = *session.claim(pool, at_once());
        kept = std::move(lease);
        EXPECT_FALSE(lease);  // NOLINT: what a move leaves behind is the subject
    }
    EXPECT_TRUE(kept);
    await_leased(session, pool, 1);
    EXPECT_TRUE(kept.release(kForever).has_value());
    EXPECT_FALSE(kept);
    await_leased(session, pool, 0);
}

TEST(CppLease, IsProlongedByAKeepaliveAndEndedByWhoeverItWasDetachedFor) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    ClaimOptions want = at_once();
    want.interval = seconds(250);
    Lease lease = *session.claim("gpu", want);
    EXPECT_TRUE(lease.keepalive(seconds(200), kForever).has_value());
    EXPECT_LE(*lease.remaining(), seconds(200));
    EXPECT_GT(*lease.remaining(), seconds(50));
    EXPECT_EQ(lease.touch().error().code, DIBS_ESTATE);
    const dibs_lease raw = lease.detach();
    EXPECT_FALSE(lease);
    EXPECT_EQ(dibs_release(session.raw(), &raw, DIBS_FOREVER), DIBS_OK);
    want.by_word = true;
    Lease touched = *session.claim("gpu", want);
    EXPECT_TRUE(touched.touch().has_value());
}

TEST(CppLease, ThatHasEndedIsNotProlonged) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    ClaimOptions want = at_once();
    want.interval = milliseconds(1);
    Lease lease = *session.claim("gpu", want);
    while (lease.state() != DIBS_ENDED)
        sched_yield();
    for (const Duration wait : {kNoWait, kForever}) {
        const Result<void> kept = lease.keepalive(seconds(200), wait);
        ASSERT_FALSE(kept.has_value());
        EXPECT_EQ(kept.error().code, DIBS_ALREADY_ENDED);
        EXPECT_EQ(kept.error().message(), "the lease has ended before");
    }
    EXPECT_TRUE(lease.release().has_value());  // there is nothing to give back, which is no failure
}

TEST(CppLease, IsAdoptedByAnotherSession) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session holder = attach(dibsd);
    Session heir = attach(dibsd);
    const Lease lease = *holder.claim("gpu", at_once());
    const Result<Lease> adopted = heir.adopt(lease.id(), lease.fence());
    ASSERT_TRUE(adopted.has_value());
    EXPECT_EQ(adopted->fence(), lease.fence());
    EXPECT_STREQ(adopted->attribute("device").value_or(""), "7");
    EXPECT_EQ(adopted->state(), DIBS_LIVE);
    int why = 0;
    while (lease.state(&why) != DIBS_ENDED)
        sched_yield();
    EXPECT_EQ(why, DIBS_EADOPTED);
    EXPECT_EQ(heir.adopt(lease.id(), lease.fence() + 1).error().code, DIBS_ESTALE);
}

TEST(CppFailure, NamesTheHolder) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session holder = attach(dibsd);
    Session waiter = attach(dibsd);
    const Result<Lease> held = holder.claim("gpu", at_once());
    ASSERT_TRUE(held.has_value());
    ClaimOptions want;
    want.timeout = milliseconds(1);
    Result<Lease> none = waiter.claim("gpu", want);
    ASSERT_FALSE(none.has_value());
    // A broker that is late lets the library end the claim, which knows no holder.
    while (!none.has_value() && none.error().holder.pid == 0)
        none = waiter.claim("gpu", want);
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().outcome, Outcome::kExpired);
    EXPECT_EQ(none.error().holder.pid, static_cast<uint32_t>(getpid()));
    const std::string start = "expired; held by process " + std::to_string(getpid()) + " of user " +
                              std::to_string(getuid()) + " for ";
    EXPECT_EQ(none.error().message().substr(0, start.size()), start);
    want.when_busy = DIBS_BUSY_REJECT;
    want.timeout = kForever;
    const Result<Lease> rejected = waiter.claim("gpu", want);
    ASSERT_FALSE(rejected.has_value());
    EXPECT_EQ(rejected.error().outcome, Outcome::kRejected);
    EXPECT_EQ(rejected.error().code, DIBS_EBUSY);
}

TEST(CppFailure, DoesNotNameAnotherUsersHolder) {
    Failure failure;
    failure.outcome = Outcome::kExpired;
    failure.holder = {DIBS_HIDDEN_UID, 0, 2 * DIBS_SECOND, DIBS_HIDDEN_CLAIM};
    EXPECT_EQ(failure.message(), "expired; held by a process of another user for 2000 ms");
}

TEST(CppFailure, SaysWhatWasRefusedInWords) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    EXPECT_EQ(session.claim("none").error().message(), "no such pool");
    ClaimOptions want;
    want.key = "seventeen letters";
    EXPECT_EQ(session.claim("gpu", want).error().code, DIBS_EARGUMENT);
    want.key = "";
    want.timeout = Duration(-1);
    EXPECT_EQ(session.claim("gpu", want).error().code, DIBS_ENEGATIVE);
    EXPECT_THROW(or_throw(session.claim("none")), Exception);
    EXPECT_TRUE(or_throw(session.claim("gpu", at_once())));
}

TEST(CppFailure, SaysThatThereIsNoBroker) {
    ConnectOptions options;
    options.socket_path = "/tmp/dibs-there-is-no-such-socket";
    EXPECT_EQ(Session::connect(options).error().message(),
              "no broker listens at the socket or answers in time");
}

TEST(CppClaim, IsCancelledWithItsObjectAndReapedAllTheSame) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    const Lease held = *session.claim(pool, at_once());
    { const Claim waiting = *session.submit(pool, 17); }
    const Completion end = *session.reap(kForever);
    EXPECT_EQ(end.user_data(), 17U);
    EXPECT_EQ(end.outcome(), Outcome::kCancelled);
    EXPECT_EQ(session.reap().error().code, DIBS_ETIMEDOUT);
}

TEST(CppClaim, ExplainsWhyItWaits) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    const Lease held = *session.claim(pool, at_once());
    const Claim waiting = *session.submit(pool, 17);
    while (session.snapshot(pool)->queued != 1)
        sched_yield();
    const dibs_explanation why = *waiting.explain();
    EXPECT_EQ(why.reason, DIBS_WAIT_HELD);
    EXPECT_EQ(why.position, 1U);
    EXPECT_EQ(why.slots, 1U);
    EXPECT_EQ(why.holder.pid, static_cast<uint32_t>(getpid()));
}

TEST(CppClaim, ThatIsGrantedAndNeverLookedAtGivesItsLeaseBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    for (int i = 0; i < 3; ++i) {
        const Claim claim = *session.submit(pool, 1);
        const Result<Completion> unused = session.reap(kForever);
        ASSERT_TRUE(unused.has_value());
        EXPECT_TRUE(unused->is_granted());
    }
    Claim claim = *session.submit(pool, 2);
    Completion end = *session.reap(kForever);
    const Lease lease = *end.take_lease();
    EXPECT_TRUE(lease);
    EXPECT_FALSE(end.is_granted());
    EXPECT_FALSE(end.take_lease().has_value());
}

TEST(CppSlot, CarriesAClaimToItsWorkerAndTheAnswerBack) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    Session worker = attach(dibsd);
    Session client = attach(dibsd);
    const uint32_t pool = *client.pool("browsers");
    const std::array<dibs_option, 1> attributes = {{{"port", "81"}}};
    AnnounceOptions offer;
    offer.name = "b-1";
    offer.attributes = attributes;
    offer.worker_tag = 31;
    const Slot slot = *worker.announce(pool, offer);

    const std::vector<dibs_option> options = {{"url", "about:blank"}};
    const char* const labels[] = {"headless"};
    ClaimOptions want;
    want.body = "body";
    want.options = options;
    want.labels = labels;
    Claim claim = *client.submit(pool, 1, want);
    const Assignment work = *worker.next_assignment(kForever);
    EXPECT_FALSE(work.is_revocation());
    EXPECT_TRUE(work.is_readable());
    EXPECT_EQ(work.slot(), slot.id());
    EXPECT_EQ(work.worker_tag(), 31U);
    EXPECT_EQ(work.body(), "body");
    EXPECT_STREQ(work.option("url").value_or(""), "about:blank");
    EXPECT_FALSE(work.option("colour").has_value());
    EXPECT_TRUE(work.confirm("ws://81").has_value());

    Completion end = *client.reap(kForever);
    Lease lease = *end.take_lease();
    EXPECT_EQ(lease.answer().value_or(""), "ws://81");
    EXPECT_STREQ(lease.attribute("port").value_or(""), "81");
    EXPECT_TRUE(lease.release().has_value());
    const Assignment over = *worker.next_assignment(kForever);
    EXPECT_TRUE(over.is_revocation());
    EXPECT_TRUE(over.ready(kForever).has_value());
    EXPECT_EQ(client.snapshot(pool)->slots, 1U);
}

TEST(CppSlot, IsWithdrawnWithItsObject) {
    const Folder folder;
    const Dibsd dibsd(folder, kBrowsers);
    Session worker = attach(dibsd);
    const uint32_t pool = *worker.pool("browsers");
    {
        Slot slot = *worker.announce(pool, {});
        EXPECT_TRUE(slot.protect(true, kForever).has_value());
        EXPECT_EQ(worker.claim(pool, at_once()).error().code, DIBS_EBUSY);
    }
    while (worker.snapshot(pool)->slots != 0)
        sched_yield();
}

TEST(CppSession, IsNothingToAForkedChild) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    {
        const Lease lease = *session.claim(pool, at_once());
        const pid_t child = fork();
        if (child == 0) {
            const bool refused = session.claim(pool, at_once()).error().code == DIBS_EFORK;
            { const Lease copy(session.raw(), lease.raw()); }  // its end must end nothing
            _exit(refused ? 0 : 1);
        }
        int status = -1;
        waitpid(child, &status, 0);
        EXPECT_EQ(status, 0);
        EXPECT_EQ(lease.state(), DIBS_LIVE);
        await_leased(session, pool, 1);
    }
    await_leased(session, pool, 0);
}

const char* const kShared =
    "[[account]]\nname = \"one\"\nrate = 1\nbalance = 1000\n"
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 4\norder = \"account\"\n";

TEST(CppAccount, HasAShareWhoseSlotsAreCounted) {
    const Folder folder;
    const Dibsd dibsd(folder, kShared);
    Session session = attach(dibsd);
    EXPECT_EQ(session.share("nobody").error().code, DIBS_ENOTFOUND);
    EXPECT_EQ(session.share("one")->rate, 1'000'000U);
    ClaimOptions two = at_once();
    two.units = 2;
    two.account = "one";
    {
        const Lease lease = *session.claim("gpu", two);
        while (session.share("one")->held != 2)
            sched_yield();
    }
    while (session.share("one")->held != 0)
        sched_yield();
    EXPECT_GT(session.share("one")->used_ns, 0U);
}

TEST(CppEvents, TellAGrantWithItsSlots) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Result<Events> events = Events::open(dibsd.socket().c_str(), kForever);
    ASSERT_TRUE(events.has_value());
    EXPECT_EQ(events->next(kNoWait).error().code, DIBS_ETIMEDOUT);
    Session session = attach(dibsd);
    const Lease lease = *session.claim("gpu", at_once());
    Result<dibs_event> event = events->next();
    while (event->kind != DIBS_EVENT_GRANT)
        event = events->next();
    EXPECT_EQ(event->full, 1);
    EXPECT_STREQ(event->pool, "gpu");
    EXPECT_EQ(event->fence, lease.fence());
    EXPECT_EQ(event->slot_count, 1U);
    EXPECT_EQ(event->slots[0], 0U);
}

TEST(CppState, IsWrittenDownAndNotReplacedUnderASession) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    const std::string path = folder.path() + "/now.snap";
    const int file = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(file, 0);
    EXPECT_TRUE(dump(file, dibsd.socket().c_str()).has_value());
    EXPECT_GT(lseek(file, 0, SEEK_CUR), 0);
    ASSERT_EQ(lseek(file, 0, SEEK_SET), 0);
    const Session session = attach(dibsd);
    EXPECT_EQ(load(file, dibsd.socket().c_str()).error().code, DIBS_ESTATE);
    close(file);
}

// Of another user's lease it is told what moves, not who and which.
TEST(CppEvents, KeepFromOtherUsersWhoHolds) {
    DIBS_NEEDS_ROOT();
    const Folder folder;
    open_folder(folder.path());
    const Dibsd dibsd(folder, std::string("socket_mode = \"0666\"\n") + kDevices);
    Child stranger([&](const Child& self) {
        become_user(kAlice, kAlice);
        Result<Events> events = Events::open(dibsd.socket().c_str(), kForever);
        self.mark(events ? 'o' : 'x');
        while (events) {
            const Result<dibs_event> event = events->next();
            if (!event) return self.mark('l');
            if (event->kind != DIBS_EVENT_GRANT) continue;
            const bool hidden = event->full == 0 && event->pid == 0 && event->id == 0 &&
                                event->fence == 0 && event->claim == 0 && event->slot_count == 0;
            self.mark(hidden && std::string(event->pool) == "gpu" ? 'h' : 't');
        }
    });
    ASSERT_EQ(stranger.marked(), 'o');
    Session session = attach(dibsd);
    const Lease lease = *session.claim("gpu", at_once());
    EXPECT_EQ(stranger.marked(), 'h');
}

TEST(CppLatency, IsOfThePoolAndOfTheSession) {
    const Folder folder;
    const Dibsd dibsd(folder, kDevices);
    Session session = attach(dibsd);
    const uint32_t pool = *session.pool("gpu");
    EXPECT_EQ(session.session_latency()->count, 0U);
    ASSERT_TRUE(session.claim(pool));
    EXPECT_EQ(session.session_latency()->count, 1U);
    EXPECT_GT(session.session_latency()->p50_ns, 0);
    EXPECT_EQ(session.latency(pool)->count, 1U);
    EXPECT_LE(session.reported_latency()->count, 1U);
    EXPECT_EQ(session.latency(99).error().code, DIBS_EPOOL);
}

TEST(CppAdministration, MakesAccountsAndSpeaksForWorkers) {
    const Folder folder;
    const Dibsd dibsd(folder, "[[pool]]\nname = \"far\"\nkind = \"worker\"\norder = \"account\"\n");
    Session session = attach(dibsd);
    Administration admin(dibsd.socket().c_str());
    AccountChange change;
    const std::array<int64_t, 1> rate = {2 * DIBS_MICROS};
    change.rate = rate;
    change.fanout_max = 3;
    ASSERT_TRUE(admin.set_account("web", change));
    while (!session.share("web") || session.share("web")->rate != 2'000'000U)
        sched_yield();
    EXPECT_TRUE(admin.reset_account("web", rate));
    EXPECT_TRUE(admin.delete_account("web"));
    EXPECT_EQ(admin.delete_account("web").error().code, DIBS_ENOTFOUND);

    dibs_worker_report said = {};
    said.kind = DIBS_REPORT_IDLE;
    said.pool = "far";
    said.worker = "w1";
    ASSERT_TRUE(admin.report(said));
    const Result<Lease> lease = session.claim("far");
    ASSERT_TRUE(lease);
    const dibs_puller asking[] = {{"w1", nullptr, 0}};
    dibs_pulled pulled[1] = {};
    EXPECT_EQ(*admin.pull("far", asking, pulled), 1U);
    EXPECT_NE(pulled[0].claim, 0U);
    said.kind = DIBS_REPORT_UNASSIGN;
    said.claim = pulled[0].claim + 1;
    EXPECT_EQ(admin.report(said).error().code, DIBS_ENOTFOUND);
    EXPECT_STREQ(admin.why(), "that worker has no such claim");
}

}  // namespace
}  // namespace dibs::test
