// broker/ctl/snapshot.cpp -- `dibs snapshot`: prints one consistent snapshot of a pool's counters.
// It reads them from the memory that the broker publishes.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/attachment.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

void check(int code) {
    if (code < 0) throw Failure(kExitFailed, dibs_strerror(code));
}

// Of no times there is nothing to say.
Cell time(const dibs_latency& latency, int64_t ns) {
    return latency.count == 0 ? Cell() : Cell::duration(static_cast<uint64_t>(ns));
}

}  // namespace

int run_snapshot(int argc, char** argv) {
    std::string name;
    Arguments arguments("snapshot",
                        "Shows one consistent picture of a pool's counters, read from shared "
                        "memory: the broker does nothing for it. Then how long its granted claims "
                        "waited, as the broker measures it, and how long granted claims of all "
                        "pools took from end to end, as clients report.");
    arguments.operand("POOL", &name, "the pool");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Attachment attachment(output.socket(), small_session());
    const uint32_t pool = attachment.pool(name);
    dibs_counters counters = {};
    counters.size = sizeof counters;
    check(dibs_snapshot(attachment.session(), pool, &counters));
    dibs_totals totals = {};
    totals.size = sizeof totals;
    check(dibs_pool_totals(attachment.session(), pool, &totals));
    dibs_latency waited = {};
    waited.size = sizeof waited;
    check(dibs_pool_latency(attachment.session(), pool, &waited));
    dibs_latency reported = {};
    reported.size = sizeof reported;
    check(dibs_reported_latency(attachment.session(), &reported));
    Sheet sheet{"dibs.snapshot/1",
                {{"pool", "pool"},
                 {"slots", "slots"},
                 {"idle", "idle"},
                 {"reserved", "reserved"},
                 {"leased", "leased"},
                 {"parked", "of them parked"},
                 {"recovering", "recovering"},
                 {"unknown", "unknown"},
                 {"queued", "queued"},
                 {"confirming", "confirming"},
                 {"hits", "granted at once"},
                 {"accepted", "accepted"},
                 {"granted", "granted"},
                 {"expired", "expired"},
                 {"cancelled", "cancelled"},
                 {"rejected", "rejected"},
                 {"released", "released"},
                 {"waited_p50_ns", "waited, p50"},
                 {"waited_p99_ns", "waited, p99"},
                 {"net_found_work", "lost wake-ups"},
                 {"reported_claims", "all pools' claims, as clients report"},
                 {"reported_p50_ns", "they took, p50"},
                 {"reported_p99_ns", "they took, p99"}}};
    sheet.rows.push_back({Cell::of(name),
                          Cell::of(counters.slots),
                          Cell::of(counters.idle),
                          Cell::of(counters.reserved),
                          Cell::of(counters.leased),
                          Cell::of(counters.parked),
                          Cell::of(counters.recovering),
                          Cell::of(counters.unknown),
                          Cell::of(counters.queued),
                          Cell::of(counters.confirming),
                          Cell::of(counters.hits),
                          Cell::of(totals.accepted),
                          Cell::of(totals.granted),
                          Cell::of(totals.expired),
                          Cell::of(totals.cancelled),
                          Cell::of(totals.rejected),
                          Cell::of(totals.released),
                          time(waited, waited.p50_ns),
                          time(waited, waited.p99_ns),
                          Cell::of(totals.net_found_work),
                          Cell::of(reported.count),
                          time(reported, reported.p50_ns),
                          time(reported, reported.p99_ns)});
    output.show_record(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
