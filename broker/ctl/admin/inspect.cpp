// broker/ctl/admin/inspect.cpp -- `dibs inspect`: shows one lease, also one that has ended lately.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/listing.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/journal/decision_text.hpp"

namespace dibs::ctl {

namespace {

Cell why_ended(const admin::LeaseT& lease) {
    if (!lease.ended) return {};
    const auto reason = static_cast<shm::Reason>(lease.reason);
    if (reason == shm::Reason::kOk) return Cell::of("given back");
    if (reason == shm::Reason::kHolderGone) {
        return Cell::of(lease.killed ? "killed: strict expiry" : "its holder's process has ended");
    }
    std::string word(reason_word(reason));
    std::replace(word.begin(), word.end(), '_', ' ');
    return Cell::of(word);
}

Sheet inspection_sheet(const admin::LeaseT& lease, const Viewpoint& from) {
    const auto ago = [&](uint64_t ns) {
        return Cell::instant(from.wall_ns - std::min(from.wall_ns, ns));
    };
    const bool full = lease.full;
    // Of one that has ended, its ages go on growing: a table shows how long it was held.
    const bool was_held = lease.ended && full;
    const uint64_t held_ns = lease.age_ns - std::min(lease.age_ns, lease.ended_ns);
    const auto seen = [&](Cell cell) { return full ? std::move(cell) : Cell(); };
    const auto duration_if = [&](bool there, uint64_t ns) {
        return there ? Cell::duration(ns) : Cell();
    };
    Sheet sheet{"dibs.inspect/1",
                {{"lease", "lease"},
                 {"id", "id"},
                 {"pool", "pool"},
                 {"state", "state"},
                 {"slots", "slots"},
                 {"units", "units"},
                 {"resources", "resources"},
                 {"account", "account"},
                 {"user", "user"},
                 {"pid", "pid"},
                 {"meta", "meta"},
                 {"application", "application"},
                 {"task", "task"},
                 {"group", "group"},
                 {"fence", "fence"},
                 {"created", "created"},
                 {"age_ns", was_held ? "" : "age"},
                 {"held_ns", was_held ? "held" : ""},
                 {"interval_ns", "interval"},
                 {"kept_ns", was_held ? "" : "kept alive, ago"},
                 {"left_ns", "left"},
                 {"expired_ns", "expired for"},
                 {"ended", "ended"},
                 {"ended_ns", "ended, ago"},
                 {"reason", "why"}}};
    sheet.rows.push_back(
        {seen(Cell::numbered(Letter::kLease, lease.number)),
         seen(Cell::identifier(Letter::kLease, lease.id)),
         Cell::of(lease.pool),
         seen(Cell::of(lease.state)),
         seen(Cell::of(std::vector<uint64_t>(lease.slots.begin(), lease.slots.end()))),
         seen(Cell::of(lease.units)),
         seen(lease.resources.empty() ? Cell()
                                      : Cell::of(amounts_text(lease.resources, lease.amounts))),
         Cell::of(lease.account),
         seen(Cell::of(user_name(lease.uid))),
         seen(Cell::of(lease.pid)),
         seen(lease.meta.empty() ? Cell() : Cell::of(lease.meta)),
         seen(lease.application.empty() ? Cell() : Cell::of(lease.application)),
         seen(lease.task.empty() ? Cell() : Cell::of(lease.task)),
         seen(lease.group.empty() ? Cell() : Cell::of(lease.group)),
         seen(Cell::of(lease.fence)),
         ago(lease.age_ns),
         Cell::duration(lease.age_ns),
         duration_if(full || !lease.ended, held_ns),
         seen(duration_if(lease.interval_ns != 0, lease.interval_ns)),
         seen(Cell::duration(lease.kept_ns)),
         seen(duration_if(!lease.ended, lease.left_ns)),
         seen(duration_if(lease.expired_ns != 0, lease.expired_ns)),
         Cell::of(lease.ended),
         seen(duration_if(lease.ended, lease.ended_ns)),
         seen(why_ended(lease))});
    return sheet;
}

// Of another user's lease the broker tells pool, account and age alone. Null: it has ended long
// ago, or never was.
std::unique_ptr<admin::LeaseT> look_for(AdminClient& client, const Name& name) {
    admin::RequestT request;
    request.ask = admin::Ask::inspect;
    (name.by_id ? request.id : request.number) = name.number;
    for (bool more = name.number != 0; more;) {
        admin::AnswerT answer = client.ask(request);
        if (!answer.leases.empty()) return std::move(answer.leases.front());
        more = answer.more && answer.cursor != request.cursor;
        request.cursor = answer.cursor;
    }
    return nullptr;
}

}  // namespace

int run_inspect(int argc, char** argv) {
    std::string text;
    Arguments arguments("inspect",
                        "Shows one lease: its holder, its resources, when it was granted and kept "
                        "alive, and of one that has ended lately when, why, and how long it was "
                        "held.");
    arguments.operand("LEASE", &text, "the lease, such as l12, or POOL/l12 if it is of that pool");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    Name name = parse_lease(text, "inspect");
    // S3.23: looked for in all pools, so that another one can be named.
    const std::string pool = std::exchange(name.pool, "");
    AdminClient client(output.socket());
    auto lease = look_for(client, name);
    if (lease == nullptr) lease = find_lease(client, name);
    if (!pool.empty() && lease->pool != pool) {
        throw Failure(kExitNotFound,
                      "there is no lease " + shown(name) + " of pool " + pool + ": it is of pool " +
                          lease->pool);
    }
    output.show_record(inspection_sheet(*lease, client.viewpoint()));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
