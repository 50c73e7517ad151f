// tests/process/client_dispatch_test.cpp -- dispatched pools, from C against a real dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "dibs/dibs.h"
#include "tests/process/dibsd.hpp"

namespace dibs::test {
namespace {

constexpr const char* kDispatchPools = R"(
[[pool]]
name = "far"
kind = "worker"
workers_max = 2
dispatch = true
[[pool]]
name = "near"
kind = "worker"
)";

struct DispatchedPool : testing::Test {
    DispatchedPool() : dibsd(folder, kDispatchPools), socket(dibsd.socket()) {
        options.size = sizeof options;
        options.socket_path = socket.c_str();
        options.error_text = why;
        options.error_text_size = sizeof why;
    }
    static dibs_dispatched of(int32_t kind, const char* entry, const char* worker = nullptr) {
        dibs_dispatched said = {};
        said.size = sizeof said;
        said.kind = kind;
        said.pool = "far";
        said.entry = entry;
        said.worker = worker;
        return said;
    }
    int say(const dibs_dispatched& said) const { return dibs_dispatch_report(&options, &said); }
    int see(const char* worker, int32_t state) const {
        dibs_dispatched said = of(DIBS_DISPATCH_WORKER, nullptr, worker);
        said.state = state;
        said.type = "far";
        return say(said);
    }
    int read_queue(const std::vector<std::string>& names) const {
        std::vector<const char*> texts;
        for (const std::string& name : names)
            texts.push_back(name.c_str());
        dibs_dispatched said = of(DIBS_DISPATCH_QUEUE, nullptr);
        said.members = texts.data();
        said.member_count = texts.size();
        return say(said);
    }
    std::vector<dibs_order> orders(int64_t wait_ns = 0, uint64_t* stamp = nullptr) const {
        std::vector<dibs_order> told(DIBS_ORDERS_MAX);
        const int count =
            dibs_dispatch_orders(&options, "far", told.data(), told.size(), wait_ns, stamp);
        EXPECT_GE(count, 0) << why;
        told.resize(static_cast<size_t>(count < 0 ? 0 : count));
        return told;
    }

    const Folder folder;
    const Dibsd dibsd;
    std::string socket;
    char why[256] = "";
    dibs_connect_options options = {};
};

TEST_F(DispatchedPool, AnEntryIsLockedStartedAndForgotten) {
    ASSERT_EQ(see("w1", DIBS_WORKER_IDLE), DIBS_OK) << why;
    ASSERT_EQ(read_queue({}), DIBS_OK);
    uint64_t stamp = 0;
    EXPECT_TRUE(orders(0, &stamp).empty());
    EXPECT_EQ(stamp, 0U);

    std::vector<dibs_order> told;
    std::thread waits([&] { told = orders(DIBS_FOREVER, &stamp); });
    dibs_dispatched entry = of(DIBS_DISPATCH_ENTRY, "a");
    entry.fields = DIBS_ENTRY_PRIORITY | DIBS_ENTRY_SUPERVISOR | DIBS_ENTRY_TYPES;
    entry.priority = 7;
    entry.supervisor = 1;
    const char* type = "far";
    entry.members = &type;
    entry.member_count = 1;
    ASSERT_EQ(say(entry), DIBS_OK) << why;
    waits.join();
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, DIBS_ORDER_LOCK);
    EXPECT_STREQ(told[0].entry, "a");
    EXPECT_EQ(told[0].number, 1U);
    EXPECT_TRUE(orders(1, &stamp).size() == 1U);  // the same, when the time is over

    ASSERT_EQ(say(of(DIBS_DISPATCH_DONE, "a")), DIBS_OK) << why;
    told = orders(DIBS_FOREVER, &stamp);
    ASSERT_EQ(told.size(), 1U);
    EXPECT_EQ(told[0].kind, DIBS_ORDER_START);
    EXPECT_STREQ(told[0].worker, "w1");
    EXPECT_STREQ(told[0].type, "far");

    ASSERT_EQ(say(of(DIBS_DISPATCH_PROCESS, "a", "w1")), DIBS_OK);
    dibs_dispatched state = of(DIBS_DISPATCH_ENTRY, "a");
    state.state = DIBS_ENTRY_COMPLETE;
    ASSERT_EQ(say(state), DIBS_OK);
    EXPECT_EQ(orders()[0].kind, DIBS_ORDER_KILL);
    ASSERT_EQ(say(of(DIBS_DISPATCH_DONE, "a")), DIBS_OK);
    EXPECT_TRUE(orders().empty());
    EXPECT_EQ(say(of(DIBS_DISPATCH_CANCEL, "a")), DIBS_ENOTFOUND);
    EXPECT_STREQ(why, "there is no entry a in pool far");
}

TEST_F(DispatchedPool, AReadingOfManyEntriesKeepsThemAll) {
    std::vector<std::string> names;
    for (int i = 0; i < 100; ++i)
        names.push_back(std::to_string(i) + std::string(60, 'x'));
    for (const std::string& name : names)
        ASSERT_EQ(say(of(DIBS_DISPATCH_ENTRY, name.c_str())), DIBS_OK) << why;
    ASSERT_EQ(read_queue(names), DIBS_OK) << why;
    EXPECT_EQ(say(of(DIBS_DISPATCH_LOCK, names.front().c_str())), DIBS_OK) << why;
    EXPECT_EQ(say(of(DIBS_DISPATCH_LOCK, names.back().c_str())), DIBS_OK) << why;
    names.pop_back();
    ASSERT_EQ(read_queue(names), DIBS_OK) << why;
    EXPECT_EQ(say(of(DIBS_DISPATCH_UNLOCK, names.front().c_str())), DIBS_OK) << why;
    EXPECT_EQ(say(of(DIBS_DISPATCH_UNLOCK, (std::to_string(99) + std::string(60, 'x')).c_str())),
              DIBS_ENOTFOUND);
}

TEST_F(DispatchedPool, AHeldWorkerTakesNothing) {
    ASSERT_EQ(see("w1", DIBS_WORKER_IDLE), DIBS_OK);
    ASSERT_EQ(say(of(DIBS_DISPATCH_HOLD, nullptr, "w1")), DIBS_OK) << why;
    ASSERT_EQ(read_queue({}), DIBS_OK);
    ASSERT_EQ(say(of(DIBS_DISPATCH_ENTRY, "a")), DIBS_OK);
    EXPECT_TRUE(orders().empty());
    ASSERT_EQ(say(of(DIBS_DISPATCH_RUN, nullptr, "w1")), DIBS_OK);
    EXPECT_EQ(orders(DIBS_FOREVER).size(), 1U);
    EXPECT_EQ(say(of(DIBS_DISPATCH_PROBE, nullptr, "w1")), DIBS_OK);
    EXPECT_EQ(say(of(DIBS_DISPATCH_PROBE, nullptr, "w2")), DIBS_ENOTFOUND);
    EXPECT_EQ(say(of(DIBS_DISPATCH_DRAIN, nullptr, "w2")), DIBS_ENOTFOUND);
    EXPECT_EQ(see("w1", DIBS_WORKER_ABSENT), DIBS_OK);
}

TEST_F(DispatchedPool, WhatCannotBeIsRefused) {
    const auto refused = [&](int code, auto change) {
        dibs_dispatched said = of(DIBS_DISPATCH_ENTRY, "a");
        change(said);
        EXPECT_EQ(say(said), code) << why;
    };
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.kind = 0; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.kind = DIBS_DISPATCH_DRAIN + 1; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.pool = nullptr; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.worker = "w"; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.state = DIBS_ENTRY_CANCELLED + 1; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.fields = 8; });
    refused(DIBS_EARGUMENT, [](dibs_dispatched& said) { said.member_count = 1; });
    refused(DIBS_ESIZE, [](dibs_dispatched& said) { said.size = 1; });
    refused(DIBS_ENEGATIVE, [](dibs_dispatched& said) { said.age_ns = -1; });
    refused(DIBS_ENEGATIVE, [](dibs_dispatched& said) {
        said.fields = DIBS_ENTRY_PRIORITY;
        said.priority = -1;
    });
    const std::string long_name(64, 'a');
    refused(DIBS_ENAME, [&](dibs_dispatched& said) { said.entry = long_name.c_str(); });
    refused(DIBS_ENAME, [](dibs_dispatched& said) { said.entry = ""; });
    refused(DIBS_EPOOL, [](dibs_dispatched& said) { said.pool = "nowhere"; });
    refused(DIBS_ESTATE, [](dibs_dispatched& said) { said.pool = "near"; });
    const char* huge = "huge";
    refused(DIBS_ESTATE, [&](dibs_dispatched& said) {
        said.fields = DIBS_ENTRY_TYPES;
        said.members = &huge;
        said.member_count = 1;
    });
    EXPECT_EQ(std::string(why).substr(0, 35), "no type of pool far suits entry a, ");
    EXPECT_EQ(say(of(DIBS_DISPATCH_LOCK, "a")), DIBS_ENOTFOUND);

    dibs_order order = {};
    EXPECT_EQ(dibs_dispatch_orders(&options, "far", &order, 0, 0, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_dispatch_orders(&options, "far", nullptr, 1, 0, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_dispatch_orders(&options, nullptr, &order, 1, 0, nullptr), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_dispatch_orders(&options, "far", &order, 1, -1, nullptr), DIBS_ENEGATIVE);
    EXPECT_EQ(dibs_dispatch_orders(&options, "nowhere", &order, 1, 0, nullptr), DIBS_EPOOL);
    EXPECT_EQ(dibs_dispatch_orders(&options, "near", &order, 1, 0, nullptr), DIBS_ESTATE);
}

}  // namespace
}  // namespace dibs::test
