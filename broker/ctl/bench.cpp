// broker/ctl/bench.cpp -- `dibs bench`: measures how long a claim on this broker takes now.
//
// One claim and its release after the other, through the library, as any program would. benchmarks/
// measures what the machine can do at best.
// SPDX-License-Identifier: Apache-2.0
#include <time.h>

#include <algorithm>
#include <cmath>

#include "broker/ctl/attachment.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

constexpr NumberRange kClaimCounts = {1, 10'000'000};
constexpr double kBeyond = 9.99;  // ten, and what a product of such numbers may lack

// One claim and its release; the time until the grant was in hand.
uint64_t one(dibs_session* session, uint32_t pool, bool asks) {
    dibs_claim_options want = {};
    want.size = sizeof want;
    want.timeout_ns = 10 * DIBS_SECOND;
    if (asks) want.interval_ns = 3600 * DIBS_SECOND;  // such a lease is never parked
    dibs_completion end = {};
    const int64_t before = monotonic_ns();
    int code = dibs_claim(session, pool, &want, &end);
    const auto took = static_cast<uint64_t>(monotonic_ns() - before);
    if (code == DIBS_OK && end.outcome == DIBS_EXPIRED) {
        throw Failure(kExitDeadline, "no slot was free for 10s: bench needs an idle slot");
    }
    if (code == DIBS_OK && end.outcome != DIBS_GRANTED) code = end.code;
    if (code == DIBS_OK) code = dibs_release(session, &end.lease, DIBS_NOWAIT);
    if (code == DIBS_ENOTALLOWED) {
        throw Failure(kExitDenied, against_policy("claim from this pool", "pools"));
    }
    if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
    return took;
}

// Claims that the broker has granted to the session.
uint64_t asked(dibs_session* session) {
    dibs_latency latency = {};
    latency.size = sizeof latency;
    const int code = dibs_session_latency(session, &latency);
    if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
    return latency.count;
}

dibs_wakeups wakeups(dibs_session* session) {
    dibs_wakeups told = {};
    told.size = sizeof told;
    const int code = dibs_session_wakeups(session, &told);
    if (code < 0) throw Failure(exit_code_of(code), dibs_strerror(code));
    return told;
}

// Nothing, if fewer than ten times lie beyond it: then it would be one of the worst few.
Cell quantile(const std::vector<uint64_t>& sorted, double share) {
    if (static_cast<double>(sorted.size()) * (1 - share) < kBeyond) return {};
    const auto at = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
    return Cell::duration(sorted[std::clamp<size_t>(at, 1, sorted.size()) - 1]);
}

}  // namespace

int run_bench(int argc, char** argv) {
    std::string name;
    uint64_t claims = 100'000;
    Arguments arguments("bench",
                        "Claims and releases a slot of the pool again and again, and shows how "
                        "long a grant takes. It takes slots from whoever else wants them. In a "
                        "pool with a quantum, a release puts the lease aside and the next claim "
                        "takes it again: asked says how many claims the broker granted, bells how "
                        "often it had to be woken, for a claim or for a release, sleeps how often "
                        "this process was.");
    arguments.operand("POOL", &name, "the pool; it needs an idle slot");
    arguments.number("-c,--claims", &claims, kClaimCounts, "how many, at most 10,000,000");
    bool asks = false;
    arguments.flag("--ask", &asks, "ask the broker for each claim, whatever the quantum");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Attachment attachment(output.socket());
    const uint32_t pool = attachment.pool(name);
    std::vector<uint64_t> times(claims);
    for (uint64_t i = 0; i < std::min<uint64_t>(claims, 1'000); ++i)
        (void)one(attachment.session(), pool, asks);
    const uint64_t asked_before = asked(attachment.session());
    const dibs_wakeups woken_before = wakeups(attachment.session());
    const int64_t before = monotonic_ns();
    for (uint64_t& time : times)
        time = one(attachment.session(), pool, asks);
    const auto took = static_cast<uint64_t>(std::max<int64_t>(monotonic_ns() - before, 1));
    const dibs_wakeups woken = wakeups(attachment.session());
    std::sort(times.begin(), times.end());
    Sheet sheet{"dibs.bench/1",
                {{"pool", "pool"},
                 {"claims", "claims"},
                 {"asked", "asked"},
                 {"bells", "bells"},
                 {"claim_bells", "for claims"},
                 {"release_bells", "for releases"},
                 {"sleeps", "sleeps"},
                 {"per_second", "per second"},
                 {"least_ns", "least"},
                 {"p50_ns", "p50"},
                 {"p99_ns", "p99"},
                 {"p999_ns", "p99.9"},
                 {"most_ns", "most"}}};
    const double per_second = 1e9 * static_cast<double>(claims) / static_cast<double>(took);
    sheet.rows.push_back({Cell::of(name),
                          Cell::of(claims),
                          Cell::of(asked(attachment.session()) - asked_before),
                          Cell::of(woken.bells - woken_before.bells),
                          Cell::of(woken.claim_bells - woken_before.claim_bells),
                          Cell::of(woken.release_bells - woken_before.release_bells),
                          Cell::of(woken.sleeps - woken_before.sleeps),
                          Cell::of(static_cast<uint64_t>(per_second)),
                          Cell::duration(times.front()),
                          quantile(times, 0.5),
                          quantile(times, 0.99),
                          quantile(times, 0.999),
                          Cell::duration(times.back())});
    output.show_record(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
