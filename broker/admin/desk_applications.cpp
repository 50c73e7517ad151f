// broker/admin/desk_applications.cpp -- lists applications and their tasks.
//
// Of another user's application only account, age and pool are told, as of a claim.
// SPDX-License-Identifier: Apache-2.0
#include "broker/admin/application_words.hpp"
#include "broker/admin/desk.hpp"
#include "broker/core/look.hpp"

namespace dibs {

using admin::Code;
using core::Look;

namespace {

std::string_view word_of(shm::TaskState state) {
    static constexpr std::string_view kWords[] = {"free",
                                                  "new",
                                                  "scheduling",
                                                  "allocated",
                                                  "bound",
                                                  "completed",
                                                  "killed",
                                                  "rejected",
                                                  "failed"};
    return kWords[static_cast<size_t>(state)];
}

}  // namespace

uint32_t Desk::find_application(uint32_t uid, std::string_view name) const {
    return Look::find_application(core_, uid, name);
}

bool Desk::sees_application(const AdminJob& job, uint32_t app) const {
    return job.is_admin || Look::application(core_, app).uid == job.uid;
}

bool Desk::sees_claim(const AdminJob& job, uint32_t row) const {
    const shm::ClaimRow& claim = core_.claim(row);
    if (claim.session != shm::kNoRow) return sees(job, claim.session);
    return claim.group != shm::kNoRow && sees_application(job, Look::group(core_, claim.group).app);
}

bool Desk::is_asked_for(const AdminJob& job, const shm::AppRow& app) const {
    if (app.state == shm::AppState::kFree || app.state == shm::AppState::kGoing) return false;
    const admin::RequestT& request = job.request;
    if (request.uid && *request.uid != app.uid) return false;
    if (request.application.empty()) return true;
    return row_name(app) == request.application && (job.is_admin || app.uid == job.uid);
}

void Desk::applications(AdminJob& job) const {
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    page(job, Look::applications_max(core_), [&](uint32_t row) {
        const shm::AppRow& app = Look::application(core_, row);
        if (!is_asked_for(job, app) || (pool != shm::kNoRow && app.pool != pool)) return 0U;
        job.answer.applications.push_back(application_row(job, row));
        const auto groups = static_cast<uint32_t>(job.answer.applications.back()->groups.size());
        return 1U + groups / 4U;
    });
}

void Desk::tasks(AdminJob& job) const {
    page(job, Look::tasks_max(core_), [&](uint32_t row) {
        const shm::TaskRow& task = Look::task(core_, row);
        if (task.state == shm::TaskState::kFree) return 0U;
        if (!is_asked_for(job, Look::application(core_, task.app))) return 0U;
        if (!sees_application(job, task.app)) return 0U;
        job.answer.tasks.push_back(task_row(row));
        return 1U;
    });
}

// Empty: it has been deleted.
std::string Desk::pool_name_of(const shm::AppRow& app) const {
    return app.pool == shm::kNoPool ? std::string() : name_of(app.pool);
}

std::unique_ptr<admin::GroupT> Desk::group_row(uint32_t pool, uint32_t row) const {
    const shm::GroupRow& group = Look::group(core_, row);
    auto told = std::make_unique<admin::GroupT>();
    told->name = row_name(group);
    told->members = group.members;
    told->bound = group.bound;
    told->replaced = group.replaced;
    if (pool == shm::kNoPool) return told;
    size_t at = 0;
    for (const core::Resource& resource : core_.resources(pool)) {
        if (group.resource[at] != 0) {
            told->resources.push_back(resource.name);
            told->amounts.push_back(group.resource[at]);
        }
        ++at;
    }
    return told;
}

std::unique_ptr<admin::ApplicationT> Desk::application_row(const AdminJob& job,
                                                           uint32_t row) const {
    const shm::AppRow& app = Look::application(core_, row);
    auto told = std::make_unique<admin::ApplicationT>();
    told->account = quotas_.account_of(app.uid);
    told->age_ns = age(app.created_ns);
    told->pool = pool_name_of(app);
    told->full = sees_application(job, row);
    if (!told->full) return told;
    told->number = app.number;
    told->name = row_name(app);
    told->state = word_of(app.state);
    told->reason = app.reason;
    told->uid = app.uid;
    if (app.manager != shm::kNoRow) {
        told->client = client_of(app.manager);
        told->pid = core_.session(app.manager).pid;
    }
    told->unmanaged = (app.flags & shm::AppFlag::kUnmanaged) != 0;
    told->gate_open = (app.flags & shm::AppFlag::kGateOpen) != 0;
    told->hard = app.style == shm::GangStyle::kHard;
    told->priority = app.priority;
    told->tasks = app.tasks;
    told->claims = app.claims;
    told->leases = app.leases;
    told->placeholders = app.placeholders;
    for (uint32_t group = app.first_group; group != shm::kNoRow;
         group = Look::group(core_, group).next) {
        told->groups.push_back(group_row(app.pool, group));
        told->members += told->groups.back()->members;
    }
    told->placeholders_left_ns = left(app.placeholder_until_ns);
    told->manager_left_ns = left(app.manager_until_ns);
    if (has_ended(app.state)) told->ended_ns = age(app.ended_ns);
    if (app.tags != shm::kNoRow && app.tags_size <= shm::kMetaMax) {
        told->tags.resize(app.tags_size);
        core_.copy_chain(app.tags, app.tags_size, reinterpret_cast<std::byte*>(told->tags.data()));
    }
    return told;
}

std::unique_ptr<admin::TaskT> Desk::task_row(uint32_t row) const {
    const shm::TaskRow& task = Look::task(core_, row);
    const shm::AppRow& app = Look::application(core_, task.app);
    auto told = std::make_unique<admin::TaskT>();
    told->application = row_name(app);
    told->uid = app.uid;
    told->pool = pool_name_of(app);
    told->name = row_name(task);
    if (task.group != shm::kNoRow) told->group = row_name(Look::group(core_, task.group));
    told->state = word_of(task.state);
    told->reason = task.reason;
    told->priority = task.priority;
    told->number = task.number;
    if (task.claim != shm::kNoRow) {
        const shm::ClaimRow& claim = core_.claim(task.claim);
        told->claim = claim.arrival;
        const bool asked = claim.state == shm::ClaimState::kReserved;
        if (task.state == shm::TaskState::kNew) {
            told->state = word_of(asked ? shm::TaskState::kAllocated : shm::TaskState::kScheduling);
        }
    }
    if (task.lease != shm::kNoRow) told->lease = core_.lease(task.lease).arrival;
    return told;
}

// --- what shows elsewhere

void Desk::placeholder_of(const AdminJob& job, const shm::SlotRow& slot, admin::SlotT* told) const {
    if (slot.group == shm::kNoRow || Look::is_dispatched(core_, slot.pool)) return;
    const shm::GroupRow& group = Look::group(core_, slot.group);
    const shm::AppRow& app = Look::application(core_, group.app);
    told->state = "placeholder";
    told->account = quotas_.account_of(app.uid);
    if (!sees_application(job, group.app)) return;
    told->full = true;
    told->application = row_name(app);
    told->group = row_name(group);
}

std::string Desk::account_of_ask(const shm::ClaimRow& claim) const {
    return quotas_.account_of(Look::application(core_, Look::group(core_, claim.group).app).uid);
}

// It has no session: its application asks for what a group lacks.
std::unique_ptr<admin::ClaimT> Desk::ask_row(const AdminJob& job, uint32_t row) const {
    const shm::ClaimRow& claim = core_.claim(row);
    auto told = std::make_unique<admin::ClaimT>();
    told->age_ns = age(claim.enqueued_ns);
    told->pool = name_of(claim.pool);
    if (claim.group == shm::kNoRow) return told;
    const shm::GroupRow& group = Look::group(core_, claim.group);
    const shm::AppRow& app = Look::application(core_, group.app);
    told->account = account_of_ask(claim);
    if (!sees_application(job, group.app)) return told;
    told->full = true;
    told->number = claim.arrival;
    told->id = core::row_id(claim.head.generation, row);
    told->state = "reserving";
    told->units = claim.units;
    told->uid = app.uid;
    if (app.manager != shm::kNoRow) {
        told->client = client_of(app.manager);
        told->pid = core_.session(app.manager).pid;
    }
    told->left_ns = left(app.placeholder_until_ns);
    told->position = core_.explain(row).position;
    told->application = row_name(app);
    told->group = row_name(group);
    return told;
}

void Desk::refuse_ask(AdminJob& job, uint32_t row) const {
    const uint32_t group = core_.claim(row).group;
    if (group == shm::kNoRow) return refuse_with(job, Code::refused, "it is no session's");
    const std::string name(row_name(Look::application(core_, Look::group(core_, group).app)));
    refuse_with(job,
                Code::refused,
                "application " + name + " asks for its gang: dibs app fail " + name +
                    " ends that, and the application");
}

void Desk::member_of(uint32_t row, auto* told) const {
    if (row == shm::kNoRow) return;
    const shm::TaskRow& task = Look::task(core_, row);
    told->application = row_name(Look::application(core_, task.app));
    told->task = row_name(task);
    if (task.group != shm::kNoRow) told->group = row_name(Look::group(core_, task.group));
}
template void Desk::member_of(uint32_t, admin::ClaimT*) const;
template void Desk::member_of(uint32_t, admin::LeaseT*) const;

void Desk::explain_gang(const AdminJob& job,
                        const core::Explanation& why,
                        admin::ExplanationT* told) const {
    told->gang_held = why.gang_held;
    told->gang_members = why.gang_members;
    if (why.application == shm::kNoRow || !sees_application(job, why.application)) return;
    told->application = row_name(Look::application(core_, why.application));
    if (why.group != shm::kNoRow) told->group = row_name(Look::group(core_, why.group));
}

}  // namespace dibs
