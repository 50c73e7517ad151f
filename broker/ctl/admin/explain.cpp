// broker/ctl/admin/explain.cpp -- `dibs explain`: says why a claim waits, and for whom.
// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>

#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/admin/reason.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/output/who.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/session/control_group.hpp"
#include "shm/operation.hpp"

namespace dibs::ctl {

namespace {

Sheet explanation_sheet(const Explained& told, const admin::ClaimT& claim, const Viewpoint& from) {
    const admin::WaitFacts& facts = *told.facts;
    const bool held = !told.holder_account.empty();
    const bool known = facts.holder_number() != 0;
    const bool named =
        held && facts.holder_uid() != shm::kNoRow && facts.holder_uid() != shm::kHiddenUid;
    Sheet sheet{"dibs.explain/1",
                {{"claim", "claim"},
                 {"pool", "pool"},
                 {"account", "account"},
                 {"user", "user"},
                 {"pid", "pid"},
                 {"command", "command"},
                 {"reason", "reason"},
                 {"obstacle", ""},
                 {"position", "position"},
                 {"waiting", "of"},
                 {"units", "units"},
                 {"confirmed", ""},
                 {"idle", "idle slots"},
                 {"slots", "slots"},
                 {"leased", ""},
                 {"waited_ns", "waits"},
                 {"since", "since"},
                 {"left_ns", "left"},
                 {"holder", "holder"},
                 {"holder_account", "holder's account"},
                 {"holder_user", "holder's user"},
                 {"holder_pid", "holder's pid"},
                 {"holder_command", "holder's command"},
                 {"holder_age_ns", "held"},
                 {"holder_since", "held since"},
                 {"class", "class"},
                 {"class_reason", ""},
                 {"better", "of a better class"},
                 {"fitting", "slots with its labels"},
                 {"label", "label"},
                 {"resource", "resource"},
                 {"limit", "limit"},
                 {"limited", "held of it"},
                 {"preempt", ""},
                 {"sentence", ""}}};
    const auto why_class = static_cast<core::ClassReason>(facts.class_reason());
    const bool classes = why_class != core::ClassReason::kNone;
    const auto obstacle = static_cast<core::WaitReason>(facts.obstacle());
    const bool by_label =
        obstacle == core::WaitReason::kLabelLimit || obstacle == core::WaitReason::kOverLimit;
    const bool limited = by_label || why_class == core::ClassReason::kFanout;
    const uint32_t limit = by_label ? facts.label_limit() : facts.fanout_max();
    const uint32_t used = by_label ? facts.label_held() : facts.fanout_held();
    const auto of_class = [&](const Cell& cell) { return classes ? cell : Cell(); };
    const auto since = [&](uint64_t age_ns) {
        return Cell::instant(from.wall_ns - std::min(from.wall_ns, age_ns));
    };
    const auto command = [&](uint32_t pid) {
        const std::string name = from.processes ? command_name(pid) : "";
        return name.empty() ? Cell() : Cell::of(name);
    };
    sheet.rows.push_back(
        {Cell::numbered(Letter::kClaim, facts.number()),
         Cell::of(told.pool),
         Cell::of(told.account),
         Cell::of(user_name(claim.uid)),
         claim.pid != 0 ? Cell::of(claim.pid) : Cell(),
         claim.pid != 0 ? command(claim.pid) : Cell(),
         Cell::of(wait_word(static_cast<core::WaitReason>(facts.reason()))),
         Cell::of(wait_word(static_cast<core::WaitReason>(facts.obstacle()))),
         facts.position() != 0 ? Cell::of(facts.position()) : Cell(),
         Cell::of(facts.waiting()),
         Cell::of(facts.units()),
         Cell::of(facts.confirmed()),
         Cell::of(facts.idle()),
         Cell::of(facts.slots()),
         Cell::of(facts.leases()),
         Cell::duration(facts.waited_ns()),
         since(facts.waited_ns()),
         Cell::duration(facts.left_ns()),
         known ? Cell::numbered(Letter::kLease, facts.holder_number()) : Cell(),
         held ? Cell::of(told.holder_account) : Cell(),
         named ? Cell::of(user_name(facts.holder_uid())) : Cell(),
         known ? Cell::of(facts.holder_pid()) : Cell(),
         told.holder_command.empty() ? Cell() : Cell::of(told.holder_command),
         held ? Cell::duration(facts.holder_age_ns()) : Cell(),
         held ? since(facts.holder_age_ns()) : Cell(),
         of_class(Cell::of(class_name(facts.at_class()))),
         of_class(Cell::of(class_word(why_class))),
         of_class(Cell::of(facts.better())),
         of_class(Cell::of(facts.fitting())),
         told.label.empty() ? Cell() : Cell::of(told.label),
         told.resource.empty() ? Cell() : Cell::of(told.resource),
         limited ? Cell::of(limit) : Cell(),
         limited ? Cell::of(used) : Cell(),
         of_class(Cell::of(preempt_word(static_cast<core::PreemptReason>(facts.preempt())))),
         Cell::of(wait_sentence(told))});
    return sheet;
}

std::vector<LeftProcess> processes_left(const std::string& folder) {
    constexpr size_t kMost = 1000;
    std::vector<LeftProcess> left;
    for (const uint32_t pid : processes_of_group(open_group(folder), kMost).pids) {
        struct stat owner = {};
        if (stat(("/proc/" + std::to_string(pid)).c_str(), &owner) != 0) continue;
        left.push_back({pid, process_text(pid, command_name(pid), owner.st_uid)});
    }
    return left;
}

}  // namespace

int run_explain(int argc, char** argv) {
    std::string id;
    Arguments arguments("explain",
                        "Says why a claim waits: its place, what stands in its way, who holds what "
                        "it waits for and for how long, and what would have to happen.");
    arguments.operand("CLAIM", &id, "the claim, such as c12: dibs ls claims shows them");
    Output output(arguments);
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    (void)output.form();
    const Name name = parse_claim(id, "explain");
    AdminClient client(output.socket());
    admin::RequestT request;
    request.ask = admin::Ask::explain;
    const auto claim = find_claim(client, name);
    request.id = claim->id;
    admin::AnswerT answer = client.must(request, "claim " + shown(name));
    if (answer.explanation == nullptr) {
        throw Failure(kExitFailed, "the broker's answer has no explanation");
    }
    const Viewpoint from = client.viewpoint();
    Explained told{std::move(*answer.explanation)};
    if (from.processes) told.holder_command = command_name(told.facts->holder_pid());
    if (from.processes && !told.holder_tree.empty()) told.left = processes_left(told.holder_tree);
    output.say(wait_sentence(told));
    output.say("");
    output.show_record(explanation_sheet(told, *claim, from));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
