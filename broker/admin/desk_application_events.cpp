// broker/admin/desk_application_events.cpp -- adds applications, and says for their user, or an
// administrator, what happens to one.
//
// What is added here has no manager and needs none. What the core would pass over in silence, as a
// launcher's library wants it, is refused here: a person has mistyped it.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "broker/admin/application_words.hpp"
#include "broker/admin/desk.hpp"
#include "broker/core/look.hpp"
#include "broker/turn/application/payload.hpp"
#include "broker/turn/payload.hpp"

namespace dibs {

using admin::AppWord;
using admin::Code;
using core::Look;

namespace {

// Names and tags are told line by line, and names pass through a shell.
bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), [](char letter) {
        return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
    });
}

// Empty: it can be one. `whose`: "the task's".
std::string no_name(const std::string& whose, const std::string& name) {
    if (name.empty()) return whose + " name is empty";
    if (name.size() > shm::kNameMax) {
        return whose + " name has " + std::to_string(name.size()) + " bytes; 63 is the most";
    }
    return has_control(name) ? whose + " name, \"" + name + "\", has control characters" : "";
}

core::ApplicationEvent::Kind event_kind(AppWord word) {
    using Kind = core::ApplicationEvent::Kind;
    switch (word) {
        case AppWord::complete:
            return Kind::kComplete;
        case AppWord::fail:
            return Kind::kFail;
        case AppWord::kill:
            return Kind::kKill;
        case AppWord::remove:
            return Kind::kRemove;
        case AppWord::add_task:
            return Kind::kAddTask;
        case AppWord::remove_task:
            return Kind::kRemoveTask;
        default:
            return Kind::kCompleteTask;
    }
}

bool is_of_task(AppWord word) {
    return word >= AppWord::add_task;
}

std::string wrong_name(const admin::RequestT& request) {
    std::string wrong = no_name("the application's", request.application);
    if (wrong.empty() && is_of_task(request.app_word)) wrong = no_name("the task's", request.task);
    if (wrong.empty() && !request.group.empty()) wrong = no_name("the group's", request.group);
    return wrong;
}

std::string wrong_terms(const admin::RequestT& request) {
    const size_t size = request.app_tags.size();
    if (size > shm::kMetaMax) {
        return "the tags have " + std::to_string(size) + " bytes; 255 is the most";
    }
    if (has_control(request.app_tags)) return "the tags have control characters";
    return request.priority.value_or(1) < 0 ? "the priority is negative; 0 is the least" : "";
}

// Empty: it is sound, in a pool whose slots have these resources.
std::string wrong_group(const admin::AppGroupT& group,
                        const std::string& pool,
                        const std::vector<core::Resource>& has) {
    if (std::string wrong = no_name("a group's", group.name); !wrong.empty()) return wrong;
    const std::string start = "group " + group.name + ": ";
    if (group.members == 0) return start + "it has 0 members; 1 is the least";
    std::string names;
    for (const core::Resource& resource : has)
        names += (names.empty() ? "" : ", ") + resource.name;
    std::set<std::string> named;
    bool wants = group.resource.empty();
    for (const std::string& text : group.resource) {
        const std::string name = text.substr(0, text.find('='));
        const bool known = std::any_of(
            has.begin(), has.end(), [&](const auto& resource) { return resource.name == name; });
        if (!known) {
            return start + "pool " + pool + " has no resource " + name + ": its slots have " +
                   (has.empty() ? "none, so a member wants a whole one" : names);
        }
        const core::Amount amount = amount_of(text);
        if (amount.name.empty()) return start + text + " is no amount of a resource";
        if (!named.insert(name).second) return start + "resource " + name + " is named twice";
        wants = wants || amount.amount != 0;
    }
    return wants ? ""
                 : start + "a member wants 0 of everything; it wants something of one at least";
}

// The core drops all groups of which one is not sound.
std::string wrong_groups(const admin::RequestT& request, const std::vector<core::Resource>& has) {
    if (request.app_groups.size() > ApplicationReader::kGroupsMax) {
        return "an application has 32 groups at most";
    }
    std::set<std::string> names;
    for (const auto& group : request.app_groups) {
        std::string wrong = wrong_group(*group, request.pool, has);
        if (!wrong.empty()) return wrong;
        if (!names.insert(group->name).second) return "there are two groups " + group->name;
    }
    return "";
}

bool takes_no_end(const shm::AppRow& app) {
    return has_ended(app.state) || app.state == shm::AppState::kFailing ||
           app.state == shm::AppState::kKilling;
}

// What is true of it, behind its name.
std::string is_now(shm::AppState state) {
    switch (state) {
        case shm::AppState::kCompleted:
            return "has been completed";
        case shm::AppState::kFailed:
            return "has failed";
        case shm::AppState::kKilled:
            return "has been killed";
        case shm::AppState::kKilling:
            return "is being killed";
        default:
            return "is " + std::string(word_of(state));
    }
}

}  // namespace

void Desk::application(AdminJob& job) {
    const admin::RequestT& request = job.request;
    const uint32_t uid = request.uid.value_or(job.uid);
    if (uid != job.uid && !job.is_admin) {
        job.answer.code = Code::denied;
        return;
    }
    if (request.app_word == AppWord::none || request.app_word > AppWord::MAX) {
        job.answer.code = Code::unsupported;
        return;
    }
    if (std::string wrong = wrong_name(request); !wrong.empty()) {
        return refuse_with(job, Code::refused, std::move(wrong));
    }
    if (request.app_word == AppWord::add) return add_application(job, uid);
    if (std::string none = no_group(uid, request); !none.empty()) {
        return refuse_with(job, Code::not_found, std::move(none));
    }
    core::ApplicationEvent event;
    event.kind = event_kind(request.app_word);
    event.uid = uid;
    event.application = request.application;
    event.task = request.task;
    event.group = request.group;
    event.priority = request.priority.value_or(1);
    uint64_t value = 0;
    const shm::Reason full =
        request.app_word == AppWord::add_task ? quotas_.task(uid) : shm::Reason::kOk;
    const shm::Reason reason = full != shm::Reason::kOk ? full : core_.apply(event, &value);
    if (reason != shm::Reason::kOk) refuse_application(job, reason, value);
}

void Desk::add_application(AdminJob& job, uint32_t uid) {
    const admin::RequestT& request = job.request;
    uint32_t pool = shm::kNoRow;
    if (!pool_of(job, &pool)) return;
    if (pool == shm::kNoRow) return refuse_with(job, Code::refused, "say which pool it is of");
    const int32_t priority = request.priority.value_or(1);
    if (!job.is_admin && !quotas_.may_claim(job.peer, pool, priority)) {
        return refuse_with(job,
                           Code::refused,
                           "the policy of its user does not allow it to claim from pool " +
                               request.pool + ", or not with that priority");
    }
    std::string wrong = wrong_terms(request);
    if (wrong.empty()) wrong = wrong_groups(request, core_.resources(pool));
    if (!wrong.empty()) return refuse_with(job, Code::refused, std::move(wrong));
    std::vector<core::GroupSpec> groups;
    std::vector<std::vector<core::Amount>> amounts(request.app_groups.size());
    for (const auto& group : request.app_groups) {
        std::vector<core::Amount>& of = amounts[groups.size()];
        for (const std::string& text : group->resource)
            of.push_back(amount_of(text));
        groups.push_back({.name = group->name, .members = group->members, .resource = of});
    }
    core::AddApplication command;
    command.uid = uid;
    command.application = request.application;
    command.pool = pool;
    command.priority = priority;
    command.groups = groups;
    command.placeholder_timeout_ns = request.placeholder_timeout_ns;
    command.style = request.hard ? shm::GangStyle::kHard : shm::GangStyle::kSoft;
    command.tags = request.app_tags;
    uint32_t most = 0;
    if (!job.is_admin && !quotas_.may_reserve(job.peer, request.application, groups, &most)) {
        return refuse_with(job,
                           Code::refused,
                           "with it the members of its user's applications that hold no lease yet "
                           "are more than the " +
                               std::to_string(most) + " leases that the user's policy allows");
    }
    const shm::Reason full = quotas_.application(uid, groups.size());
    if (full != shm::Reason::kOk) return refuse_application(job, full, 0);
    const shm::Reason reason = core_.apply(command, &job.answer.number);
    if (reason != shm::Reason::kOk) refuse_application(job, reason, job.answer.number);
}

// Empty: its application has the group that a new task names, or is none that takes tasks.
std::string Desk::no_group(uint32_t uid, const admin::RequestT& request) const {
    if (request.app_word != AppWord::add_task || request.group.empty()) return "";
    const uint32_t row = find_application(uid, request.application);
    if (row == shm::kNoRow || takes_no_end(Look::application(core_, row))) return "";
    std::string names;
    for (uint32_t group = Look::application(core_, row).first_group; group != shm::kNoRow;
         group = Look::group(core_, group).next) {
        const std::string name(row_name(Look::group(core_, group)));
        if (name == request.group) return "";
        names += (names.empty() ? "" : ", ") + name;
    }
    return "application " + request.application + " has no group " + request.group + ": it has " +
           (names.empty() ? "no groups" : names);
}

// "3 of its tasks have not ended: rank-0, rank-1 and 1 more; dibs app kill train ends them".
std::string Desk::unfinished(uint32_t uid, std::string_view name, uint64_t count) const {
    constexpr uint64_t kTasksNamed = 5;
    std::string text = std::to_string(count) + (count == 1 ? " of its tasks has not ended"
                                                           : " of its tasks have not ended");
    const uint32_t app = find_application(uid, name);
    uint64_t named = 0;
    for (uint32_t row = 0; row < Look::tasks_max(core_) && named < kTasksNamed; ++row) {
        const shm::TaskRow& task = Look::task(core_, row);
        const bool lives = task.state >= shm::TaskState::kNew &&
                           task.state <= shm::TaskState::kBound && task.app == app;
        if (!lives) continue;
        text += (named == 0 ? ": " : ", ") + std::string(row_name(task));
        ++named;
    }
    if (named < count && named != 0) text += " and " + std::to_string(count - named) + " more";
    // An end comes once: leases that it has left are ended one by one.
    const std::string of(name);
    if (!takes_no_end(Look::application(core_, app))) {
        return text + "; dibs app kill " + of + " ends them";
    }
    return text + "; dibs app complete " + of + " TASK ends one of them";
}

std::string Desk::sentence_on_task(const admin::RequestT& request, shm::Reason reason) const {
    const std::string task = "task " + request.task;
    const std::string of = " of application " + request.application;
    switch (reason) {
        case shm::Reason::kDuplicate:
            return task + of + " is there already, and stays as it is";
        case shm::Reason::kAlreadyEnded:
            return request.app_word == AppWord::remove_task
                       ? "there is no " + task + of + ": dibs app show " + request.application +
                             " shows those that are"
                       : task + of + " has ended before";
        case shm::Reason::kState:
            return task + of + " has not ended: dibs app complete " + request.application + " " +
                   request.task + " ends it";
        default:
            return "there is no " + task + of + ": dibs app show " + request.application +
                   " shows those that are";
    }
}

// What, where, and what to do.
void Desk::refuse_application(AdminJob& job, shm::Reason reason, uint64_t value) const {
    const admin::RequestT& request = job.request;
    const uint32_t uid = request.uid.value_or(job.uid);
    const uint32_t row = find_application(uid, request.application);
    const std::string app = "application " + request.application;
    const shm::AppState now =
        row == shm::kNoRow ? shm::AppState::kFree : Look::application(core_, row).state;
    const std::string state(row == shm::kNoRow ? "ended" : word_of(now));
    job.answer.number = value;
    switch (reason) {
        case shm::Reason::kAppEnded:
            return refuse_with(job,
                               Code::refused,
                               app + " has ended (" + state + "): remove it with dibs app remove " +
                                   request.application + ", or choose another name");
        case shm::Reason::kLimit:
            return refuse_with(job,
                               Code::refused,
                               "a quarter of the broker's rows for applications, groups or tasks "
                               "is that user's: remove some that have ended (dibs app remove), or "
                               "raise limits.applications, limits.groups or limits.tasks");
        case shm::Reason::kTablesFull:
            return refuse_with(job,
                               Code::refused,
                               "the broker has no room for it: limits.applications, limits.groups "
                               "or limits.tasks");
        default:
            break;
    }
    if (row == shm::kNoRow && request.app_word != AppWord::add) {
        return refuse_with(job,
                           Code::not_found,
                           "there is no " + app +
                               (uid == job.uid ? " of yours" : " of user " + std::to_string(uid)) +
                               ": dibs app ls shows those that are");
    }
    if (is_of_task(request.app_word)) {
        const bool refused = reason == shm::Reason::kState || reason == shm::Reason::kDuplicate;
        return refuse_with(
            job, refused ? Code::refused : Code::not_found, sentence_on_task(request, reason));
    }
    if (reason == shm::Reason::kDuplicate) {
        return refuse_with(job,
                           Code::refused,
                           app + " is there already (" + state +
                               "), and stays as it is: dibs app "
                               "show " +
                               request.application + " shows it");
    }
    if (reason == shm::Reason::kState && request.app_word == AppWord::remove && value != 0) {
        return refuse_with(
            job, Code::refused, app + ": " + unfinished(uid, request.application, value));
    }
    if (reason == shm::Reason::kState) {
        const bool completes = request.app_word == AppWord::complete;
        return refuse_with(
            job,
            Code::refused,
            app + " " + is_now(now) + (completes ? ": one that is running can be completed" : ""));
    }
    refuse_with(job, Code::refused, app + ": refused");
}

}  // namespace dibs
