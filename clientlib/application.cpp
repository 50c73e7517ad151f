// clientlib/application.cpp -- the calls of managers of applications: what they say, what they
// hear.
//
// Room in DOWN is promised for all that a session is ever told of an application, from the request
// on until its end has been read: a manager that reads late loses nothing.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include <algorithm>

#include "clientlib/session.hpp"
#include "clientlib/wire/request_writer.hpp"
#include "shm/app_state.hpp"
#include "shm/pool_name.hpp"

namespace dibs::client {

namespace {

// schemas/application.fbs: words, and fields.
enum class AppWord : uint8_t {
    kAdd = 0,
    kAdopt = 1,
    kComplete = 2,
    kFail = 3,
    kKill = 4,
    kRemove = 5,
    kRecovered = 6,
    kAddTask = 7,
    kRemoveTask = 8,
    kCompleteTask = 9
};
namespace AppField {
constexpr uint16_t kWord = 0;
constexpr uint16_t kApplication = 1;
constexpr uint16_t kPriority = 2;
constexpr uint16_t kGroups = 3;
constexpr uint16_t kPlaceholderTimeout = 4;
constexpr uint16_t kManagerTimeout = 5;
constexpr uint16_t kAge = 6;
constexpr uint16_t kStyle = 7;
constexpr uint16_t kRecover = 8;
constexpr uint16_t kParameters = 9;
constexpr uint16_t kTags = 10;
constexpr uint16_t kTask = 11;
constexpr uint16_t kGroup = 12;
constexpr uint16_t kAssigned = 13;
}  // namespace AppField
namespace GroupField {
constexpr uint16_t kName = 0;
constexpr uint16_t kMembers = 1;
constexpr uint16_t kResource = 2;
}  // namespace GroupField

constexpr uint64_t kAsked = uint64_t{1} << 63U;

// What stands for an application's number until its answer is there.
constexpr uint64_t app_of_answer(uint64_t user_data) {
    return kAsked | user_data;
}

bool is_text(const char* text) {
    if (text == nullptr) return true;
    return strnlen(text, DIBS_META_MAX + 1) <= DIBS_META_MAX && !has_control(text);
}

uint64_t duration_of(int64_t ns) {
    return ns == DIBS_FOREVER ? shm::kNever : static_cast<uint64_t>(ns);
}

// One request: its fields first, then what they refer to.
struct Saying : TableMemory<DIBS_PAYLOAD_MAX> {
    RequestTable fields;
    TableWriter writer{memory, sizeof memory};
    size_t at = 0;

    explicit Saying(AppWord word) { fields.number(AppField::kWord, static_cast<uint64_t>(word)); }
    void begin() { at = writer.root(fields); }
    void text(uint16_t field, const char* text) {
        if (text != nullptr) writer.text(TableWriter::place(at, fields, field), text);
    }
    void refer(uint16_t field, const char* text) {
        if (text != nullptr) fields.reference(field);
    }
};

void write_group(TableWriter& writer, size_t place, const dibs_app_group& group) {
    RequestTable table;
    table.reference(GroupField::kName);
    table.number(GroupField::kMembers, group.members);
    if (group.resource_count != 0) table.reference(GroupField::kResource);
    const size_t at = writer.table(place, table);
    writer.text(TableWriter::place(at, table, GroupField::kName), group.name);
    if (group.resource_count == 0) return;
    writer.texts(
        TableWriter::place(at, table, GroupField::kResource), group.resource, group.resource_count);
}

int check_groups(const dibs_app& app) {
    if (app.group_count > DIBS_APP_GROUPS_MAX) return DIBS_EARGUMENT;
    if (app.group_count != 0 && app.groups == nullptr) return DIBS_EARGUMENT;
    for (size_t i = 0; i < app.group_count; ++i) {
        const dibs_app_group& group = app.groups[i];
        // What is no group otherwise the broker says, and goes on without a gang.
        if (group.name == nullptr || strnlen(group.name, DIBS_NAME_MAX + 1) > DIBS_NAME_MAX ||
            has_control(group.name)) {
            return DIBS_ENAME;
        }
        if (!good_amounts(group.resource, group.resource_count)) return DIBS_EVECTOR;
    }
    return DIBS_OK;
}

int check_app(const dibs_app& app) {
    if (!good_app_name(app.name)) return DIBS_ENAME;
    if (app.placeholder_timeout_ns < 0 || app.manager_timeout_ns < 0 || app.age_ns < 0) {
        return DIBS_ENEGATIVE;
    }
    if (app.style < DIBS_GANG_SOFT || app.style > DIBS_GANG_HARD || app.priority < 0) {
        return DIBS_EARGUMENT;
    }
    if (!is_text(app.parameters) || !is_text(app.tags)) return DIBS_EPAYLOAD;
    return check_groups(app);
}

void write_app(Saying& saying, const dibs_app& app) {
    RequestTable& fields = saying.fields;
    fields.reference(AppField::kApplication);
    fields.number(AppField::kPriority, static_cast<uint64_t>(app.priority == 0 ? 1 : app.priority));
    fields.number(AppField::kPlaceholderTimeout, duration_of(app.placeholder_timeout_ns));
    fields.number(AppField::kManagerTimeout, duration_of(app.manager_timeout_ns));
    fields.number(AppField::kAge, static_cast<uint64_t>(app.age_ns));
    fields.number(AppField::kStyle, static_cast<uint64_t>(app.style));
    fields.number(AppField::kRecover, app.recover != 0 ? 1 : 0);
    saying.refer(AppField::kParameters, app.parameters);
    saying.refer(AppField::kTags, app.tags);
    if (app.group_count != 0) fields.reference(AppField::kGroups);
    saying.begin();
    saying.text(AppField::kApplication, app.name);
    saying.text(AppField::kParameters, app.parameters);
    saying.text(AppField::kTags, app.tags);
    if (app.group_count == 0) return;
    const size_t first = saying.writer.references(
        TableWriter::place(saying.at, fields, AppField::kGroups), app.group_count);
    for (size_t i = 0; i < app.group_count; ++i)
        write_group(saying.writer, first + i * sizeof(uint32_t), app.groups[i]);
}

// `manages`: the name of the application that the session is to manage, or null. `value`: of the
// result, or null.
int say(dibs_session* session,
        uint32_t pool,
        const Saying& saying,
        const char* manages,
        int64_t wait_ns,
        uint64_t* value) {
    if (!saying.writer.fits()) return DIBS_EPAYLOAD;
    int code = manages != nullptr ? session->need_app() : DIBS_OK;
    const Told told = wait_ns == 0 ? Told::kNobody : Told::kResult;
    if (code == DIBS_OK && manages != nullptr) {
        code = session->need_credit(1 + shm::kCompletionsPerApplication);
    }
    if (code != DIBS_OK) return code;
    shm::Submission entry;
    entry.op = shm::Op::kApplication;
    entry.pool = static_cast<uint16_t>(pool);
    uint32_t index = kNone;
    code = session->submit_with(
        entry,
        {reinterpret_cast<const char*>(saying.writer.bytes()), saying.writer.size()},
        0,
        told,
        index);
    if (code != DIBS_OK) return code;
    if (manages != nullptr) session->remember_app(app_of_answer(entry.user_data), manages);
    session->publish();
    if (told == Told::kNobody) return DIBS_OK;
    dibs_completion out = {};
    code = session->await_answer(index, wait_ns, out);
    if (code != DIBS_OK) return code;
    if (value != nullptr) *value = out.claim;
    return out.code;
}

int check_saying(const dibs_session* session, const char* name, int64_t wait_ns) {
    const int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    return good_app_name(name) ? DIBS_OK : DIBS_ENAME;
}

int say_event(
    dibs_session* session, AppWord word, const char* name, const char* task, int64_t wait_ns) {
    int code = check_saying(session, name, wait_ns);
    if (code == DIBS_OK && task != nullptr && !good_app_name(task)) code = DIBS_ENAME;
    if (code != DIBS_OK) return code;
    Saying saying(word);
    saying.fields.reference(AppField::kApplication);
    saying.refer(AppField::kTask, task);
    saying.begin();
    saying.text(AppField::kApplication, name);
    saying.text(AppField::kTask, task);
    return say(session, 0, saying, nullptr, wait_ns, nullptr);
}

bool has_ended(int32_t state) {
    return state == DIBS_APP_COMPLETED || state == DIBS_APP_FAILED || state == DIBS_APP_KILLED ||
           state == DIBS_APP_REMOVED;
}

}  // namespace

ManagedApp* Session::managed(uint64_t number) const {
    ManagedApp* end = apps + app_count;
    ManagedApp* found =
        std::find_if(apps, end, [&](const ManagedApp& it) { return it.number == number; });
    return found != end ? found : nullptr;
}

void Session::remember_app(uint64_t number, const char* app_name) {
    if (app_count == apps_max) return;
    ManagedApp& app = apps[app_count++];
    app.number = number;
    memcpy(app.name, app_name, strnlen(app_name, DIBS_NAME_MAX));
}

void Session::forget_app(uint64_t number) {
    ManagedApp* found = managed(number);
    if (found == nullptr) return;
    --app_count;
    *found = apps[app_count];
    apps[app_count] = {};
}

// Those that are asked for stay. What has been told of the others goes, too: the queue has room for
// that of as many as are managed.
void Session::forget_apps_named(const char* app_name, uint64_t but) {
    for (uint32_t i = app_count; i-- > 0;) {
        const uint64_t number = apps[i].number;
        const bool asked = (number & kAsked) != 0;
        if (asked || number == but || strcmp(apps[i].name, app_name) != 0) continue;
        forget_app(number);
        for (uint32_t left = app_events.count; left != 0; --left) {
            const shm::Completion told = app_events.pop();
            if (told.id != number) app_events.push(told);
        }
    }
}

void Session::accept_app(uint64_t asked, const shm::Completion& completion, dibs_completion& out) {
    out.claim = completion.value;
    out.holder = {};
    ManagedApp* app = managed(app_of_answer(asked));
    if (app == nullptr) return;
    if (out.code != DIBS_OK) return forget_app(app->number);
    app->number = completion.value;
    // One of that name that it has managed before somebody else has removed.
    const ManagedApp added = *app;
    forget_apps_named(added.name, added.number);
}

}  // namespace dibs::client

using namespace dibs::client;

int dibs_app_add(dibs_session* session, const dibs_app* app, int64_t wait_ns, uint64_t* number) {
    int code = check_open(session);
    if (code != DIBS_OK) return code;
    if (app == nullptr || wait_ns == 0) return DIBS_EARGUMENT;
    if (wait_ns < 0) return DIBS_ENEGATIVE;
    dibs_app known;
    code = read_options(app, &known, sizeof known, sizeof known);
    if (code == DIBS_OK) code = check_app(known);
    if (code != DIBS_OK) return code;
    if (known.pool > UINT16_MAX) return DIBS_EPOOL;  // a set, say
    Saying saying(AppWord::kAdd);
    write_app(saying, known);
    return say(session, known.pool, saying, known.name, wait_ns, number);
}

int dibs_app_adopt(dibs_session* session, const char* name, int64_t wait_ns, uint64_t* number) {
    const int code = check_saying(session, name, wait_ns);
    if (code != DIBS_OK) return code;
    if (wait_ns == 0) return DIBS_EARGUMENT;
    Saying saying(AppWord::kAdopt);
    saying.fields.reference(AppField::kApplication);
    saying.begin();
    saying.text(AppField::kApplication, name);
    return say(session, 0, saying, name, wait_ns, number);
}

int dibs_app_complete(dibs_session* session, const char* name, int64_t wait_ns) {
    return say_event(session, AppWord::kComplete, name, nullptr, wait_ns);
}

int dibs_app_fail(dibs_session* session, const char* name, int64_t wait_ns) {
    return say_event(session, AppWord::kFail, name, nullptr, wait_ns);
}

int dibs_app_kill(dibs_session* session, const char* name, int64_t wait_ns) {
    return say_event(session, AppWord::kKill, name, nullptr, wait_ns);
}

int dibs_app_recovered(dibs_session* session, const char* name, int64_t wait_ns) {
    return say_event(session, AppWord::kRecovered, name, nullptr, wait_ns);
}

int dibs_app_remove(dibs_session* session, const char* name, int64_t wait_ns, uint64_t* tasks) {
    const int code = check_saying(session, name, wait_ns);
    if (code != DIBS_OK) return code;
    if (wait_ns == 0) return DIBS_EARGUMENT;
    Saying saying(AppWord::kRemove);
    saying.fields.reference(AppField::kApplication);
    saying.begin();
    saying.text(AppField::kApplication, name);
    const int said = say(session, 0, saying, nullptr, wait_ns, tasks);
    // All that it was told of it has been taken in before the result. One that is not there any
    // more an administrator has removed.
    if (said == DIBS_OK || said == DIBS_ENOTFOUND) session->forget_apps_named(name, 0);
    return said;
}

int dibs_app_add_task(dibs_session* session,
                      const char* name,
                      const dibs_app_task* task,
                      int64_t wait_ns) {
    int code = check_saying(session, name, wait_ns);
    if (code != DIBS_OK) return code;
    if (task == nullptr) return DIBS_EARGUMENT;
    dibs_app_task known;
    code = read_options(task, &known, sizeof known, sizeof known);
    if (code != DIBS_OK) return code;
    if (!good_app_name(known.name) || (known.group != nullptr && !good_app_name(known.group))) {
        return DIBS_ENAME;
    }
    if (known.priority < 0) return DIBS_EARGUMENT;
    Saying saying(AppWord::kAddTask);
    RequestTable& fields = saying.fields;
    fields.reference(AppField::kApplication);
    fields.number(AppField::kPriority,
                  static_cast<uint64_t>(known.priority == 0 ? 1 : known.priority));
    fields.number(AppField::kAssigned, known.assigned != 0 ? 1 : 0);
    fields.reference(AppField::kTask);
    saying.refer(AppField::kGroup, known.group);
    saying.begin();
    saying.text(AppField::kApplication, name);
    saying.text(AppField::kTask, known.name);
    saying.text(AppField::kGroup, known.group);
    return say(session, 0, saying, nullptr, wait_ns, nullptr);
}

int dibs_app_remove_task(dibs_session* session,
                         const char* name,
                         const char* task,
                         int64_t wait_ns) {
    return task == nullptr ? DIBS_ENAME
                           : say_event(session, AppWord::kRemoveTask, name, task, wait_ns);
}

int dibs_app_complete_task(dibs_session* session,
                           const char* name,
                           const char* task,
                           int64_t wait_ns) {
    return task == nullptr ? DIBS_ENAME
                           : say_event(session, AppWord::kCompleteTask, name, task, wait_ns);
}

int dibs_app_next(dibs_session* session, dibs_app_event* event, int64_t timeout_ns) {
    const int code = check(session);
    if (code != DIBS_OK) return code;
    if (event == nullptr) return DIBS_EARGUMENT;
    if (event->size < sizeof *event) return DIBS_ESIZE;
    if (timeout_ns < 0) return DIBS_ENEGATIVE;
    const bool came = Wait(*session, timeout_ns).until(Awaited::kAppEvent);
    if (session->app_events.count == 0) {
        if (session->end_code != 0) return session->end_code;
        return came ? DIBS_EUNREAD : DIBS_ETIMEDOUT;
    }
    const dibs::shm::Completion told = session->app_events.pop();
    const size_t size = event->size;
    memset(event, 0, sizeof *event);
    event->size = size;
    event->number = told.id;
    event->state = static_cast<int32_t>(told.value);
    event->before = static_cast<int32_t>(told.claim);
    event->code = static_cast<int32_t>(told.reason);
    event->tasks_failed = told.data == dibs::shm::kNoRow ? 0 : told.data;
    const ManagedApp* app = session->managed(told.id);
    if (app != nullptr) memcpy(event->name, app->name, sizeof event->name);
    if (has_ended(event->state)) session->forget_app(told.id);
    return DIBS_OK;
}

const char* dibs_app_state_name(int state) {
    using dibs::shm::kAppStateWords;
    constexpr int kCount = sizeof kAppStateWords / sizeof *kAppStateWords;
    return state > 0 && state < kCount ? kAppStateWords[state] : "unknown";
}
