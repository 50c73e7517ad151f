// tests/clientlib/administration_test.cpp -- what the library asks as an administrator, held
// against the generated code, and what it makes of any answer.
//
// The other side of the socket is one thread that greets, keeps the request, and answers what the
// test has given it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dibs/dibs.h"
#include "schemas/admin_generated.h"
#include "shm/handshake.hpp"
#include "tests/clientlib/packed_answer.hpp"

namespace dibs::test {
namespace {

using admin::Ask;
using admin::Code;

std::vector<uint8_t> answer_of(Code code, const std::string& why = {}) {
    admin::AnswerT answer;
    answer.code = code;
    if (!why.empty()) answer.names.push_back(why);
    return packed(answer);
}

// One conversation per question.
struct Administration : testing::Test {
    Administration() {
        char folder[] = "/tmp/dibs-admin-XXXXXX";
        EXPECT_NE(mkdtemp(folder), nullptr);
        folder_ = folder;
        path = folder_ + "/dibs.sock";
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(listen(listener_, 4), 0);
        options.size = sizeof options;
        options.socket_path = path.c_str();
        options.error_text = why;
        options.error_text_size = sizeof why;
    }
    ~Administration() override {
        close(listener_);
        unlink(path.c_str());
        rmdir(folder_.c_str());
    }

    // What `ask` returns, when the broker answers so.
    template <typename Ask>
    int hear(const std::vector<uint8_t>& bytes, Ask ask) {
        std::thread broker([&] { converse(bytes); });
        const int code = ask();
        broker.join();
        return code;
    }
    // The same, and what was asked.
    template <typename Ask>
    admin::RequestT asked(Ask ask, Code answer = Code::ok) {
        hear(answer_of(answer), ask);
        flatbuffers::Verifier verifier(request.data(), request.size(), 4, 16);
        EXPECT_TRUE(verifier.VerifyBuffer<admin::Request>(nullptr));
        admin::RequestT told;
        flatbuffers::GetRoot<admin::Request>(request.data())->UnPackTo(&told);
        return told;
    }

    // What `ask` returns, when the broker lets nobody in.
    template <typename Ask>
    int refused(shm::FarewellCode why_not, Ask ask) {
        std::thread broker([&] {
            const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            shm::Farewell farewell;
            farewell.code = why_not;
            ASSERT_EQ(send(peer, &farewell, sizeof farewell, 0),
                      static_cast<ssize_t>(sizeof farewell));
            close(peer);
        });
        const int code = ask();
        broker.join();
        return code;
    }

    std::string path;
    dibs_connect_options options = {};
    char why[64] = "before";
    std::vector<uint8_t> request;

  private:
    void converse(const std::vector<uint8_t>& bytes) {
        const int peer = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        shm::AdminHello hello;
        ASSERT_EQ(recv(peer, &hello, sizeof hello, 0), static_cast<ssize_t>(sizeof hello));
        const shm::AdminWelcome welcome;
        ASSERT_EQ(send(peer, &welcome, sizeof welcome, 0), static_cast<ssize_t>(sizeof welcome));
        request.resize(70'000);
        const ssize_t size = recv(peer, request.data(), request.size(), 0);
        ASSERT_GT(size, 0);
        request.resize(static_cast<size_t>(size));
        ASSERT_EQ(send(peer, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
        close(peer);
    }

    std::string folder_;
    int listener_ = -1;
};

TEST_F(Administration, AChangeOfAnAccountSaysWhatIsGivenAndNothingElse) {
    const int64_t rate[] = {3 * DIBS_MICROS, DIBS_MICROS / 2};
    const int64_t balance[] = {-7};
    const dibs_label_limit limits[] = {{"gpu", 2}, {"size", DIBS_NO_LIMIT}};
    dibs_account_change change = {};
    change.size = sizeof change;
    change.fields = DIBS_ACCOUNT_RATE | DIBS_ACCOUNT_BALANCE | DIBS_ACCOUNT_CHARGE_MAX |
                    DIBS_ACCOUNT_FANOUT_MAX | DIBS_ACCOUNT_NO_FREE_TASKS;
    change.rate = rate;
    change.rate_count = 2;
    change.balance = balance;
    change.balance_count = 1;
    change.charge_max_ns = 90 * DIBS_SECOND;
    change.fanout_max = 11;
    change.no_free_tasks = 1;
    change.label_limits = limits;
    change.label_limit_count = 2;
    const auto all = asked([&] { return dibs_account_set(&options, "web", &change); });
    EXPECT_EQ(all.ask, Ask::set_account);
    EXPECT_EQ(all.account, "web");
    ASSERT_NE(all.change, nullptr);
    EXPECT_TRUE(all.change->rate_given);
    EXPECT_EQ(all.change->rate, (std::vector<int64_t>{3'000'000, 500'000}));
    EXPECT_TRUE(all.change->balance_given);
    EXPECT_EQ(all.change->balance, std::vector<int64_t>{-7});
    EXPECT_EQ(all.change->charge_max_ns, 90'000'000'000U);
    EXPECT_EQ(all.change->fanout_max, 11U);
    EXPECT_EQ(all.change->free_tasks_disabled, true);
    EXPECT_EQ(all.change->label_keys, (std::vector<std::string>{"gpu", "size"}));
    EXPECT_EQ(all.change->label_limits, (std::vector<uint32_t>{2, 0xffffffffU}));

    change = {};
    change.size = sizeof change;
    change.fields = DIBS_ACCOUNT_NO_FREE_TASKS;
    const auto one = asked([&] { return dibs_account_set(&options, "web", &change); });
    EXPECT_FALSE(one.change->rate_given);
    EXPECT_FALSE(one.change->balance_given);
    EXPECT_FALSE(one.change->charge_max_ns.has_value());
    EXPECT_FALSE(one.change->fanout_max.has_value());
    EXPECT_EQ(one.change->free_tasks_disabled, false);
    EXPECT_TRUE(one.change->label_keys.empty());
}

TEST_F(Administration, AnAccountIsResetAndDeletedByName) {
    const int64_t balance[] = {5, 6, 7, 8, 9};
    const auto reset = asked([&] { return dibs_account_reset(&options, "web", balance, 5); });
    EXPECT_EQ(reset.ask, Ask::reset_account);
    EXPECT_EQ(reset.account, "web");
    EXPECT_EQ(reset.change->balance, (std::vector<int64_t>{5, 6, 7, 8, 9}));
    const auto gone = asked([&] { return dibs_account_delete(&options, "web"); });
    EXPECT_EQ(gone.ask, Ask::delete_account);
    EXPECT_EQ(gone.account, "web");
    EXPECT_EQ(gone.change, nullptr);
}

TEST_F(Administration, AReportSaysAllThatIsGiven) {
    const char* const labels[] = {"cuda", "size:big"};
    const char* const prefer[] = {"model:large"};
    dibs_worker_report said = {};
    said.size = sizeof said;
    said.kind = DIBS_REPORT_AGAIN;
    said.pool = "far";
    said.claim = 42;
    said.age_ns = 7;
    said.labels = labels;
    said.label_count = 2;
    said.prefer = prefer;
    said.prefer_count = 1;
    said.account = "web";
    const auto again = asked([&] { return dibs_report(&options, &said); });
    EXPECT_EQ(again.ask, Ask::report);
    EXPECT_EQ(again.report, admin::ReportKind::again);
    EXPECT_EQ(again.pool, "far");
    EXPECT_EQ(again.worker, "");
    EXPECT_EQ(again.number, 42U);
    EXPECT_EQ(again.age_ns, 7U);
    EXPECT_TRUE(again.labels_given);
    EXPECT_EQ(again.labels, (std::vector<std::string>{"cuda", "size:big"}));
    EXPECT_TRUE(again.prefer_given);
    EXPECT_EQ(again.prefer, std::vector<std::string>{"model:large"});
    EXPECT_EQ(again.account, "web");

    said = {};
    said.size = sizeof said;
    said.kind = DIBS_REPORT_UNASSIGN;
    said.pool = "far";
    said.worker = "w1";
    said.claim = 3;
    said.error = "out of memory";
    const auto off = asked([&] { return dibs_report(&options, &said); });
    EXPECT_EQ(off.report, admin::ReportKind::unassign);
    EXPECT_EQ(off.worker, "w1");
    EXPECT_EQ(off.error, "out of memory");
    EXPECT_FALSE(off.labels_given);
    EXPECT_FALSE(off.prefer_given);
}

TEST_F(Administration, APullNamesItsWorkersAndReadsWhatEachGets) {
    const char* const labels[] = {"cuda"};
    const dibs_puller workers[] = {{"w1", labels, 1}, {"w2", nullptr, 0}};
    admin::AnswerT answer;
    answer.pulled.push_back(std::make_unique<admin::PulledT>());
    answer.pulled.push_back(std::make_unique<admin::PulledT>());
    answer.pulled[0]->worker = "w1";
    answer.pulled[0]->claim = 9;
    answer.pulled[0]->abort = 8;
    answer.pulled[0]->provision = {"model:large", std::string(63, 'x')};
    answer.pulled[1]->worker = "w2";
    dibs_pulled pulled[2] = {};
    ASSERT_EQ(
        hear(packed(answer), [&] { return dibs_pull(&options, "far", workers, 2, 5, pulled); }), 2);
    EXPECT_STREQ(pulled[0].worker, "w1");
    EXPECT_EQ(pulled[0].claim, 9U);
    EXPECT_EQ(pulled[0].abort, 8U);
    ASSERT_EQ(pulled[0].provision_count, 2U);
    EXPECT_STREQ(pulled[0].provision[0], "model:large");
    EXPECT_EQ(std::string(pulled[0].provision[1]), std::string(63, 'x'));
    EXPECT_STREQ(pulled[1].worker, "w2");
    EXPECT_EQ(pulled[1].claim, 0U);
    const auto told = asked([&] { return dibs_pull(&options, "far", workers, 2, 5, pulled); });
    EXPECT_EQ(told.ask, Ask::pull);
    EXPECT_EQ(told.pool, "far");
    EXPECT_EQ(told.age_ns, 5U);
    ASSERT_EQ(told.pullers.size(), 2U);
    EXPECT_EQ(told.pullers[0]->worker, "w1");
    EXPECT_EQ(told.pullers[0]->labels, std::vector<std::string>{"cuda"});
    EXPECT_EQ(told.pullers[1]->worker, "w2");
    EXPECT_TRUE(told.pullers[1]->labels.empty());
    // More than was asked about is no answer.
    EXPECT_EQ(
        hear(packed(answer), [&] { return dibs_pull(&options, "far", workers, 1, 5, pulled); }),
        DIBS_EHANDSHAKE);
}

TEST_F(Administration, EachAnswerIsACodeAndItsSentenceIsPassedOn) {
    const std::pair<Code, int> codes[] = {{Code::ok, DIBS_OK},
                                          {Code::malformed, DIBS_EHANDSHAKE},
                                          {Code::unknown_pool, DIBS_EPOOL},
                                          {Code::not_found, DIBS_ENOTFOUND},
                                          {Code::already_ended, DIBS_ALREADY_ENDED},
                                          {Code::denied, DIBS_ENOTALLOWED},
                                          {Code::unsupported, DIBS_EVERSION},
                                          {Code::refused, DIBS_ESTATE},
                                          {Code::unknown_account, DIBS_ENOTFOUND}};
    for (const auto& [said, code] : codes)
        EXPECT_EQ(hear(answer_of(said), [&] { return dibs_account_delete(&options, "web"); }),
                  code);
    EXPECT_EQ(hear(answer_of(Code::refused, "rates are not negative"),
                   [&] { return dibs_account_set(&options, "web", nullptr); }),
              DIBS_ESTATE);
    EXPECT_STREQ(why, "rates are not negative");
    EXPECT_EQ(hear(answer_of(Code::refused, std::string(500, 'w')),
                   [&] { return dibs_account_set(&options, "web", nullptr); }),
              DIBS_ESTATE);
    EXPECT_EQ(std::string(why), std::string(63, 'w'));
}

TEST_F(Administration, EachRefusalAtTheDoorIsTheCodeThatASessionIsTold) {
    using Why = shm::FarewellCode;
    const std::pair<Why, int> codes[] = {{Why::kVersion, DIBS_EVERSION},
                                         {Why::kMalformed, DIBS_EHANDSHAKE},
                                         {Why::kNotAllowed, DIBS_ENOTALLOWED},
                                         {Why::kDraining, DIBS_EDRAINING},
                                         {Why::kLimit, DIBS_ELIMIT},
                                         {Why::kFull, DIBS_ELIMIT}};  // too many ask at once
    for (const auto& [why_not, code] : codes) {
        EXPECT_EQ(refused(why_not, [&] { return dibs_account_delete(&options, "web"); }), code);
        EXPECT_EQ(why, (path + ": " + dibs_strerror(code)).substr(0, sizeof why - 1));
        auto* events = reinterpret_cast<dibs_events*>(&options);
        EXPECT_EQ(refused(why_not, [&] { return dibs_events_open(&options, &events); }), code);
        EXPECT_EQ(events, nullptr);
    }
}

TEST_F(Administration, AnAnswerOfAnyBytesIsACode) {
    std::mt19937 engine(7);
    admin::AnswerT answer;
    for (int i = 0; i < 3; ++i) {
        answer.pulled.push_back(std::make_unique<admin::PulledT>());
        answer.pulled.back()->worker = "w";
        answer.pulled.back()->provision = {"a", "bb"};
    }
    const std::vector<uint8_t> good = packed(answer);
    const dibs_puller workers[4] = {
        {"a", nullptr, 0}, {"b", nullptr, 0}, {"c", nullptr, 0}, {"d", nullptr, 0}};
    dibs_pulled pulled[4] = {};
    for (int round = 0; round < 1500; ++round) {
        std::vector<uint8_t> bytes = good;
        for (uint32_t flips = engine() % 4 + 1; flips != 0; --flips)
            bytes[engine() % bytes.size()] = static_cast<uint8_t>(engine());
        bytes.resize(engine() % 8 == 0 ? engine() % bytes.size() + 1 : bytes.size());
        const int told =
            hear(bytes, [&] { return dibs_pull(&options, "far", workers, 4, 0, pulled); });
        ASSERT_LE(told, 4);
    }
}

TEST_F(Administration, AMistakeIsACodeBeforeAnybodyIsAsked) {
    dibs_account_change change = {};
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_ESIZE);
    change.size = sizeof change;
    EXPECT_EQ(dibs_account_set(&options, nullptr, &change), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_account_set(&options, "", &change), DIBS_ENAME);
    EXPECT_EQ(dibs_account_set(&options, std::string(64, 'n').c_str(), &change), DIBS_ENAME);
    change.fields = 32;
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_EARGUMENT);
    change.fields = 0;
    change.rate_count = 6;
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_EARGUMENT);
    change.rate_count = 0;
    change.charge_max_ns = -1;
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_ENEGATIVE);
    change.charge_max_ns = 0;
    const dibs_label_limit empty = {"", 1};
    change.label_limits = &empty;
    change.label_limit_count = 1;
    EXPECT_EQ(dibs_account_set(&options, "web", &change), DIBS_ELABELS);
    EXPECT_EQ(dibs_account_reset(&options, "web", nullptr, 1), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_account_delete(&options, nullptr), DIBS_EARGUMENT);

    EXPECT_EQ(dibs_report(&options, nullptr), DIBS_EARGUMENT);
    dibs_worker_report said = {};
    EXPECT_EQ(dibs_report(&options, &said), DIBS_ESIZE);
    said.size = sizeof said;
    said.pool = "far";
    EXPECT_EQ(dibs_report(&options, &said), DIBS_EARGUMENT);  // of no kind
    said.kind = DIBS_REPORT_IDLE;
    EXPECT_EQ(dibs_report(&options, &said), DIBS_EARGUMENT);  // of no worker
    said.worker = "";
    EXPECT_EQ(dibs_report(&options, &said), DIBS_ENAME);
    said.worker = "w";
    said.claim = 1;
    EXPECT_EQ(dibs_report(&options, &said), DIBS_EARGUMENT);  // an idle one runs none
    said.claim = 0;
    said.age_ns = -1;
    EXPECT_EQ(dibs_report(&options, &said), DIBS_ENEGATIVE);
    said.age_ns = 0;
    said.label_count = 1;
    EXPECT_EQ(dibs_report(&options, &said), DIBS_ELABELS);

    dibs_pulled pulled = {};
    const dibs_puller nobody = {nullptr, nullptr, 0};
    EXPECT_EQ(dibs_pull(&options, "far", &nobody, 0, 0, &pulled), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_pull(&options, "far", &nobody, 9, 0, &pulled), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_pull(&options, "far", &nobody, 1, 0, &pulled), DIBS_EARGUMENT);
    EXPECT_EQ(dibs_pull(&options, "far", &nobody, 1, -1, &pulled), DIBS_ENEGATIVE);
    EXPECT_STREQ(why, "before");
}

TEST_F(Administration, WhatHasNoRoomInOneQuestionIsNotAsked) {
    const std::string label(63, 'l');
    const std::vector<const char*> labels(32, label.c_str());
    const dibs_puller big = {"w", labels.data(), labels.size()};
    dibs_pulled pulled = {};
    EXPECT_EQ(dibs_pull(&options, "far", &big, 1, 0, &pulled), DIBS_EPAYLOAD);
}

TEST_F(Administration, NobodyAtTheSocketIsACode) {
    options.socket_path = "/nonexistent/dibs.sock";
    EXPECT_EQ(dibs_account_delete(&options, "web"), DIBS_ENOBROKER);
    dibs_connect_options wrong = {};
    wrong.size = 1;
    EXPECT_EQ(dibs_account_delete(&wrong, "web"), DIBS_ESIZE);
}

}  // namespace
}  // namespace dibs::test
