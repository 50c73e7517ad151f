// broker/ctl/admin/service.cpp -- `dibs reload`, `dibs stop`, `dibs upgrade`.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

namespace {

constexpr size_t kNamed = 8;  // leases that are listed before the rest are counted

// Refuses other users, before any request that is answered late.
void require_administrator(const AdminClient& client) {
    if (client.welcome().is_admin == 0) throw client.denied({});
}

admin::AnswerT give(AdminClient& client, admin::Ask ask) {
    admin::RequestT request;
    request.ask = ask;
    admin::AnswerT answer = client.ask(request);
    if (answer.code == admin::Code::ok || answer.code == admin::Code::refused) return answer;
    return client.must(request, {});
}

std::string named(const std::vector<std::unique_ptr<admin::LeaseT>>& leases) {
    std::string text;
    for (size_t i = 0; i < leases.size() && i < kNamed; ++i) {
        const admin::LeaseT& lease = *leases[i];
        text += (i == 0 ? "" : ", ") + lease.pool + " l" + std::to_string(lease.number) +
                " (process " + std::to_string(lease.pid) + ")";
    }
    if (leases.size() > kNamed) {
        text += " and " + std::to_string(leases.size() - kNamed) + " more";
    }
    return text;
}

// The broker's answer reports its end, and is its last message.
void stop_drained(AdminClient& first, uint64_t within_ns) {
    const auto leases = first.leases({}, 0);
    if (!leases.empty()) {
        talk("dibs: waiting for the end of what is held: " + harmless(named(leases)));
    }
    AdminClient client(first.path(), std::numeric_limits<int64_t>::max());
    admin::RequestT request;
    request.ask = admin::Ask::stop;
    request.interval_ns = within_ns;
    (void)client.must(request, {});
}

// What is held and waits is the broker's to know: whatever is asked before may have changed since.
void stop_unused(AdminClient& first) {
    AdminClient client(first.path(), std::numeric_limits<int64_t>::max());
    const admin::AnswerT answer = give(client, admin::Ask::stop_unused);
    if (answer.code == admin::Code::ok) return;
    const auto leases = first.leases({}, 0);
    throw Failure(kExitFailed,
                  "the broker goes on, since " +
                      (answer.names.empty() ? "it is used" : answer.names.front()) +
                      (leases.empty() ? "" : ": " + named(leases)) +
                      "; --drain rejects what waits, takes no new claims, and waits for the end of "
                      "the leases");
}

struct Upgraded {
    std::string version_before;
    shm::AdminWelcome next;
    std::string not_upgraded;  // why that is not the installed program, if it is not
};

Upgraded upgrade(const std::string& socket) {
    AdminClient client(socket);
    require_administrator(client);
    const admin::AnswerT answer = give(client, admin::Ask::upgrade);
    if (answer.code == admin::Code::refused) {
        throw Failure(kExitFailed, answer.names.empty() ? "refused" : answer.names.front());
    }
    Upgraded upgraded{client.broker_version(), {}, {}};
    const auto ask_why_not = [&](AdminClient& next) {
        admin::RequestT request;
        request.ask = admin::Ask::status;
        const admin::AnswerT about = next.must(request, {});
        upgraded.not_upgraded = about.status != nullptr ? about.status->not_upgraded : "";
    };
    upgraded.next = await_successor(client.path(), client.welcome().epoch, ask_why_not);
    return upgraded;
}

// One that ends before it answers has made way for another order, or died. Its successor need not
// be the program that is installed now, so it is asked as well.
Upgraded upgrade_whoever_serves(const std::string& socket) {
    constexpr int kTries = 20;
    for (int i = 1;; ++i) {
        try {
            return upgrade(socket);
        } catch (const Gone&) {
            if (i == kTries) throw;
            talk(
                "dibs upgrade: another upgrade came first, or the broker died: asking the next "
                "one");
        }
    }
}

}  // namespace

int run_reload(int argc, char** argv) {
    Arguments arguments("reload",
                        "Has the broker read its configuration again, as SIGHUP does, and says "
                        "what of it does not change, or which mistakes keep it as it was.");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    AdminClient client(output.socket());
    require_administrator(client);
    const admin::AnswerT answer = give(client, admin::Ask::reload);
    const bool done = answer.code == admin::Code::ok;
    Sheet sheet{"dibs.reload/1", {{"reloaded", "RELOADED"}, {"said", "SAID"}}};
    std::string all;
    for (const std::string& line : answer.names) {
        talk("dibs reload: " + harmless(line));
        all += (all.empty() ? "" : "\n") + line;
    }
    sheet.rows.push_back({Cell::of(done), all.empty() ? Cell() : Cell::of(all)});
    output.say(done ? "The configuration has been read again."
                    : "The configuration stays as it was.");
    if (output.form() != Form::kTable) output.show_record(sheet);
    return output.finish(done ? kExitOk : kExitFailed);
}

int run_stop(int argc, char** argv) {
    Arguments arguments(
        "stop",
        "Ends the broker for good: no new sessions, claims that wait are "
        "rejected, and it ends when the last lease has. Without --drain it is "
        "refused while leases are held or claims wait. A restart that keeps them is `systemctl "
        "restart dibsd`, or dibs upgrade.");
    Output output(arguments);
    bool drain = false;
    int64_t within_ns = 0;
    arguments.flag("--drain", &drain, "wait for the leases that are held");
    arguments.duration("--within", &within_ns, "cut those that are left then; default: never");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (within_ns != 0 && !drain) {
        throw Failure(kExitUsage, "--within bounds --drain, which is not there");
    }
    AdminClient client(output.socket());
    require_administrator(client);
    if (drain) {
        stop_drained(client, within_ns != 0 ? static_cast<uint64_t>(within_ns) : shm::kNever);
    } else {
        stop_unused(client);
    }
    Sheet sheet{"dibs.stop/1", {{"stopped", "STOPPED"}}};
    sheet.rows.push_back({Cell::of(true)});
    output.say("The broker has stopped.");
    if (output.form() != Form::kTable) output.show_record(sheet);
    return output.finish(kExitOk);
}

int run_upgrade(int argc, char** argv) {
    Arguments arguments("upgrade",
                        "Has the next broker take over, which is the program that is installed "
                        "now. Sessions, waiting claims and leases go on: clients see a pause of "
                        "some milliseconds.");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    const auto [before, next, not_upgraded] = upgrade_whoever_serves(output.socket());
    const std::string version(next.version, strnlen(next.version, sizeof(next.version)));
    if (!not_upgraded.empty()) {
        throw Failure(kExitFailed,
                      not_upgraded + ": version " + version + " serves in its place, epoch " +
                          std::to_string(next.epoch) + "; the log of dibsd may say more");
    }
    Sheet sheet{"dibs.upgrade/1",
                {{"version_before", "BEFORE"}, {"version", "VERSION"}, {"epoch", "EPOCH"}}};
    sheet.rows.push_back({Cell::of(before), Cell::of(version), Cell::of(next.epoch)});
    output.say("The next broker serves: version " + version + " (before: " + before + "), epoch " +
               std::to_string(next.epoch) + ".");
    if (output.form() != Form::kTable) output.show_record(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
