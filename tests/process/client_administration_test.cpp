// tests/process/client_administration_test.cpp -- accounts, workers that do not attach, and
// latencies, from C against a real dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

constexpr const char* kPools = R"(
[[account]]
name = "of-file"
rate = 2
[[pool]]
name = "far"
kind = "worker"
order = "account"
[[pool]]
name = "plain"
kind = "worker"
[[pool]]
name = "token"
kind = "counted"
slots = 4
quantum = "0s"
)";

// A broker, a client of the pool of workers that do not attach, and an administrator.
struct Administered : testing::Test {
    Administered() : dibsd(folder, kPools), client(dibsd.socket(), "far") {
        socket = dibsd.socket();
        options.size = sizeof options;
        options.socket_path = socket.c_str();
        options.error_text = why;
        options.error_text_size = sizeof why;
    }
    dibs_share share(const char* name) const {
        uint32_t place = 0;
        dibs_share told = {};
        told.size = sizeof told;
        if (dibs_account(client, name, &place) != DIBS_OK) return told;
        (void)dibs_account_share(client, place, &told);
        return told;
    }
    int report(int32_t kind, const char* worker, uint64_t claim, const char* label = nullptr) {
        dibs_worker_report said = {};
        said.size = sizeof said;
        said.kind = kind;
        said.pool = "far";
        said.worker = worker;
        said.claim = claim;
        said.labels = label != nullptr ? &label : nullptr;
        said.label_count = label != nullptr ? 1 : 0;
        return dibs_report(&options, &said);
    }
    dibs_completion reap() const {
        dibs_completion out = {};
        EXPECT_EQ(dibs_reap(client, &out, 1, DIBS_FOREVER), 1);
        return out;
    }
    void submit_claim() const {
        dibs_op op = {};
        op.size = sizeof op;
        op.kind = DIBS_OP_CLAIM;
        op.pool = client.pool();
        ASSERT_EQ(dibs_submit(client, &op, 1), 1);
    }

    const Folder folder;
    const Dibsd dibsd;
    const Attached client;
    std::string socket;
    char why[128] = "";
    dibs_connect_options options = {};
};

TEST_F(Administered, AccountsAreMadeChangedResetAndDeleted) {
    const int64_t rate[] = {3 * DIBS_MICROS, DIBS_MICROS / 2};
    dibs_account_change change = {};
    change.size = sizeof change;
    change.fields = DIBS_ACCOUNT_RATE;
    change.rate = rate;
    change.rate_count = 2;
    ASSERT_EQ(dibs_account_set(&options, "web", &change), DIBS_OK);
    while (share("web").rate != 3'500'000U)
        sched_yield();
    EXPECT_EQ(share("web").configured, 1);

    // What is not given stays.
    const dibs_label_limit limit = {"gpu", 2};
    change = {};
    change.size = sizeof change;
    change.fields = DIBS_ACCOUNT_FANOUT_MAX;
    change.fanout_max = 1;
    change.label_limits = &limit;
    change.label_limit_count = 1;
    ASSERT_EQ(dibs_account_set(&options, "web", &change), DIBS_OK);
    EXPECT_EQ(share("web").rate, 3'500'000U);

    const int64_t balance[] = {DIBS_MICROS};
    EXPECT_EQ(dibs_account_reset(&options, "web", balance, 1), DIBS_OK);
    EXPECT_EQ(dibs_account_reset(&options, "nobody", nullptr, 0), DIBS_ENOTFOUND);
    ASSERT_EQ(dibs_account_delete(&options, "web"), DIBS_OK);
    while (share("web").configured != 0)
        sched_yield();
    EXPECT_EQ(dibs_account_delete(&options, "web"), DIBS_ENOTFOUND);
    while (share("of-file").rate != 2'000'000U)
        sched_yield();
}

TEST_F(Administered, TheExampleOfTheHeaderMakesAnAccount) {
    const std::string command = "DIBS_SOCKET=" + socket + " " DIBS_ACCOUNT_EXAMPLE;
    ASSERT_EQ(std::system(command.c_str()), 0);
    while (share("web").rate != 3'000'000U)
        sched_yield();
}

TEST_F(Administered, AChangeThatCannotBeIsRefusedWithASentence) {
    const int64_t rate[] = {-DIBS_MICROS};
    dibs_account_change change = {};
    change.size = sizeof change;
    change.fields = DIBS_ACCOUNT_RATE;
    change.rate = rate;
    change.rate_count = 1;
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_ESTATE);
    EXPECT_NE(std::strlen(why), 0U);
    EXPECT_EQ(share("web").configured, 0);
}

// idle, running, unassigned, again with a label, absent.
TEST_F(Administered, AClaimGoesFromOneReportedWorkerToAnother) {
    submit_claim();
    ASSERT_EQ(report(DIBS_REPORT_IDLE, "w1", 0), DIBS_OK);
    const dibs_completion first = reap();
    ASSERT_EQ(first.outcome, DIBS_GRANTED);
    const dibs_puller asking = {"w1", nullptr, 0};
    dibs_pulled pulled = {};
    ASSERT_EQ(dibs_pull(&options, "far", &asking, 1, 0, &pulled), 1);
    EXPECT_STREQ(pulled.worker, "w1");
    EXPECT_EQ(pulled.claim, first.claim);
    EXPECT_EQ(pulled.abort, 0U);
    EXPECT_EQ(pulled.provision_count, 0U);
    ASSERT_EQ(report(DIBS_REPORT_RUNNING, "w1", first.claim), DIBS_OK);
    EXPECT_EQ(report(DIBS_REPORT_UNASSIGN, "w2", first.claim), DIBS_ENOTFOUND);
    EXPECT_STREQ(why, "that worker has no such claim");
    ASSERT_EQ(report(DIBS_REPORT_UNASSIGN, "w1", first.claim), DIBS_OK);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);

    ASSERT_EQ(report(DIBS_REPORT_IDLE, "w2", 0), DIBS_OK);
    const dibs_completion second = reap();
    ASSERT_EQ(second.outcome, DIBS_GRANTED);
    EXPECT_EQ(second.claim, first.claim);
    EXPECT_GT(second.lease.fence, first.lease.fence);

    ASSERT_EQ(report(DIBS_REPORT_AGAIN, nullptr, first.claim, "cuda"), DIBS_OK);
    EXPECT_EQ(reap().kind, DIBS_LEASE_REQUEUED);
    ASSERT_EQ(report(DIBS_REPORT_IDLE, "w3", 0), DIBS_OK);
    dibs_completion none = {};
    const dibs_puller unfit = {"w3", nullptr, 0};
    ASSERT_EQ(dibs_pull(&options, "far", &unfit, 1, 0, &pulled), 1);
    EXPECT_EQ(pulled.claim, 0U);
    EXPECT_EQ(dibs_reap(client, &none, 1, DIBS_NOWAIT), 0);
    ASSERT_EQ(report(DIBS_REPORT_IDLE, "w4", 0, "cuda"), DIBS_OK);
    EXPECT_EQ(reap().outcome, DIBS_GRANTED);

    ASSERT_EQ(report(DIBS_REPORT_ABSENT, nullptr, first.claim), DIBS_OK);
    const dibs_completion gone = reap();
    EXPECT_EQ(gone.kind, DIBS_LEASE_ENDED);
    EXPECT_EQ(gone.code, DIBS_EHOLDERGONE);
    EXPECT_EQ(report(DIBS_REPORT_AGAIN, nullptr, first.claim), DIBS_ENOTFOUND);
}

TEST_F(Administered, AReportOfAnotherKindOfPoolIsRefusedWithItsCode) {
    dibs_worker_report said = {};
    said.size = sizeof said;
    said.kind = DIBS_REPORT_IDLE;
    said.worker = "w";
    said.pool = "plain";
    EXPECT_EQ(dibs_report(&options, &said), DIBS_ESTATE);
    EXPECT_NE(std::strlen(why), 0U);
    said.pool = "nowhere";
    EXPECT_EQ(dibs_report(&options, &said), DIBS_EPOOL);
    const dibs_puller asking = {"w", nullptr, 0};
    dibs_pulled pulled = {};
    EXPECT_EQ(dibs_pull(&options, "nowhere", &asking, 1, 0, &pulled), DIBS_EPOOL);
    EXPECT_EQ(dibs_pull(&options, "plain", &asking, 1, 0, &pulled), DIBS_ESTATE);
}

TEST_F(Administered, LatenciesAreThoseOfThePoolAndThoseThatClientsReport) {
    const Attached other(dibsd.socket(), "token");
    for (int i = 0; i < 3; ++i) {
        const dibs_completion end = other.claim();  // alone
        EXPECT_EQ(dibs_release(other, &end.lease, DIBS_FOREVER), DIBS_OK);
        const dibs_completion in_a_batch = other.claim(Attached::asking(DIBS_SECOND));
        ASSERT_EQ(in_a_batch.outcome, DIBS_GRANTED);
        EXPECT_EQ(dibs_release(other, &in_a_batch.lease, DIBS_FOREVER), DIBS_OK);
    }
    dibs_latency latency = {};
    latency.size = sizeof latency;
    ASSERT_EQ(dibs_session_latency(other, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 6U);
    EXPECT_GT(latency.p50_ns, 0);
    ASSERT_EQ(dibs_pool_latency(other, other.pool(), &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 6U);
    // What clients report is summed up now and then, while the broker has something to do.
    for (latency.count = 0; latency.count < 6;) {
        const dibs_completion end = client.claim(Attached::asking(0));
        ASSERT_NE(end.outcome, DIBS_GRANTED);
        ASSERT_EQ(dibs_reported_latency(client, &latency), DIBS_OK);
    }
    EXPECT_EQ(latency.count, 6U);
    ASSERT_EQ(dibs_session_latency(client, &latency), DIBS_OK);
    EXPECT_EQ(latency.count, 0U);
}

TEST_F(Administered, ADumpThatCannotBeWrittenSaysSoAndTheNextOneCan) {
    const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(full, 0);
    EXPECT_EQ(dibs_dump(&options, full), DIBS_ESYSTEM);
    EXPECT_EQ(errno, ENOSPC);
    (void)close(full);
    const int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ASSERT_GE(nothing, 0);
    int code = DIBS_ESTATE;
    while (code == DIBS_ESTATE)  // until the broker has seen the first one hang up
        code = dibs_dump(&options, nothing);
    EXPECT_EQ(code, DIBS_OK);
    (void)close(nothing);
}

}  // namespace
}  // namespace dibs::test
