// broker/ctl/app/app.cpp -- `dibs app`: adds, lists, shows and ends applications.
//
// What is added here needs no manager: it lives until it is completed, failed, killed or removed,
// and its tasks are the claims that name it (`dibs exec --app`).
// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "broker/config/quantity.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/app/app_sheet.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/spelling.hpp"

namespace dibs::ctl {

namespace app {
namespace {

using admin::AppWord;

constexpr size_t kGroupsMost = DIBS_APP_GROUPS_MAX;
constexpr NumberRange kMembers = {1, 256};
constexpr NumberRange kPriorities = {0, INT32_MAX};

struct Wanted {
    std::string word;
    std::vector<std::string> names;  // the application's, then a task's
    std::string pool;
    std::vector<std::string> groups;
    std::string style;
    int64_t timeout_ns = -1;
    bool no_timeout = false;
    std::optional<uint64_t> priority;
    std::string tags;
    std::string group;
    std::string user;

    [[nodiscard]] bool adds() const { return word == "add"; }
    [[nodiscard]] bool lists() const { return word == "ls"; }
    [[nodiscard]] bool takes_task() const {
        return word == "complete" || word == "remove" || word == "add-task";
    }
};

struct Help {
    std::string_view word;
    AppWord does;
    std::string_view did;
    const char* about;
    std::set<std::string> options;  // of its own
};

const std::array<Help, 8>& helps() {
    static const std::array<Help, 8> all = {
        {{"ls",
          AppWord::none,
          "",
          "Lists applications. Of another user's only account, age and pool are shown, unless you "
          "administer.",
          {}},
         {"show", AppWord::none, "", "Shows an application with its groups and tasks.", {}},
         {"add",
          AppWord::add,
          "added",
          "Adds an application of yours, which needs no manager: it lives until it is completed, "
          "failed, killed or removed. Its tasks are the claims that name it: dibs exec --app. "
          "With groups it has a gang: no task runs before each group holds as many slots as it "
          "has members.",
          {"--pool", "--group", "--style", "--timeout", "--no-timeout", "--priority", "--tags"}},
         {"add-task",
          AppWord::add_task,
          "added",
          "Adds a task to an application, which a claim that names it does as well.",
          {"--in-group", "--priority"}},
         {"complete",
          AppWord::complete,
          "completed",
          "Completes a running application: placeholders go, and claims of its tasks end. With a "
          "task, that task alone: its claim ends, or its lease.",
          {}},
         {"fail",
          AppWord::fail,
          "failed",
          "Fails an application: placeholders go, claims of its tasks end; leases stay.",
          {}},
         {"kill",
          AppWord::kill,
          "killed",
          "Fails an application, and revokes the leases of its tasks.",
          {}},
         {"remove",
          AppWord::remove,
          "removed",
          "Forgets an application whose tasks have all ended, also one that reserves or runs: its "
          "placeholders go, its name is free. With a task, that task alone.",
          {}}}};
    return all;
}

const Help* help_of(std::string_view word) {
    const auto found = std::find_if(
        helps().begin(), helps().end(), [&](const Help& help) { return help.word == word; });
    return found == helps().end() ? nullptr : &*found;
}

void check_word(const std::string& word) {
    if (help_of(word) != nullptr) return;
    std::set<std::string_view> words;
    std::string all;
    for (const Help& help : helps()) {
        words.insert(help.word);
        all += (all.empty()                ? ""
                : &help == &helps().back() ? " and "
                                           : ", ") +
               std::string(help.word);
    }
    std::string text = "there is no \"" + word + "\" of an application";
    const auto near = nearest_word(word, words);
    text += near ? "; did you mean " + std::string(*near) + "? There are " : "; there are ";
    throw Failure(kExitUsage, text + all);
}

void check_usage(const Wanted& wanted, const Arguments& arguments) {
    check_word(wanted.word);
    const size_t most = wanted.lists() ? 0 : wanted.takes_task() ? 2 : 1;
    const size_t least = wanted.lists() ? 0 : wanted.word == "add-task" ? 2 : 1;
    if (wanted.lists() && !wanted.names.empty()) {
        throw Failure(kExitUsage, "ls lists all applications; show NAME shows one");
    }
    if (wanted.names.size() < least) {
        throw Failure(kExitUsage,
                      wanted.word + (least == 2 ? " needs the names of an application and a task"
                                                : " needs the name of one application"));
    }
    if (wanted.names.size() > most) {
        throw Failure(kExitUsage,
                      wanted.word + (most == 2 ? " takes one application, and one task of it"
                                               : " takes one application at a time"));
    }
    for (const std::string& name : wanted.names)
        check_name("NAME", name);
    for (const Help& help : helps()) {
        for (const std::string& option : help.options) {
            if (!arguments.given(option)) continue;
            if (help_of(wanted.word)->options.contains(option)) continue;
            throw Failure(kExitUsage, option + " is for dibs app " + std::string(help.word));
        }
    }
    if (wanted.adds() && wanted.pool.empty()) {
        throw Failure(kExitUsage, "add needs --pool: an application is of one pool");
    }
    if (wanted.timeout_ns >= 0 && wanted.no_timeout) {
        throw Failure(kExitUsage, "--timeout and --no-timeout contradict each other: say one");
    }
    if (wanted.tags.size() > DIBS_META_MAX) {
        throw Failure(kExitUsage, "--tags: at most 255 bytes");
    }
    if (arguments.given("--in-group")) check_name("--in-group", wanted.group);
}

// "worker:4", "worker:4:memory=10GiB,sm=20".
std::unique_ptr<admin::AppGroupT> group_of(const std::string& text) {
    const auto wrong = [&](const std::string& why) {
        return Failure(kExitUsage,
                       "--group " + text + ": " + why +
                           "; write NAME:MEMBERS, or NAME:MEMBERS:RESOURCE=AMOUNT, such as "
                           "worker:4:memory=10GiB");
    };
    auto group = std::make_unique<admin::AppGroupT>();
    const size_t first = text.find(':');
    if (first == std::string::npos) throw wrong("it has no number of members");
    const size_t second = std::min(text.find(':', first + 1), text.size());
    group->name = text.substr(0, first);
    const std::string count = text.substr(first + 1, second - first - 1);
    const auto members = parse_number(count, kMembers);
    if (!members) throw wrong(no_number(count, kMembers));
    group->members = static_cast<uint32_t>(*members);
    if (group->name.empty() || group->name.size() > DIBS_NAME_MAX) {
        throw wrong("a group's name has 1 to 63 bytes");
    }
    for (size_t at = second + 1; at <= text.size() && second < text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        const std::string amount = text.substr(at, end - at);
        const size_t sign = amount.find('=');
        if (sign == std::string::npos || sign == 0 || !parse_size(amount.substr(sign + 1))) {
            throw wrong("\"" + amount + "\" is no amount of a resource");
        }
        group->resource.push_back(amount);
        at = end + 1;
    }
    if (group->resource.size() > DIBS_RESOURCES_MAX)
        throw wrong("a slot has six resources at most");
    return group;
}

std::optional<uint32_t> user_of(const Wanted& wanted) {
    if (wanted.user.empty()) return std::nullopt;
    if (const auto uid = user_number(wanted.user)) return uid;
    throw Failure(kExitUsage, "--user: there is no user \"" + wanted.user + "\"");
}

void add_terms(const Wanted& wanted, admin::RequestT* request) {
    request->pool = wanted.pool;
    if (wanted.groups.size() > kGroupsMost) {
        throw Failure(
            kExitUsage,
            "--group: an application has " + std::to_string(kGroupsMost) + " groups at most");
    }
    std::set<std::string> names;
    for (const std::string& text : wanted.groups) {
        request->app_groups.push_back(group_of(text));
        if (names.insert(request->app_groups.back()->name).second) continue;
        throw Failure(kExitUsage,
                      "--group " + text +
                          ": there are two groups of that name; members of one "
                          "group want the same");
    }
    if (!wanted.style.empty() && wanted.style != "soft" && wanted.style != "hard") {
        throw Failure(kExitUsage,
                      "--style " + wanted.style +
                          ": write soft (at the time-out the gang is given up, and tasks are "
                          "served as slots come) or hard (the application fails)");
    }
    request->hard = wanted.style == "hard";
    if (wanted.timeout_ns == 0) {
        throw Failure(kExitUsage, "--timeout: 1ns is the least; --no-timeout waits for ever");
    }
    if (wanted.timeout_ns > 0) {
        request->placeholder_timeout_ns = static_cast<uint64_t>(wanted.timeout_ns);
    }
    if (wanted.no_timeout) request->placeholder_timeout_ns = shm::kNever;
    request->app_tags = wanted.tags;
}

admin::RequestT request_of(const Wanted& wanted) {
    admin::RequestT request;
    request.ask = admin::Ask::application;
    request.app_word = help_of(wanted.word)->does;
    request.application = wanted.names.front();
    if (const auto uid = user_of(wanted)) request.uid = *uid;
    if (wanted.priority) request.priority = static_cast<int32_t>(*wanted.priority);
    if (wanted.adds()) add_terms(wanted, &request);
    if (wanted.names.size() != 2) return request;
    request.task = wanted.names[1];
    request.group = wanted.group;
    if (wanted.word == "complete") request.app_word = AppWord::complete_task;
    if (wanted.word == "remove") request.app_word = AppWord::remove_task;
    return request;
}

Sheet as_record(Sheet sheet) {
    for (Column& column : sheet.columns) {
        std::string_view name = column.key;
        if (name.ends_with("_ns")) name.remove_suffix(3);
        if (name != "groups" && name != "task_list") column.title = name;
    }
    return sheet;
}

// Whose is meant where several users have one of that name: one's own.
std::unique_ptr<admin::ApplicationT> found(AdminClient& client, const Wanted& wanted) {
    const std::string& name = wanted.names.front();
    const auto uid = user_of(wanted);
    Applications rows = client.applications(name, uid);
    const auto own = std::stable_partition(
        rows.begin(), rows.end(), [](const auto& row) { return row->uid == geteuid(); });
    if (!uid && own - rows.begin() == 0 && rows.size() > 1) {
        throw Failure(kExitUsage,
                      "several users have an application " + name + ": say which (--user)");
    }
    if (!rows.empty()) return std::move(rows.front());
    throw Failure(kExitNotFound,
                  "there is no application " + name + " of " +
                      (uid ? "user " + user_name(*uid) : "yours") +
                      "; dibs app ls shows those that are");
}

void show(AdminClient& client, const Wanted& wanted, Output& output) {
    const auto application = found(client, wanted);
    const Tasks tasks = client.tasks(application->name, application->uid);
    Applications one;
    Sheet groups = group_sheet(application->groups);
    one.push_back(std::make_unique<admin::ApplicationT>(*application));
    Sheet sheet = application_sheet(one, client.viewpoint());
    add_parts(*application, tasks, &sheet);
    output.show_record(as_record(std::move(sheet)));
    if (output.form() != Form::kTable) return;
    if (!groups.rows.empty()) {
        output.say("");
        output.show_rows(groups);
    }
    if (tasks.empty()) return;
    output.say("");
    output.show_rows(task_sheet(tasks));
}

// Of one that has just been added, and is dead.
std::string why_failed(AdminClient& client,
                       const admin::RequestT& request,
                       const admin::ApplicationT& row) {
    const std::string pool = "pool " + row.pool;
    uint64_t members = 0;
    uint64_t whole = 0;  // of them those that want whole slots
    for (const auto& group : request.app_groups) {
        members += group->members;
        if (group->resource.empty()) whole += group->members;
    }
    const std::string count = std::to_string(members) + (members == 1 ? " member" : " members");
    switch (row.reason) {
        case DIBS_EUNITS:
            for (const auto& of : client.pools(row.pool)) {
                if (of->elastic != nullptr && whole > of->elastic->workers_max) {
                    return count + ", and " + pool + " has " +
                           std::to_string(of->elastic->workers_max) + " workers at most";
                }
                if (of->kind == "counted" && whole > of->slots) {
                    return count + ", and " + pool + " has " + std::to_string(of->slots) +
                           (of->slots == 1 ? " slot" : " slots");
                }
            }
            return count + ", and gang_max of " + pool + " allows fewer";
        case DIBS_ESTATE:
            return pool + " is ordered by account, or dispatched, and takes no applications";
        case DIBS_EDRAINING:
            return pool + " drains, and takes no applications";
        case DIBS_EUNAVAILABLE:
            return "a member wants more of a resource than a slot of " + pool + " has";
        default:
            return dibs_reason_name(row.reason);
    }
}

// What its pool can never serve is added, and has failed at once.
void check_added(AdminClient& client, const admin::RequestT& request) {
    const uint32_t uid = request.uid.value_or(geteuid());
    for (const auto& row : client.applications(request.application, uid)) {
        if (row->state != "failed" && row->state != "rejected") continue;
        throw Failure(kExitLimit,
                      "application " + row->name + " has failed: " +
                          why_failed(client, request, *row) + "; dibs app show " + row->name +
                          " shows it, dibs app remove " + row->name + " frees its name");
    }
}

void change(AdminClient& client, const Wanted& wanted, Output& output) {
    const admin::RequestT request = request_of(wanted);
    const admin::AnswerT answer = client.must(request, "");
    if (wanted.adds()) check_added(client, request);
    Sheet sheet{"dibs.app/1",
                {{"application", "application"}, {"task", "task"}, {"number", ""}, {"did", "did"}}};
    sheet.rows.push_back({Cell::of(request.application),
                          request.task.empty() ? Cell() : Cell::of(request.task),
                          answer.number != 0 ? Cell::of(answer.number) : Cell(),
                          Cell::of(help_of(wanted.word)->did)});
    output.show_record(sheet);
}

constexpr const char* kAppsAbout =
    "Applications are groups of tasks with one life, and gangs of them that run all or none. Adds, "
    "lists, shows and ends them; dibs exec --app runs a command as a task of one. dibs app WHAT "
    "--help says more of each.";

void add_options(Arguments* arguments, Wanted* wanted) {
    arguments->text("-p,--pool", &wanted->pool, "add: the pool that it is of", "POOL");
    arguments->texts("-g,--group",
                     &wanted->groups,
                     "add: a group of its gang, with so many members, each of which wants a slot, "
                     "or so much of one (repeatable)",
                     "NAME:MEMBERS[:RESOURCE=AMOUNT,...]");
    arguments->text("--style",
                    &wanted->style,
                    "add: what the time-out does: soft (not said: that), or hard",
                    "STYLE");
    arguments->duration("-t,--timeout",
                        &wanted->timeout_ns,
                        "add: until when the gang must be whole; 15min if not said");
    arguments->flag("--no-timeout", &wanted->no_timeout, "add: it may take for ever");
    arguments->number(
        "-P,--priority", &wanted->priority, kPriorities, "add, add-task: higher is better");
    arguments->text("--tags", &wanted->tags, "add: a text for who looks at it");
    arguments->text("--in-group", &wanted->group, "add-task: in this group", "NAME");
    arguments->text("-u,--user",
                    &wanted->user,
                    "of this user, by name or uid; another one's are for administrators",
                    "USER");
}

// Of one of the words, where it comes first: options of the other words are known, but not shown.
void hide_others(Arguments* arguments, const Help& help) {
    for (const Help& other : helps()) {
        for (const std::string& option : other.options) {
            if (!help.options.contains(option)) arguments->hide(option);
        }
    }
}

}  // namespace

int run(int argc, char** argv) {
    Wanted wanted;
    const Help* help = argc > 1 ? help_of(argv[1]) : nullptr;
    Arguments arguments(help != nullptr ? "app " + std::string(help->word) : "app",
                        help != nullptr ? help->about : kAppsAbout);
    if (help != nullptr) {
        wanted.word = help->word;
    } else {
        arguments.operand(
            "WHAT", &wanted.word, "ls, show, add, add-task, complete, fail, kill or remove");
    }
    if (help == nullptr || help->word != "ls") {
        arguments.words("NAME",
                        &wanted.names,
                        "of the application; add-task, complete, remove: and of one of its tasks");
    }
    add_options(&arguments, &wanted);
    if (help != nullptr) hide_others(&arguments, *help);
    Output output(arguments);
    const int own = help != nullptr ? 1 : 0;
    if (const auto exit = arguments.parse(argc - own, argv + own)) return *exit;
    (void)output.form();
    check_usage(wanted, arguments);
    const auto uid = user_of(wanted);
    if (!wanted.lists() && wanted.word != "show") (void)request_of(wanted);  // before a broker
    AdminClient client(output.socket());
    if (wanted.lists()) {
        output.show_rows(application_sheet(client.applications({}, uid), client.viewpoint()));
    } else if (wanted.word == "show") {
        show(client, wanted, output);
    } else {
        change(client, wanted, output);
    }
    return output.finish(kExitOk);
}

}  // namespace app

int run_app(int argc, char** argv) {
    return app::run(argc, argv);
}

}  // namespace dibs::ctl
