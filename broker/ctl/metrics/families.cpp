// broker/ctl/metrics/families.cpp -- turns the broker's figures into Prometheus metrics.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/metrics/families.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;
using Pools = std::vector<std::unique_ptr<admin::PoolT>>;
using Sets = std::vector<std::unique_ptr<admin::SetT>>;

constexpr double kPerSecond = 1e9;

double seconds(uint64_t ns) {
    return static_cast<double>(ns) / kPerSecond;
}

// A family whose metrics are told by add().
class Family {
  public:
    Family(Families* to, MetricType type, const char* name, const char* help) : to_(to) {
        family_.name = name;
        family_.help = help;
        family_.type = type;
    }
    ~Family() { to_->push_back(std::move(family_)); }
    Family(const Family&) = delete;
    Family& operator=(const Family&) = delete;

    void add(double value, Labels labels = {}) {
        ClientMetric metric;
        metric.label = std::move(labels);
        (family_.type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
        family_.metric.push_back(std::move(metric));
    }
    void add(uint64_t value, Labels labels = {}) {
        add(static_cast<double>(value), std::move(labels));
    }
    void add(const admin::WaitsT& waits, const std::vector<uint64_t>& bounds, Labels labels) {
        if (waits.counts.size() != bounds.size() + 1) return;  // another version's
        ClientMetric metric;
        metric.label = std::move(labels);
        prometheus::ClientMetric::Histogram& histogram = metric.histogram;
        for (size_t i = 0; i < bounds.size(); ++i) {
            histogram.sample_count += waits.counts[i];
            histogram.bucket.push_back({histogram.sample_count, seconds(bounds[i])});
        }
        histogram.sample_count += waits.counts.back();
        histogram.sample_sum = seconds(waits.sum_ns);
        family_.metric.push_back(std::move(metric));
    }

  private:
    Families* to_;
    MetricFamily family_;
};

Family gauge(Families* to, const char* name, const char* help) {
    return {to, MetricType::Gauge, name, help};
}
Family counter(Families* to, const char* name, const char* help) {
    return {to, MetricType::Counter, name, help};
}

void add_status(Families* to, const admin::StatusT& status) {
    gauge(to, "dibs_build_info", "1; the label is the version of the broker.")
        .add(1.0, {{"version", status.version}});
    gauge(to, "dibs_uptime_seconds", "How long the broker's process runs.")
        .add(seconds(status.uptime_ns));
    gauge(to, "dibs_epoch", "Grows by one with each broker that goes on from the state.")
        .add(status.epoch);
    counter(to, "dibs_turns_total", "Turns of the broker.").add(status.turns);
    gauge(to, "dibs_draining", "1 where the broker takes no new claims.")
        .add(status.draining ? 1.0 : 0.0);
    const std::pair<const char*, std::pair<uint32_t, uint32_t>> tables[] = {
        {"sessions", {status.sessions, status.sessions_max}},
        {"pools", {status.pools, status.pools_max}},
        {"slots", {status.slots, status.slots_max}},
        {"claims", {status.claims, status.claims_max}},
        {"leases", {status.leases, status.leases_max}},
        {"arena_blocks", {status.arena_blocks, status.arena_blocks_max}}};
    {
        Family rows = gauge(to, "dibs_table_rows", "Rows in use of each table of the broker.");
        for (const auto& [table, counts] : tables)
            rows.add(uint64_t{counts.first}, {{"table", table}});
    }
    {
        Family rows = gauge(to, "dibs_table_rows_limit", "Rows that each table has.");
        for (const auto& [table, counts] : tables)
            rows.add(uint64_t{counts.second}, {{"table", table}});
    }
    counter(to,
            "dibs_lost_wakeups_total",
            "Wake-ups of the broker that were lost, by clients of its own user and root: a fault.")
        .add(status.net_found_work);
    counter(to,
            "dibs_reported_lost_wakeups_total",
            "The same as clients of other users say, who may say it without one.")
        .add(status.net_reported);
    if (status.reported != nullptr) {
        Family reported(to,
                        MetricType::Histogram,
                        "dibs_reported_claim_seconds",
                        "From a claim's submission until its answer was seen, as clients say.");
        reported.add(*status.reported, status.wait_bounds_ns, {});
    }
}

template <class Value>
void add_each(Family family, const Pools& pools, const Value& value) {
    for (const auto& pool : pools)
        family.add(value(*pool), {{"pool", harmless(pool->name)}});
}

void add_pool_states(Families* to, const Pools& pools) {
    {
        Family slots = gauge(to, "dibs_pool_slots", "Slots of a pool by state.");
        for (const auto& pool : pools) {
            const std::pair<const char*, uint32_t> states[] = {{"idle", pool->idle},
                                                               {"reserved", pool->reserved},
                                                               {"leased", pool->leased},
                                                               {"recovering", pool->recovering},
                                                               {"unknown", pool->unknown},
                                                               {"shared", pool->shared}};
            for (const auto& [state, count] : states)
                slots.add(uint64_t{count}, {{"pool", harmless(pool->name)}, {"state", state}});
        }
    }
    add_each(gauge(to, "dibs_pool_parked", "Leased slots that their holders have put aside."),
             pools,
             [](const admin::PoolT& pool) { return uint64_t{pool.parked}; });
    Family claims = gauge(to, "dibs_pool_claims", "Claims of a pool that have no lease, by state.");
    for (const auto& pool : pools) {
        claims.add(uint64_t{pool->waiting}, {{"pool", harmless(pool->name)}, {"state", "waiting"}});
        claims.add(uint64_t{pool->confirming},
                   {{"pool", harmless(pool->name)}, {"state", "confirming"}});
    }
}

// Of elastic pools alone.
void add_elastic_pools(Families* to, const Pools& pools) {
    const bool has_one = std::any_of(
        pools.begin(), pools.end(), [](const auto& it) { return it->elastic != nullptr; });
    if (!has_one) return;
    const auto each = [&](Family family, uint32_t admin::ElasticT::*field) {
        for (const auto& pool : pools) {
            if (pool->elastic == nullptr) continue;
            family.add(uint64_t{(*pool->elastic).*field}, {{"pool", harmless(pool->name)}});
        }
    };
    each(gauge(to, "dibs_pool_ordered", "Workers that are being made for an elastic pool."),
         &admin::ElasticT::ordered);
    each(gauge(to, "dibs_pool_workers_max", "Workers that it has at most, as configured."),
         &admin::ElasticT::workers_max);
    each(gauge(to, "dibs_pool_headroom", "Workers that its limit and quota leave room for now."),
         &admin::ElasticT::headroom);
}

void add_pools(Families* to, const Pools& pools, const std::vector<uint64_t>& bounds) {
    add_pool_states(to, pools);
    add_elastic_pools(to, pools);
    add_each(gauge(to, "dibs_pool_draining", "1 where a pool takes no new claims."),
             pools,
             [](const admin::PoolT& pool) { return pool.draining ? 1.0 : 0.0; });
    add_each(gauge(to, "dibs_pool_oldest_wait_seconds", "How long its first claim waits; 0: none."),
             pools,
             [](const admin::PoolT& pool) { return seconds(pool.oldest_wait_ns); });
    add_each(gauge(to, "dibs_pool_oldest_lease_seconds", "How long its oldest lease is; 0: none."),
             pools,
             [](const admin::PoolT& pool) { return seconds(pool.oldest_lease_ns); });
    const auto count = [&](const char* name, const char* help, uint64_t admin::PoolT::*field) {
        add_each(counter(to, name, help), pools, [field](const admin::PoolT& pool) {
            return pool.*field;
        });
    };
    using Pool = admin::PoolT;
    count("dibs_claims_accepted_total", "Claims that were taken in.", &Pool::accepted);
    count("dibs_claims_granted_total", "Claims that were granted.", &Pool::granted);
    count("dibs_claims_granted_at_once_total", "Of those, claims that did not wait.", &Pool::hits);
    count("dibs_claims_expired_total", "Claims whose deadline passed.", &Pool::expired);
    count("dibs_claims_cancelled_total", "Claims that were cancelled.", &Pool::cancelled);
    count(
        "dibs_claims_rejected_total", "Claims rejected after they were taken in.", &Pool::rejected);
    count("dibs_claims_turned_away_total", "Claims rejected on arrival.", &Pool::turned_away);
    count("dibs_leases_released_total", "Leases that their holders gave back.", &Pool::released);
    count("dibs_worker_refusals_total", "Claims that a worker refused to serve.", &Pool::refused);
    if (bounds.empty()) return;
    Family waits(to,
                 MetricType::Histogram,
                 "dibs_claim_wait_seconds",
                 "From the broker's reading of a claim to its grant, by path.");
    for (const auto& pool : pools) {
        for (const auto& path : pool->waits) {
            waits.add(
                *path, bounds, {{"pool", harmless(pool->name)}, {"path", harmless(path->path)}});
        }
    }
}

// Of pool sets that are ranked by load: `place` of a member is where a claim that came now would
// try it.
struct Member {
    uint64_t place = 0;
    bool saturated = false;
};

void add_sets(Families* to, const Sets& sets) {
    std::map<std::pair<std::string, std::string>, Member>
        members;  // names that print alike are one
    for (const auto& set : sets) {
        if (set->rank != "load") continue;
        const std::string name = harmless(set->name);
        for (const std::string& pool : set->pools)
            members[{name, harmless(pool)}] = {};
        for (size_t at = 0; at < set->ranked.size(); ++at)
            members[{name, harmless(set->ranked[at])}].place = at + 1;
        for (const std::string& pool : set->saturated)
            members[{name, harmless(pool)}].saturated = true;
    }
    if (members.empty()) return;
    const auto each = [&](Family family, const auto& value) {
        for (const auto& [names, member] : members)
            family.add(value(member), {{"set", names.first}, {"pool", names.second}});
    };
    each(gauge(to, "dibs_set_member_rank", "Place of a pool in its set now, from 1; 0: not tried."),
         [](const Member& member) { return member.place; });
    each(gauge(
             to, "dibs_set_member_saturated", "1 where its backlog was full, a while ago at most."),
         [](const Member& member) { return member.saturated ? 1.0 : 0.0; });
}

// Two names that print alike are one label.
struct Share {
    uint64_t held = 0;
    uint64_t waiting = 0;
    uint64_t used_us = 0;
    uint64_t rate_micros = 0;
};

void add_accounts(Families* to, const std::map<std::string, Share>& shares) {
    const auto each = [&](Family family, const auto& value) {
        for (const auto& [name, share] : shares)
            family.add(value(share), {{"account", name}});
    };
    constexpr double kMicro = 1e-6;
    each(gauge(to, "dibs_account_slots_held", "Slots that a configured account holds."),
         [](const Share& share) { return share.held; });
    each(gauge(to, "dibs_account_claims_waiting", "Claims of a configured account that wait."),
         [](const Share& share) { return share.waiting; });
    each(
        gauge(to, "dibs_account_rate_slots", "Slots that it may hold all the time, as configured."),
        [](const Share& share) { return static_cast<double>(share.rate_micros) * kMicro; });
    each(counter(to, "dibs_account_slot_seconds_total", "For how long it held slots, all added."),
         [](const Share& share) { return static_cast<double>(share.used_us) * kMicro; });
}

// Of those that the asker may see: an administrator sees all.
void add_applications(Families* to,
                      const std::vector<std::unique_ptr<admin::ApplicationT>>& applications,
                      const Pools& pools) {
    std::map<std::string, uint64_t> states;
    std::map<std::string, uint64_t> placeholders;
    for (const char* state : {"accepted", "reserving", "running", "completed", "failed", "killed"})
        states[state] = 0;
    for (const auto& pool : pools)
        placeholders[harmless(pool->name)] = 0;
    for (const auto& application : applications) {
        if (!application->full) continue;
        ++states[application->state];
        placeholders[harmless(application->pool)] += application->placeholders;
    }
    Family by_state = gauge(to, "dibs_applications", "Applications by state.");
    for (const auto& [state, count] : states)
        by_state.add(count, {{"state", state}});
    Family held =
        gauge(to, "dibs_pool_placeholders", "Slots of a pool that placeholders of gangs hold.");
    for (const auto& [pool, count] : placeholders)
        held.add(count, {{"pool", pool}});
}

}  // namespace

Families families_of(AdminClient& client) {
    admin::RequestT request;
    request.measured = true;
    request.ask = admin::Ask::status;
    const admin::AnswerT told = client.must(request, {});
    Pools pools;
    request.ask = admin::Ask::pools;
    client.pages(request, "pool", [&](admin::AnswerT& answer) {
        std::move(answer.pools.begin(), answer.pools.end(), std::back_inserter(pools));
    });
    std::map<std::string, Share> shares;
    request.ask = admin::Ask::accounts;
    client.pages(request, "account", [&](admin::AnswerT& answer) {
        for (const auto& account : answer.accounts) {
            if (!account->configured) continue;
            Share& share = shares[harmless(account->name)];
            share.held += account->held;
            share.waiting += account->waiting;
            share.used_us += account->used_us;
            share.rate_micros += account->rate_sum;
        }
    });
    const Sets sets = client.sets();
    Families families;
    if (told.status != nullptr) {
        add_status(&families, *told.status);
        add_pools(&families, pools, told.status->wait_bounds_ns);
    }
    add_sets(&families, sets);
    if (!shares.empty()) add_accounts(&families, shares);
    const auto applications = client.applications({}, {});
    if (!applications.empty()) add_applications(&families, applications, pools);
    return families;
}

void add_scrape(Families* families, bool up, int64_t took_ns) {
    gauge(families, "dibs_up", "1 where the broker answers.").add(up ? 1.0 : 0.0);
    gauge(families, "dibs_scrape_duration_seconds", "How long it took to ask the broker.")
        .add(seconds(static_cast<uint64_t>(took_ns)));
}

}  // namespace dibs::ctl
