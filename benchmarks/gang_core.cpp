// benchmarks/gang_core.cpp -- the core alone with applications and gangs.
// SPDX-License-Identifier: Apache-2.0
#include "benchmarks/gang_core.hpp"

#include <array>
#include <stdexcept>
#include <string>

#include "benchmarks/bulk.hpp"
#include "benchmarks/core_turn.hpp"
#include "benchmarks/tick_clock.hpp"

namespace dibs::bench {

namespace {

constexpr uint32_t kTasks = 10;
constexpr uint32_t kUid = 1000;
constexpr std::string_view kGang = "gang";

core::Limits limits_of_gangs(uint32_t applications, uint32_t members) {
    core::Limits limits;
    limits.pools = 1;
    limits.sessions = 1;
    limits.slots = members;
    limits.claims = members + 8;
    limits.leases = members;
    limits.applications = applications + 8;
    limits.groups = 8;
    limits.tasks = applications * kTasks + 8;
    limits.arena_blocks = 64;
    limits.log_images = 8192;
    limits.log_stores = 4096;
    return limits;
}

void must_take(shm::Reason reason, const char* what) {
    if (reason != shm::Reason::kOk)
        throw std::runtime_error(std::string("the core refuses ") + what);
}

}  // namespace

GangCore::GangCore(uint32_t applications, uint32_t members, Part part)
    : memory_(core::state_size(limits_of_gangs(applications, members))),
      members_(members),
      part_(part) {
    core::format_state(memory_.bytes(), limits_of_gangs(applications, members));
    core_ = std::make_unique<core::Core>(memory_.bytes());
    turn([&] {
        core::PoolConfig config;
        config.name = "gpu";
        config.slots = members;
        std::string why;
        pool_ = core_->set_pool(config, &why);
        session_ = core_->open_session({.uid = kUid, .pid = kUid});
        if (pool_.is_none() || session_.is_none()) throw std::runtime_error("no pool: " + why);
    });
    fill(applications);
}

template <class Commands>
void GangCore::turn(const Commands& commands) {
    bound_ = 0;
    play_turn(*core_, now_, commands, [&] {
        for (const core::Decision& told : core_->decisions())
            bound_ += told.kind == core::DecisionKind::kPlaceholder &&
                      told.to_class == static_cast<uint8_t>(core::PlaceholderNews::kBound);
    });
}

void GangCore::fill(uint32_t applications) {
    for (uint32_t at = 0; at < applications; ++at) {
        const std::string name = "application-" + std::to_string(at);
        turn([&] {
            must_take(core_->apply(core::AddApplication{
                          .session = session_, .application = name, .pool = pool_}),
                      "an application");
            for (uint32_t task = 0; task < kTasks; ++task) {
                const std::string task_name = "task-" + std::to_string(task);
                must_take(core_->apply(
                              core::ApplicationEvent{.kind = core::ApplicationEvent::Kind::kAddTask,
                                                     .session = session_,
                                                     .application = name,
                                                     .task = task_name}),
                          "a task");
            }
        });
    }
}

void GangCore::decide(Samples& out) {
    const std::array groups{core::GroupSpec{.name = "rank", .members = members_}};
    const uint64_t first = ticks();
    turn([&] {
        must_take(core_->apply(core::AddApplication{
                      .session = session_, .application = kGang, .pool = pool_, .groups = groups}),
                  "a gang");
    });
    out.add(elapsed_ns(first, ticks()));
    if (bound_ != members_) throw std::runtime_error("a gang is not whole after its turn");
    for (const auto kind :
         {core::ApplicationEvent::Kind::kComplete, core::ApplicationEvent::Kind::kRemove}) {
        turn([&] {
            must_take(core_->apply(core::ApplicationEvent{
                          .kind = kind, .session = session_, .application = kGang}),
                      "the end of a gang");
        });
    }
}

void GangCore::measure(uint32_t operations, Samples& out) {
    for (uint32_t done = 0; done < operations; done += kBulk) {
        if (part_ == Part::kDecided) {
            decide(out);
            continue;
        }
        const uint64_t first = ticks();
        for (uint32_t i = 0; i < kBulk; ++i)
            turn([] {});
        out.add(elapsed_ns(first, ticks()) / kBulk);
    }
}

}  // namespace dibs::bench
