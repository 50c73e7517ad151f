// benchmarks/session_client.cpp -- a session of libdibs, seen from inside.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/session_client.hpp"

#include <sched.h>

#include <stdexcept>

#include "benchmarks/tick_clock.hpp"
#include "clientlib/session.hpp"

namespace dibs::bench {

namespace {

constexpr int kYieldsToSleep = 2;  // from arming its wake-up word to sleeping, on one CPU

}  // namespace

int must(int code, const char* what) {
    if (code < 0) throw std::runtime_error(std::string(what) + ": " + dibs_strerror(code));
    return code;
}

SessionClient::SessionClient(const ClientSetup& setup) {
    char error[256] = "";
    dibs_connect_options options = {};
    options.size = sizeof options;
    options.socket_path = setup.socket.c_str();
    options.spin_us = setup.spin_us;
    options.leases_max = setup.leases_max;
    options.completion_entries = setup.completion_entries;
    options.down_payload = setup.down_payload;
    options.error_text = error;
    options.error_text_size = sizeof error;
    if (dibs_connect(&options, &session_) != DIBS_OK) {
        throw std::runtime_error(std::string("dibs_connect: ") + error);
    }
}

SessionClient::~SessionClient() {
    dibs_close(session_);
}

uint32_t SessionClient::pool(const char* name) const {
    uint32_t number = 0;
    must(dibs_pool(session_, name, &number), name);
    return number;
}

void SessionClient::pace(Pace pace, bool same_core) const {
    if (pace == Pace::kBackToBack) return;
    const shm::DownHead& down = *session_->down;
    const uint64_t tail = session_->submissions.tail();
    const auto settled = [&] {
        return shm::committed_submissions(down) == tail &&
               (pace == Pace::kPaced || down.need_wakeup.load(std::memory_order_acquire) != 0);
    };
    while (!settled())
        same_core ? static_cast<void>(sched_yield()) : shm::pause();
    if (pace == Pace::kPaced) return short_gap();
    if (!same_core) return long_gap();
    for (int i = 0; i < kYieldsToSleep; ++i)
        sched_yield();
}

double SessionClient::claim(uint32_t pool, const dibs_claim_options* options) const {
    dibs_completion end;
    const uint64_t first = ticks();
    const int code = dibs_claim(session_, pool, options, &end);
    const uint64_t last = ticks();
    must(code, "dibs_claim");
    if (end.outcome != DIBS_GRANTED) {
        throw std::runtime_error(std::string("a claim ended ") + dibs_outcome_name(end.outcome));
    }
    must(dibs_release(session_, &end.lease, DIBS_NOWAIT), "dibs_release");
    return elapsed_ns(first, last);
}

}  // namespace dibs::bench
