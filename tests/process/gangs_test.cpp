// tests/process/gangs_test.cpp -- applications and gangs through libdibs, against a real dibsd.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/child.hpp"
#include "tests/process/client_attached.hpp"
#include "tests/process/kept_dibsd.hpp"

namespace dibs::test {
namespace {

constexpr const char* kPools =
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 4\n"
    "[[pool]]\nname = \"other\"\nkind = \"counted\"\nslots = 1\n";

// An application of one group in the client's pool.
struct Gang {
    Gang(const Attached& client, const char* name, uint32_t members) {
        group.name = "rank";
        group.members = members;
        app.size = sizeof app;
        app.name = name;
        app.pool = client.pool();
        app.groups = &group;
        app.group_count = members == 0 ? 0 : 1;
    }
    [[nodiscard]] int add(const Attached& client, uint64_t* number = nullptr) const {
        return dibs_app_add(client, &app, 10 * DIBS_SECOND, number);
    }
    dibs_app_group group = {};
    dibs_app app = {};
};

dibs_app_event next_event(const Attached& client) {
    dibs_app_event event = {};
    event.size = sizeof event;
    EXPECT_EQ(dibs_app_next(client, &event, 10 * DIBS_SECOND), DIBS_OK);
    return event;
}

// The event that says it.
dibs_app_event await_state(const Attached& client, int32_t state) {
    for (int i = 0; i < 10; ++i) {
        const dibs_app_event event = next_event(client);
        if (event.state == state) return event;
    }
    ADD_FAILURE() << "no " << dibs_app_state_name(state);
    return {};
}

dibs_claim_options member(const char* app, const char* task) {
    dibs_claim_options options = Attached::asking(DIBS_FOREVER);
    options.application = app;
    options.task = task;
    options.group = "rank";
    return options;
}

// A process that claims as that task, and marks how it ended.
std::unique_ptr<Child> member_process(const std::string& socket, const std::string& task) {
    return std::make_unique<Child>([&](const Child& child) {
        const Attached client(socket, "gpu");
        const dibs_completion end = client.claim_in_time(member("training", task.c_str()));
        child.mark(end.outcome == DIBS_GRANTED ? 'g' : 'r');
        for (;;)
            pause();
    });
}

TEST(Gangs, OfFourProcessesRunAllOrNone) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    const dibs_completion held = manager.claim();  // of four slots one is somebody's
    ASSERT_EQ(held.outcome, DIBS_GRANTED);
    uint64_t number = 0;
    ASSERT_EQ(Gang(manager, "training", 4).add(manager, &number), DIBS_OK);
    EXPECT_NE(number, 0U);
    EXPECT_EQ(await_state(manager, DIBS_APP_RESERVING).number, number);
    std::vector<std::unique_ptr<Child>> members;
    for (const char* task : {"rank-0", "rank-1", "rank-2", "rank-3"})
        members.push_back(member_process(dibsd.socket(), task));
    // Three placeholders, and no member has anything.
    manager.await([](const dibs_counters& now) { return now.reserved == 3 && now.leased == 1; });
    ASSERT_EQ(dibs_release(manager, &held.lease, DIBS_FOREVER), DIBS_OK);
    EXPECT_STREQ(await_state(manager, DIBS_APP_RUNNING).name, "training");
    for (const auto& one : members)
        EXPECT_EQ(one->marked(), 'g');
    manager.await([](const dibs_counters& now) { return now.leased == 4 && now.reserved == 0; });
    ASSERT_EQ(dibs_app_complete(manager, "training", DIBS_FOREVER), DIBS_OK);
    EXPECT_EQ(await_state(manager, DIBS_APP_COMPLETED).code, DIBS_OK);
    uint64_t tasks = 0;
    EXPECT_EQ(dibs_app_remove(manager, "training", DIBS_FOREVER, &tasks), DIBS_ESTATE);
    EXPECT_EQ(tasks, 4U);
    members.clear();
    manager.await([](const dibs_counters& now) { return now.idle == 4; });
    EXPECT_EQ(dibs_app_remove(manager, "training", DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(dibs_app_remove(manager, "training", DIBS_FOREVER, nullptr), DIBS_ENOTFOUND);
}

TEST(Gangs, TakeTheOnesThatAreThereUnchanged) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    uint64_t number = 0;
    uint64_t again = 0;
    ASSERT_EQ(Gang(manager, "training", 2).add(manager, &number), DIBS_OK);
    EXPECT_EQ(Gang(manager, "training", 3).add(manager, &again), DIBS_EDUPLICATE);
    EXPECT_EQ(again, number);
    ASSERT_EQ(dibs_app_fail(manager, "training", DIBS_FOREVER), DIBS_OK);
    (void)await_state(manager, DIBS_APP_FAILED);
    // Its name is dead: an error of its own, for who adds it and who claims.
    EXPECT_EQ(Gang(manager, "training", 2).add(manager), DIBS_EAPPLICATION);
    const dibs_completion end = manager.claim(member("training", "rank-0"));
    EXPECT_EQ(end.outcome, DIBS_REJECTED);
    EXPECT_EQ(end.code, DIBS_EAPPLICATION);
    ASSERT_EQ(dibs_app_remove(manager, "training", DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(Gang(manager, "training", 2).add(manager), DIBS_OK);
}

TEST(Gangs, AreAdoptedWhenTheirManagerIsKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    Child first([&](const Child& child) {
        const Attached manager(dibsd.socket(), "gpu");
        const int code = Gang(manager, "training", 2).add(manager);
        (void)await_state(manager, DIBS_APP_RUNNING);
        child.mark(code == DIBS_OK ? 'a' : 'x');
        for (;;)
            pause();
    });
    ASSERT_EQ(first.marked(), 'a');
    const Attached second(dibsd.socket(), "gpu");
    EXPECT_EQ(dibs_app_adopt(second, "training", DIBS_FOREVER, nullptr), DIBS_ENOTHOLDER);
    first.kill();
    int code = DIBS_ENOTHOLDER;
    uint64_t number = 0;
    while (code == DIBS_ENOTHOLDER)
        code = dibs_app_adopt(second, "training", DIBS_FOREVER, &number);
    ASSERT_EQ(code, DIBS_OK);
    EXPECT_EQ(dibs_app_adopt(second, "training", DIBS_FOREVER, nullptr), DIBS_ALREADY_ENDED);
    // Its placeholders have stayed.
    EXPECT_EQ(second.counters().reserved, 2U);
    EXPECT_EQ(second.claim(member("training", "rank-0")).outcome, DIBS_GRANTED);
    ASSERT_EQ(dibs_app_complete(second, "training", DIBS_FOREVER), DIBS_OK);
    (void)await_state(second, DIBS_APP_COMPLETED);
}

TEST(Gangs, GoOnWhenAMemberIsKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    ASSERT_EQ(Gang(manager, "training", 2).add(manager), DIBS_OK);
    auto one = member_process(dibsd.socket(), "rank-0");
    auto other = member_process(dibsd.socket(), "rank-1");
    EXPECT_EQ(one->marked(), 'g');
    EXPECT_EQ(other->marked(), 'g');
    one->kill();
    manager.await([](const dibs_counters& now) { return now.leased == 1 && now.idle == 3; });
    // The task has ended, and is not run again under its name; another one waits as any claim does.
    EXPECT_EQ(manager.claim(member("training", "rank-0")).code, DIBS_EENDED);
    EXPECT_EQ(manager.claim(member("training", "rank-2")).outcome, DIBS_GRANTED);
    ASSERT_EQ(dibs_app_kill(manager, "training", DIBS_FOREVER), DIBS_OK);
    (void)await_state(manager, DIBS_APP_KILLED);
    manager.await([](const dibs_counters& now) { return now.idle == 4; });
}

TEST(Gangs, AreAdoptedByOneOfTwo) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    Child first([&](const Child& child) {
        const Attached manager(dibsd.socket(), "gpu");
        child.mark(Gang(manager, "training", 2).add(manager) == DIBS_OK ? 'a' : 'x');
        for (;;)
            pause();
    });
    ASSERT_EQ(first.marked(), 'a');
    const Attached one(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    std::atomic<bool> adopted = false;
    const auto adopt = [&adopted](const Attached& manager, int& code) {
        do
            code = dibs_app_adopt(manager, "training", DIBS_FOREVER, nullptr);
        while (code == DIBS_ENOTHOLDER && !adopted);
        if (code == DIBS_OK) adopted = true;
    };
    std::array<int, 2> codes = {};
    std::thread beside([&] { adopt(other, codes[1]); });
    first.kill();
    adopt(one, codes[0]);
    beside.join();
    std::sort(codes.begin(), codes.end());
    EXPECT_EQ(codes, (std::array<int, 2>{DIBS_ENOTHOLDER, DIBS_OK}));
}

// The broker dies while the gang lacks a slot, and again where the last one comes: what has been
// decided by then differs from time to time.
TEST(Gangs, OutliveBrokersThatAreKilled) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    const Attached ranks(dibsd.socket(), "gpu");
    for (int round = 0; round < 6; ++round) {
        const dibs_completion held = manager.claim();
        ASSERT_EQ(held.outcome, DIBS_GRANTED);
        ASSERT_EQ(Gang(manager, "training", 4).add(manager), DIBS_OK);
        for (const char* task : {"rank-0", "rank-1", "rank-2", "rank-3"}) {
            const dibs_claim_options options = member("training", task);
            (void)ranks.submit(&options);
        }
        manager.await(
            [](const dibs_counters& now) { return now.reserved == 3 && now.leased == 1; });
        if (round % 2 == 0) dibsd.kill_broker();
        ASSERT_EQ(dibs_release(manager, &held.lease, DIBS_NOWAIT), DIBS_OK);
        dibsd.kill_broker();
        (void)await_state(manager, DIBS_APP_RUNNING);
        std::array<dibs_completion, 4> ends = {};
        for (dibs_completion& end : ends) {
            ASSERT_EQ(dibs_reap(ranks, &end, 1, DIBS_FOREVER), 1);
            ASSERT_EQ(end.outcome, DIBS_GRANTED);
        }
        manager.await(
            [](const dibs_counters& now) { return now.reserved == 0 && now.leased == 4; });
        for (const dibs_completion& end : ends)
            ASSERT_EQ(dibs_release(ranks, &end.lease, DIBS_FOREVER), DIBS_OK);
        ASSERT_EQ(dibs_app_complete(manager, "training", DIBS_FOREVER), DIBS_OK);
        (void)await_state(manager, DIBS_APP_COMPLETED);
        ASSERT_EQ(dibs_app_remove(manager, "training", DIBS_FOREVER, nullptr), DIBS_OK);
    }
}

TEST(Gangs, FailWithoutAManagerAsLongAsTheConfigurationSays) {
    const Folder folder;
    const KeptDibsd dibsd(folder, std::string("manager_timeout = \"50ms\"\n") + kPools);
    Child first([&](const Child& child) {
        const Attached manager(dibsd.socket(), "gpu");
        child.mark(Gang(manager, "training", 2).add(manager) == DIBS_OK ? 'a' : 'x');
        for (;;)
            pause();
    });
    ASSERT_EQ(first.marked(), 'a');
    first.kill();
    const Attached second(dibsd.socket(), "gpu");
    int code = DIBS_EDUPLICATE;
    while (code == DIBS_EDUPLICATE)
        code = Gang(second, "training", 2).add(second);
    EXPECT_EQ(code, DIBS_EAPPLICATION);
    second.await([](const dibs_counters& now) { return now.idle == 4; });
}

TEST(Gangs, SayWhatIsWrong) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    Gang gang(manager, "training", 5);  // of four slots
    ASSERT_EQ(gang.add(manager), DIBS_OK);
    EXPECT_EQ(await_state(manager, DIBS_APP_FAILED).code, DIBS_EUNITS);
    gang.app.name = "";
    EXPECT_EQ(gang.add(manager), DIBS_ENAME);
    gang.app.name = "other";
    gang.app.pool = 77;
    EXPECT_EQ(gang.add(manager), DIBS_EPOOL);
    EXPECT_EQ(dibs_app_complete(manager, "nobody", DIBS_FOREVER), DIBS_ENOTFOUND);
    EXPECT_EQ(dibs_app_remove_task(manager, "nobody", "rank-0", DIBS_FOREVER), DIBS_ALREADY_ENDED);
    EXPECT_EQ(manager.claim(member("nobody", "rank-0")).code, DIBS_ENOTFOUND);
    dibs_claim_options lacking = member("training", "rank-0");
    lacking.task = nullptr;
    dibs_completion end = {};
    EXPECT_EQ(dibs_claim(manager, manager.pool(), &lacking, &end), DIBS_ENAME);
    for (const char* name : {"a\tb", "a\x7f"}) {
        Gang odd(manager, name, 1);
        EXPECT_EQ(odd.add(manager), DIBS_ENAME);
        odd.app.name = "a";
        odd.group.name = name;
        EXPECT_EQ(odd.add(manager), DIBS_ENAME);
        EXPECT_EQ(dibs_app_adopt(manager, name, DIBS_FOREVER, nullptr), DIBS_ENAME);
        EXPECT_EQ(dibs_app_complete_task(manager, "a", name, DIBS_FOREVER), DIBS_ENAME);
        dibs_app_task task = {sizeof task, name, nullptr, 0, 0};
        EXPECT_EQ(dibs_app_add_task(manager, "a", &task, DIBS_FOREVER), DIBS_ENAME);
        task.name = "t";
        task.group = name;
        EXPECT_EQ(dibs_app_add_task(manager, "a", &task, DIBS_FOREVER), DIBS_ENAME);
        for (const dibs_claim_options& options : {member(name, "t"), member("a", name)})
            EXPECT_EQ(dibs_claim(manager, manager.pool(), &options, &end), DIBS_ENAME);
    }
}

TEST(Gangs, AreAsManyAsTheSessionHasRoomFor) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    for (int i = 0; i < 12; ++i) {
        const std::string name = "app-" + std::to_string(i);
        ASSERT_EQ(Gang(manager, name.c_str(), 0).add(manager), DIBS_OK) << i;
    }
    EXPECT_EQ(Gang(manager, "app-12", 0).add(manager), DIBS_ENOROOM);
    ASSERT_EQ(dibs_app_remove(manager, "app-0", DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(Gang(manager, "app-12", 0).add(manager), DIBS_OK);
    // What it has not read of those that are gone takes no room.
    for (int i = 0; i < 100; ++i) {
        ASSERT_EQ(dibs_app_remove(manager, "app-12", DIBS_FOREVER, nullptr), DIBS_OK) << i;
        ASSERT_EQ(Gang(manager, "app-12", 0).add(manager), DIBS_OK) << i;
    }
    EXPECT_STREQ(next_event(manager).name, "app-1");
    // The next broker counts them, too.
    dibsd.kill_broker();
    EXPECT_EQ(Gang(manager, "app-13", 0).add(manager), DIBS_ENOROOM);
    ASSERT_EQ(dibs_app_remove(manager, "app-5", DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(Gang(manager, "app-13", 0).add(manager), DIBS_OK);
}

TEST(Gangs, TellWhoAdoptsThemTheirStateAndWhoHasThemThatTheyAreRemoved) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    {
        const Attached first(dibsd.socket(), "gpu");
        ASSERT_EQ(Gang(first, "training", 1).add(first), DIBS_OK);
        await_state(first, DIBS_APP_RUNNING);
    }
    const Attached second(dibsd.socket(), "gpu");
    int code = DIBS_ENOTHOLDER;
    while (code == DIBS_ENOTHOLDER)
        code = dibs_app_adopt(second, "training", DIBS_FOREVER, nullptr);
    ASSERT_EQ(code, DIBS_OK);
    const dibs_app_event told = next_event(second);
    EXPECT_EQ(told.state, DIBS_APP_RUNNING);
    EXPECT_EQ(told.before, DIBS_APP_RUNNING);
    EXPECT_STREQ(told.name, "training");
    const Attached third(dibsd.socket(), "gpu");
    EXPECT_EQ(dibs_app_remove(third, "training", DIBS_FOREVER, nullptr), DIBS_OK);
    EXPECT_EQ(next_event(second).state, DIBS_APP_REMOVED);
    EXPECT_STREQ(dibs_app_state_name(DIBS_APP_REMOVED), "removed");
    EXPECT_EQ(dibs_app_remove(second, "training", DIBS_FOREVER, nullptr), DIBS_ENOTFOUND);
}

TEST(Gangs, OfOneNameAreToldApart) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    const Attached other(dibsd.socket(), "gpu");
    ASSERT_EQ(Gang(manager, "cyc", 1).add(manager), DIBS_OK);
    ASSERT_EQ(dibs_app_remove(other, "cyc", DIBS_FOREVER, nullptr), DIBS_OK);
    ASSERT_EQ(Gang(manager, "cyc", 1).add(manager), DIBS_OK);
    ASSERT_EQ(dibs_app_complete(manager, "cyc", DIBS_FOREVER), DIBS_OK);
    ASSERT_EQ(dibs_app_remove(manager, "cyc", DIBS_FOREVER, nullptr), DIBS_OK);
    uint64_t number = 0;
    ASSERT_EQ(Gang(manager, "cyc", 1).add(manager, &number), DIBS_OK);
    EXPECT_EQ(await_state(manager, DIBS_APP_RUNNING).number, number);
    dibs_app_event event = {};
    event.size = sizeof event;
    EXPECT_EQ(dibs_app_next(manager, &event, DIBS_NOWAIT), DIBS_ETIMEDOUT);
}

TEST(Gangs, AreExplainedByTheClaimsThatTheyHold) {
    const Folder folder;
    const KeptDibsd dibsd(folder, kPools);
    const Attached manager(dibsd.socket(), "gpu");
    const dibs_completion held = manager.claim();
    ASSERT_EQ(Gang(manager, "training", 4).add(manager), DIBS_OK);
    const dibs_claim_options options = member("training", "rank-0");
    const uint64_t ticket = manager.submit(&options);
    dibs_explanation why = {};
    why.size = sizeof why;
    ASSERT_EQ(dibs_explain(manager, ticket, &why), DIBS_OK);
    EXPECT_EQ(why.reason, DIBS_WAIT_GANG);
    ASSERT_EQ(dibs_release(manager, &held.lease, DIBS_FOREVER), DIBS_OK);
    dibs_completion end = {};
    ASSERT_EQ(dibs_reap(manager, &end, 1, DIBS_FOREVER), 1);
    EXPECT_EQ(end.outcome, DIBS_GRANTED);
}

}  // namespace
}  // namespace dibs::test
