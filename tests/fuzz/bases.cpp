// tests/fuzz/bases.cpp -- the conversations that the bases are left by.
// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/bases.hpp"

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "tests/crash/workload.hpp"
#include "tests/fuzz/bytes.hpp"

namespace dibs::fuzz {

namespace {

using Labels = std::vector<std::string_view>;
using Kind = core::WorkerWord::Kind;
using shm::kNoRow;

constexpr core::Limits kLimits = {.pools = 14,
                                  .sessions = 6,
                                  .slots = 56,
                                  .claims = 20,
                                  .leases = 16,
                                  .arena_blocks = 48,
                                  .accounts = 8,
                                  .label_sets = 8,
                                  .applications = 8,
                                  .groups = 10,
                                  .tasks = 16};
constexpr core::TimeNs kSecond = 1'000'000'000;

void end_turn(core::Core& broker) {
    broker.decide();
    broker.commit();
    broker.clear();
}

void converse(core::Core& broker, bool open) {
    tests::Workload workload{broker, 3};
    workload.set_up();
    expect(broker.find_pool("far") != kNoRow, "there is room for every pool");
    for (int turn = 0;; ++turn) {
        broker.begin_turn(workload.next_time());
        for (int i = 0; i < 4; ++i) {
            const auto drawn = workload.below(tests::kOperations);
            const auto operation = static_cast<tests::Operation>(drawn);
            if (operation == tests::Operation::kDrainAll) continue;
            (void)workload.apply(operation);
        }
        broker.decide();
        if (open && turn >= 300) return;
        broker.commit();
        broker.clear();
        if (turn >= 300) return;
    }
}

// A broker with pools ordered by account, spoken to by hand.
class Paid {
  public:
    explicit Paid(core::Core& broker) : broker_(broker) {
        const std::array<int64_t, 1> rate = {1'000'000};
        const std::array<int64_t, 1> rich = {9'000'000};
        const std::array<int64_t, 2> poor = {0, 1'000'000};
        const core::AccountConfig::Limit limit{.key = "gpu", .limit = 2};
        broker_.begin_turn(kSecond);
        const bool known = broker_.set_account({.name = "rich",
                                                .rate = rate,
                                                .charge_max_ns = 2 * kSecond,
                                                .fanout_max = 3,
                                                .label_limits = {&limit, 1},
                                                .balance = rich},
                                               nullptr) &&
                           broker_.set_account({.name = "poor", .balance = poor}, nullptr);
        client_ = broker_.open_session({.uid = 1000, .pid = 11, .account = "rich"});
        other_ = broker_.open_session({.uid = 1001, .pid = 12});
        worker_ = broker_.open_session({.uid = 1002, .pid = 13});
        end_turn(broker_);
        expect(known && worker_ != kNoRow, "there is room for accounts and sessions");
    }

    void slots() {
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = 4;
        config.order = shm::PoolOrder::kAccount;
        pool_ = make(config);
        // Four that are not rich hold all: one of them nothing at all, and never to be taken.
        turn([&] {
            ask("poor", {}, {.grace_ns = 9 * kSecond, .requeue = true});
            ask("", {}, {.mode = shm::PreemptMode::kForbidden});
            ask("poor", {}, {.mode = shm::PreemptMode::kForbidden});
            ask("poor", {}, {.mode = shm::PreemptMode::kForbidden, .interval_ns = 20 * kSecond});
        });
        turn([&] {
            ask("rich", {}, {});
            ask("rich", {"gpu:a"}, {.units = 3});
            ask("poor", {"gpu:a"}, {.preferred = {"zone:1"}, .timeout_ns = 30 * kSecond});
            ask("nobody", {}, {});
        });
        const auto is = [&](shm::ClaimState state) {
            for (uint32_t row = 0; row < broker_.claims_max(); ++row) {
                if (broker_.claim(row).state == state) return true;
            }
            return false;
        };
        expect(is(shm::ClaimState::kPromised) && is(shm::ClaimState::kWaiting),
               "a slot is promised, and somebody waits for one");
    }

    void workers() {
        core::PoolConfig config;
        config.name = "farm";
        config.kind = shm::PoolKind::kWorker;
        config.order = shm::PoolOrder::kAccount;
        config.reservation_ttl_ns = 3 * kSecond;
        config.attributes_max = 64;
        pool_ = make(config);
        turn([&] {
            for (const char* name : {"leased", "asked", "kept", "silent"})
                announce(name, {"gpu:a", name}, false);
            announce("idle", {"gpu:b"}, false);
            announce("stopped", {"gpu:b"}, true);
            report("w1", {"os:linux", "gpu:a"});
            report("w2", {"os:linux"});
            report("w3", {"os:linux"});
            ask("rich", {"leased"}, {});
            ask("rich", {"silent"}, {});
            ask("rich", {"os:linux", "gpu:a"}, {});  // not confirmed by w1
        });
        turn([&] { say("leased", Kind::kConfirm); });
        now_ += 2 * kSecond;  // and the silent one's time has passed
        turn([&] {
            ask("poor", {"kept"}, {});
            ask("poor", {"os:linux"}, {.grace_ns = 9 * kSecond});
            ask("", {"os:linux"}, {.grace_ns = 9 * kSecond});
        });
        turn([&] {
            say("kept", Kind::kRefuse);
            ask("rich", {"asked"}, {.units = 1});
            ask("rich", {"os:linux"}, {});  // is promised what a poorer one holds
        });
        config.name = "strict";
        config.expiry = shm::ExpiryMode::kStrict;
        pool_ = make(config);
        turn([&] {
            report("s1", {});
            report("s2", {});
            ask("poor", {}, {});
            ask("poor", {}, {.interval_ns = kSecond / 2});
        });
        turn([&] { report("s1", {}); });  // its holder is being killed
    }

  private:
    struct Wish {
        shm::PreemptMode mode = shm::PreemptMode::kWithGrace;
        core::TimeNs grace_ns = 0;
        bool requeue = false;
        uint16_t units = 1;
        Labels preferred = {};
        core::TimeNs timeout_ns = shm::kNever;
        core::TimeNs interval_ns = 0;
    };

    template <class Commands>
    void turn(const Commands& commands) {
        now_ += kSecond / 2;
        broker_.begin_turn(now_);
        commands();
        end_turn(broker_);
    }
    uint32_t make(const core::PoolConfig& config) {
        uint32_t row = kNoRow;
        turn([&] { row = broker_.set_pool(config, nullptr); });
        expect(row != kNoRow, "there is room for the pool");
        return row;
    }
    void ask(std::string_view account, const Labels& labels, const Wish& wish) {
        const core::ClaimTerms terms{.account = account,
                                     .labels = labels,
                                     .provisionable = wish.preferred,
                                     .preempt_mode = wish.mode,
                                     .preempt_grace_ns = wish.grace_ns,
                                     .requeue = wish.requeue};
        core::Claim command;
        command.session = account == "poor" ? other_ : client_;
        command.tag = tag_++;
        command.units = wish.units;
        command.pool = pool_;
        command.timeout_ns = wish.timeout_ns;
        command.interval_ns = wish.interval_ns;
        command.terms = &terms;
        broker_.apply(command);
    }
    void announce(std::string_view name, const Labels& labels, bool is_protected) {
        core::Announce command;
        command.session = worker_;
        command.pool = pool_;
        command.name = name;
        command.labels = labels;
        command.attributes = "port=1";
        command.is_protected = is_protected;
        command.ready = true;
        broker_.apply(command);
    }
    void say(std::string_view name, Kind kind) {
        const uint32_t row = broker_.find_slot(pool_, name);
        core::WorkerWord word;
        word.kind = kind;
        word.try_again = true;
        word.session = worker_;
        word.slot = core::row_id(broker_.slot(row).head.generation, row);
        word.round = broker_.slot(row).round;
        broker_.apply(word);
    }
    void report(std::string_view worker, const Labels& labels) {
        core::Report command;
        command.pool = pool_;
        command.worker = worker;
        command.labels = labels;
        broker_.apply(command);
    }

    core::Core& broker_;
    core::TimeNs now_ = kSecond;
    uint32_t client_ = kNoRow;
    uint32_t other_ = kNoRow;
    uint32_t worker_ = kNoRow;
    uint32_t pool_ = kNoRow;
    uint16_t tag_ = 0;
};

void check(const core::Core& broker) {
    const std::vector<std::string> wrongs = broker.check_all();
    for (const std::string& wrong : wrongs)
        std::fprintf(stderr, "%s\n", wrong.c_str());
    expect(wrongs.empty(), "a turn leaves good what was good");
}

// A turn, and those that it leaves work for.
template <class Commands>
void play(core::Core& broker, core::TimeNs later_ns, const Commands& commands) {
    broker.begin_turn(broker.now() + later_ns);
    if (!broker.cut()) commands();
    end_turn(broker);
    for (int more = 0; broker.work_left(); ++more) {
        expect(more < 10'000, "work comes to an end");
        broker.begin_turn(broker.now() + 1);
        end_turn(broker);
    }
}

void claim_over_several(core::Core& broker) {
    core::TimeNs now_ns = kSecond;
    broker.begin_turn(now_ns);
    const uint32_t holder = broker.open_session({.uid = 1000, .pid = 11});
    const uint32_t client = broker.open_session({.uid = 1001, .pid = 12});
    const uint32_t worker = broker.open_session({.uid = 1002, .pid = 13});
    const auto pool = [&](const char* name, uint32_t slots, shm::PoolKind kind) {
        core::PoolConfig config;
        config.name = name;
        config.kind = kind;
        config.slots = slots;
        config.grace_ns = 5 * kSecond;
        return core::PoolId{broker.set_pool(config, nullptr)};
    };
    const core::PoolId gpu = pool("gpu", 5, shm::PoolKind::kCounted);
    const core::PoolId port = pool("port", 4, shm::PoolKind::kCounted);
    const core::PoolId farm = pool("farm", 0, shm::PoolKind::kWorker);
    for (const char* name : {"one", "two"})
        broker.apply(core::Announce{.session = worker, .pool = farm, .name = name, .ready = true});
    end_turn(broker);
    uint16_t tag = 0;
    const auto ask =
        [&](uint32_t session, std::span<const core::PoolUnits> also, uint64_t kept_ns) {
            core::Claim claim;
            claim.session = session;
            claim.pool = gpu;
            claim.tag = tag++;
            claim.interval_ns = kept_ns;
            claim.also = also;
            broker.begin_turn(now_ns);
            broker.apply(claim);
            end_turn(broker);
        };
    const std::array<core::PoolUnits, 1> two = {{{port, 1}}};
    const std::array<core::PoolUnits, 2> three = {{{port, 1}, {farm, 2}}};
    ask(holder, two, 0);
    ask(client, two, kSecond);
    ask(client, two, 9 * kSecond);
    ask(client, three, 0);
    ask(client, three, 0);
    ask(client, two, 0);
    broker.begin_turn(now_ns);
    broker.session_died(holder, true);
    end_turn(broker);
    now_ns += kSecond + 1;
    broker.begin_turn(now_ns);
    const uint32_t lease = broker.lease_of_tag(holder, 0);
    core::TimeNs unused = 0;
    const shm::Reason killed = broker.apply(
        core::Steer{.lease = core::row_id(broker.lease(lease).head.generation, lease)}, &unused);
    end_turn(broker);
    const uint32_t confirming = broker.claim_of_tag(client, 3);
    const uint32_t graced = broker.lease_of_tag(client, 1);
    expect(killed == shm::Reason::kOk && confirming != kNoRow && graced != kNoRow &&
               broker.claim(confirming).state == shm::ClaimState::kReserved &&
               broker.lease(graced).state == shm::LeaseState::kGrace,
           "claims over several pools wait, confirm and are granted");
}

bool is_open(const core::Core& broker, uint32_t session) {
    return broker.session(session).state == shm::SessionState::kOpen;
}

}  // namespace

shm::Lines make_base(size_t base, bool open) {
    shm::Lines memory(core::state_size(kLimits));
    core::format_state(memory.bytes(), kLimits);
    core::Core broker{memory.bytes()};
    if (base == 0) {
        converse(broker, open);
        return memory;
    }
    if (base == 3) {
        claim_over_several(broker);
        expect(broker.check_all().empty(), "a base is sound");
        return memory;
    }
    Paid paid(broker);
    base == 1 ? paid.slots() : paid.workers();
    expect(broker.check_all().empty(), "a base is sound");
    return memory;
}

void serve(core::Core& broker, bool each) {
    const auto turn = [&](core::TimeNs later_ns, const auto& commands) {
        play(broker, later_ns, commands);
        if (each) check(broker);
    };
    turn(1, [] {});
    turn(kSecond / 2, [&] {
        for (uint32_t session = 0; session < broker.sessions_max(); ++session) {
            if (!is_open(broker, session)) continue;
            core::Claim claim;
            claim.session = session;
            const uint32_t tags = broker.session(session).tags_max;
            for (uint32_t pool = 0; pool < broker.pools() && pool < tags; ++pool) {
                claim.pool = pool;
                claim.tag = static_cast<uint16_t>(tags - 1 - pool);
                broker.apply(claim);
            }
        }
    });
    turn(1, [&] {
        for (uint32_t row = 0; row < broker.slots_max(); ++row) {
            const shm::SlotRow& slot = broker.slot(row);
            if (slot.state == shm::SlotState::kFree || slot.session == kNoRow) continue;
            core::WorkerWord word;
            word.kind = slot.state == shm::SlotState::kReserved ? Kind::kConfirm : Kind::kReady;
            word.session = slot.session;
            word.slot = core::row_id(slot.head.generation, row);
            word.round = slot.round;
            broker.apply(word);
        }
    });
    turn(1, [&] {
        for (uint32_t row = 0; row < broker.leases_max(); ++row) {
            const shm::LeaseRow& lease = broker.lease(row);
            if (lease.state == shm::LeaseState::kFree) continue;
            broker.apply(core::Harvest{.lease = core::row_id(lease.head.generation, row),
                                       .takes = lease.takes + 1,
                                       .parked = row % 2 == 0,
                                       .recalled = row % 3 == 0});
        }
    });
    turn(20 * kSecond, [&] {
        const auto lapsing = broker.lapsing();
        for (const uint32_t row : std::vector<uint32_t>(lapsing.begin(), lapsing.end())) {
            const shm::LeaseRow& lease = broker.lease(row);
            broker.apply(core::Touch{core::row_id(lease.head.generation, row), lease.touched + 1});
        }
    });
    check(broker);
    for (uint32_t session = 0; session < broker.sessions_max(); ++session) {
        if (is_open(broker, session)) turn(1, [&] { broker.session_died(session); });
    }
    turn(400 * kSecond, [] {});
    check(broker);
}

}  // namespace dibs::fuzz
