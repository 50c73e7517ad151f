// benchmarks/gang_round.cpp -- a gang through the library, from its addition to its removal.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/gang_round.hpp"

#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr const char* kName = "gang";

}  // namespace

GangRound::GangRound(const ClientSetup& client) : client_(client), pool_(client_.pool("counted")) {}

void GangRound::await(int state) const {
    dibs_app_event event = {};
    event.size = sizeof event;
    do
        must(dibs_app_next(client_.get(), &event, DIBS_FOREVER), "dibs_app_next");
    while (event.state != state);
}

void GangRound::measure(uint32_t operations, Samples& out) {
    dibs_app_group group = {};
    group.name = "rank";
    group.members = 4;
    dibs_app app = {};
    app.size = sizeof app;
    app.name = kName;
    app.pool = pool_;
    app.groups = &group;
    app.group_count = 1;
    dibs_session* session = client_.get();
    for (uint32_t done = 0; done < operations; ++done) {
        const uint64_t first = ticks();
        must(dibs_app_add(session, &app, DIBS_SECOND, nullptr), "dibs_app_add");
        await(DIBS_APP_RUNNING);
        must(dibs_app_complete(session, kName, DIBS_SECOND), "dibs_app_complete");
        await(DIBS_APP_COMPLETED);
        must(dibs_app_remove(session, kName, DIBS_SECOND, nullptr), "dibs_app_remove");
        out.add(elapsed_ns(first, ticks()));
    }
}

}  // namespace dibs::bench
