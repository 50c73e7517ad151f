// broker/ctl/top/action.cpp -- explains, drains or releases the selected row.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/action.hpp"

#include <algorithm>

#include "broker/ctl/admin/reason.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/sheet.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl::top {

namespace {

using Kind = Action::Kind;

template <class Rows>
auto row_of(const Rows& rows, Letter letter, const std::string& name) -> decltype(rows[0].get()) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto& row) {
        return row->full && number_text(letter, row->number) == name;
    });
    return found == rows.end() ? nullptr : found->get();
}

Action nothing(const std::string& why) {
    return {Kind::kNone, "", 0, "", why};
}

Action release(const Facts& facts, const RowName& row) {
    const admin::LeaseT* lease =
        row.part == Part::kLeases ? row_of(facts.leases, Letter::kLease, row.name) : nullptr;
    if (lease == nullptr) return nothing("r releases a lease: choose one");
    const std::string command = facts.from.processes ? command_name(lease->pid) : "";
    return {Kind::kRelease,
            lease->pool,
            lease->id,
            row.name,
            "Release lease " + row.name + " of pool " + lease->pool + ", held by " +
                process_text(lease->pid, command, lease->uid) + " for " +
                duration_text(lease->age_ns) + "? y or n"};
}

Action drain(const Facts& facts, const RowName& row) {
    const auto pool = std::find_if(facts.pools.begin(), facts.pools.end(), [&](const auto& one) {
        return row.part == Part::kPools && one->name == row.name;
    });
    if (pool == facts.pools.end()) return nothing("d drains a pool: choose one");
    if ((*pool)->draining) return {Kind::kUndrain, row.name, 0, "", ""};
    return {Kind::kDrain,
            row.name,
            0,
            "",
            "Drain pool " + row.name + "? Its " + std::to_string((*pool)->waiting) +
                " waiting claims are rejected, leases run on. y or n"};
}

Action explain(const Facts& facts, const RowName& row) {
    const admin::ClaimT* claim =
        row.part == Part::kClaims ? row_of(facts.claims, Letter::kClaim, row.name) : nullptr;
    if (claim == nullptr) return nothing("e explains why a claim waits: choose one");
    return {Kind::kExplain, claim->pool, claim->id, row.name, ""};
}

std::string explained(AdminClient& client, const Action& action, admin::AnswerT answer) {
    if (answer.explanation == nullptr) return "claim " + action.name + " does not wait any more";
    Explained told{std::move(*answer.explanation)};
    if (client.viewpoint().processes) {
        told.holder_command = command_name(told.facts->holder_pid());
    }
    return action.name + ": " + wait_sentence(told);
}

}  // namespace

Action action_of(int key, const Facts& facts, const RowName& row) {
    switch (key) {
        case 'r':
            return release(facts, row);
        case 'd':
            return drain(facts, row);
        default:
            return explain(facts, row);
    }
}

std::string act(AdminClient& client, const Action& action) {
    admin::RequestT request;
    request.id = action.id;
    request.pool = action.id == 0 ? action.pool : "";
    std::string what = "pool " + action.pool;
    std::string done = what + " takes claims again";
    switch (action.kind) {
        case Kind::kExplain:
            request.ask = admin::Ask::explain;
            what = "claim " + action.name;
            break;
        case Kind::kRelease:
            request.ask = admin::Ask::release;
            what = "lease " + action.name;
            done = what + " is released";
            break;
        case Kind::kDrain:
            request.ask = admin::Ask::drain;
            done = what + " drains: d again ends that";
            break;
        case Kind::kUndrain:
            request.ask = admin::Ask::undrain;
            break;
        case Kind::kNone:
            return action.question;
    }
    try {
        admin::AnswerT answer = client.must(request, what);
        if (action.kind == Kind::kExplain) return explained(client, action, std::move(answer));
        return done;
    } catch (const Failure& failure) {
        if (failure.exit_code() == kExitUnreachable) throw;
        return failure.what();
    }
}

}  // namespace dibs::ctl::top
