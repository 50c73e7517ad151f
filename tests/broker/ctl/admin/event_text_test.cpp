// tests/broker/ctl/admin/event_text_test.cpp -- what `dibs events --jsonl` says of each kind of
// event: every key, in order, of an event in which everything is set; and that docs/tool.md has
// every key.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/event_text.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

namespace dibs::ctl {
namespace {

// As if everything meant something in every kind.
dibs_event full_event(int kind) {
    dibs_event event = {};
    event.size = sizeof event;
    event.number = 12;
    event.time_ns = 3'000'000'001;
    event.kind = kind;
    event.full = 1;
    event.outcome = DIBS_EXPIRED;
    event.code = DIBS_EREVOKED;
    event.uid = 1000;
    event.pid = 4711;
    event.session = 3;
    event.session_generation = 1;
    event.units = 2;
    event.slot = 4;
    event.round = 5;
    event.from_class = 1;
    event.to_class = 2;
    event.slot_count = 2;
    event.hit_permille = 12;
    event.claim = 9;
    event.id = 0x100000006;
    event.fence = 7;
    event.value = 8;
    event.holder = {1001, 4712, 10, 11};
    const int64_t cost[] = {1, 2, 3, 4, 5};
    std::memcpy(event.cost_micros, cost, sizeof cost);
    event.slots[1] = 1;
    std::strcpy(event.pool, "gpu");
    std::strcpy(event.account, "batch");
    std::strcpy(event.type, "small");
    return event;
}

const std::string kWho = R"("client":"s3.1","uid":1000,"pid":4711})";
const std::string kHolder = R"("holder_claim":11,"holder_uid":1001,"holder_pid":4712,)";
const std::string kOfSlots = R"("slot":4,"slots":[0,1],"units":2,"fence":7,"round":5,)";

std::string begin(const std::string& event) {
    return R"({"schema":"dibs.events/1","event":")" + event +
           R"(","number":12,"time_ns":3000000001,"pool":"gpu","account":"batch","full":true,)"
           R"("claim":9,)";
}

TEST(EventText, SaysEveryKeyOfEveryKind) {
    const std::string lease = R"("lease":"l0x100000006",)" + kOfSlots;
    const std::string slot = R"("id":"s0x100000006",)" + kOfSlots;
    const std::string order =
        R"("id":"s0x100000006","slot":4,"type":"small","slots":[0,1],"units":2,"fence":7,"round":5,)";
    const std::string reason = R"("reason":"revoked",)";
    const std::string end = kHolder + kWho;
    const std::string cost = R"("cost_micros":[1,2,3,4,5],)";
    const std::string classes = R"("from":1,"to":2,)";
    const std::string told[] = {
        begin("result") + kOfSlots + reason + end,
        begin("announced") + slot + end,
        begin("assign") + slot + end,
        begin("revoke") + slot + end,
        begin("answer") + kOfSlots + end,
        begin("grant") + lease + R"("interval_ns":8,)" + end,
        begin("end") + kOfSlots + R"("outcome":"expired",)" + reason + end,
        begin("adopted") + lease + R"("interval_ns":8,)" + end,
        begin("lease_grace") + lease + R"("until_ns":8,)" + end,
        begin("kill_holder") + lease + end,
        begin("lease_end") + lease + reason + R"("holder_claim":11,"released_by":1001,)" + kWho,
        begin("slot_gone") + slot + end,
        begin("demand") + R"("slot":4,"slots":[0,1],"units":2,"round":5,)" +
            R"("queued":8,"oldest_wait_ns":4294967302,"hit_permille":12,"headroom":7,)" + end,
        begin("drained") + kOfSlots + end,
        begin("promote") + kOfSlots + classes + end,
        begin("demote") + kOfSlots + classes + end,
        begin("preempt") + kOfSlots + kHolder + cost + kWho,
        begin("refund") + kOfSlots + kHolder + cost + kWho,
        begin("pulled") + kOfSlots + end,
        begin("session_opened") + kOfSlots + end,
        begin("session_ended") + kOfSlots + end,
        begin("more_slots") + kOfSlots + end,
        R"({"schema":"dibs.events/1","event":"lost","events":8})",
        begin("create") + order + end,
        begin("stop") + order + end};
    ASSERT_EQ(std::size(told), DIBS_EVENT_STOP + 1);
    for (int kind = 0; kind <= DIBS_EVENT_STOP; ++kind)
        EXPECT_EQ(event_json(full_event(kind)), told[kind]);
}

TEST(EventText, SaysOfARejectedClaimWhenToTryAgainOrWhatItsWorkerSaid) {
    dibs_event event = full_event(DIBS_EVENT_END);
    event.outcome = DIBS_REJECTED;
    event.code = DIBS_EBUSY;
    const std::string end = kHolder + kWho;
    EXPECT_EQ(event_json(event),
              begin("end") + kOfSlots +
                  R"("outcome":"rejected","reason":"busy","retry_after_ns":8,)" + end);
    event.code = DIBS_EREFUSED;
    EXPECT_EQ(event_json(event),
              begin("end") + kOfSlots +
                  R"("outcome":"rejected","reason":"refused","worker_code":8,)" + end);
    event.value = static_cast<uint64_t>(int64_t{-9});
    EXPECT_EQ(event_json(event),
              begin("end") + kOfSlots +
                  R"("outcome":"rejected","reason":"refused","worker_code":-9,)" + end);
    EXPECT_NE(event_text(event).find(" reason refused worker_code -9 holder_claim "),
              std::string::npos);
}

TEST(EventText, SaysNoEndOfAGraceThatLastsUntilItsRoomIsWanted) {
    dibs_event event = full_event(DIBS_EVENT_LEASE_GRACE);
    event.value = UINT64_MAX;
    EXPECT_EQ(event_json(event),
              begin("lease_grace") + R"("lease":"l0x100000006",)" + kOfSlots + kHolder + kWho);
    EXPECT_EQ(event_text(event).find("until_ns"), std::string::npos);
}

TEST(EventText, SaysOfADispatchedPoolWhichEntryAndWorker) {
    dibs_event event = {};
    event.size = sizeof event;
    event.number = 12;
    event.time_ns = 3'000'000'001;
    event.kind = DIBS_EVENT_START;
    event.full = 1;
    event.uid = event.session = event.holder.uid = UINT32_MAX;
    event.slot = 4;
    event.id = 7;
    std::strcpy(event.pool, "far");
    std::strcpy(event.entry, "job-1");
    EXPECT_EQ(event_json(event),
              R"({"schema":"dibs.events/1","event":"start","number":12,"time_ns":3000000001,)"
              R"("pool":"far","full":true,"entry":"job-1","entry_number":7,"slot":4})");
    event.kind = DIBS_EVENT_FORGET;
    event.slot = UINT32_MAX;
    EXPECT_EQ(event_text(event), "3.000000s forget far entry job-1 entry_number 7");
}

TEST(EventText, SaysOfAnotherUsersWhatAndWhenAlone) {
    dibs_event event = full_event(DIBS_EVENT_GRANT);
    event.full = 0;
    EXPECT_EQ(event_json(event),
              R"({"schema":"dibs.events/1","event":"grant","number":12,"time_ns":3000000001,)"
              R"("pool":"gpu","account":"batch","full":false})");
    EXPECT_EQ(event_text(event), "3.000000s grant gpu (of account batch)");
}

TEST(EventText, LeavesOutWhatMeansNothing) {
    dibs_event event = {};
    event.kind = DIBS_EVENT_DRAINED;
    event.full = 1;
    event.slot = event.session = event.uid = event.holder.uid = 0xffffffffU;
    EXPECT_EQ(event_json(event),
              R"({"schema":"dibs.events/1","event":"drained","number":0,"time_ns":0,"full":true})");
}

TEST(EventText, HasNoKeyThatTheDocumentLacks) {
    std::ifstream file(DIBS_ROOT "/docs/tool.md");
    const std::string all((std::istreambuf_iterator<char>(file)), {});
    const size_t from = all.find("## dibs events");
    const std::string section = all.substr(from, all.find("\n## ", from + 1) - from);
    dibs_event rejected = full_event(DIBS_EVENT_END);
    rejected.outcome = DIBS_REJECTED;
    std::string said = event_json(rejected);
    rejected.code = DIBS_EREFUSED;
    said += event_json(rejected);
    for (int kind = 0; kind <= DIBS_EVENT_STOP; ++kind)
        said += event_json(full_event(kind));
    const std::regex key("\"(\\w+)\":");
    for (std::sregex_iterator at(said.begin(), said.end(), key); at != std::sregex_iterator();
         ++at) {
        const std::string name = (*at)[1];
        const bool there = section.find("`" + name + "`") != std::string::npos ||
                           section.find("\"" + name + "\":") != std::string::npos;
        EXPECT_TRUE(there || name == "schema") << name;
    }
}

}  // namespace
}  // namespace dibs::ctl
