// broker/ctl/admin/explain.cpp -- `dibs explain`: why a claim waits, and for whom.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/name.hpp"
#include "broker/ctl/admin/reason.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

Sheet explanation_sheet(const admin::ExplanationT& told) {
    const admin::WaitFacts& facts = *told.facts;
    const bool held = !told.holder_account.empty();
    const bool known = facts.holder_number() != 0;
    Sheet sheet{"dibs.explain/1",
                {{"claim", "claim"},
                 {"pool", "pool"},
                 {"account", "account"},
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
                 {"left_ns", "left"},
                 {"holder", "holder"},
                 {"holder_account", "holder's account"},
                 {"holder_pid", "holder's pid"},
                 {"holder_age_ns", "held"},
                 {"class", "class"},
                 {"class_reason", ""},
                 {"better", "of a better class"},
                 {"fitting", "slots with its labels"},
                 {"label", "label"},
                 {"limit", "limit"},
                 {"limited", "held of it"},
                 {"preempt", ""},
                 {"sentence", ""}}};
    const auto why_class = static_cast<core::ClassReason>(facts.class_reason());
    const bool classes = why_class != core::ClassReason::kNone;
    const bool by_label =
        static_cast<core::WaitReason>(facts.obstacle()) == core::WaitReason::kLabelLimit;
    const bool limited = by_label || why_class == core::ClassReason::kFanout;
    const uint32_t limit = by_label ? facts.label_limit() : facts.fanout_max();
    const uint32_t used = by_label ? facts.label_held() : facts.fanout_held();
    const auto of_class = [&](const Cell& cell) { return classes ? cell : Cell(); };
    sheet.rows.push_back(
        {Cell::numbered(Letter::kClaim, facts.number()),
         Cell::of(told.pool),
         Cell::of(told.account),
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
         Cell::duration(facts.left_ns()),
         known ? Cell::numbered(Letter::kLease, facts.holder_number()) : Cell(),
         held ? Cell::of(told.holder_account) : Cell(),
         known ? Cell::of(facts.holder_pid()) : Cell(),
         held ? Cell::duration(facts.holder_age_ns()) : Cell(),
         of_class(Cell::of(class_name(facts.at_class()))),
         of_class(Cell::of(class_word(why_class))),
         of_class(Cell::of(facts.better())),
         of_class(Cell::of(facts.fitting())),
         told.label.empty() ? Cell() : Cell::of(told.label),
         limited ? Cell::of(limit) : Cell(),
         limited ? Cell::of(used) : Cell(),
         of_class(Cell::of(preempt_word(static_cast<core::PreemptReason>(facts.preempt())))),
         Cell::of(wait_sentence(told))});
    return sheet;
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
    request.id = find_claim(client, name)->id;
    const admin::AnswerT answer = client.must(request, "claim " + shown(name));
    if (answer.explanation == nullptr) {
        throw Failure(kExitFailed, "the broker's answer has no explanation");
    }
    output.say(wait_sentence(*answer.explanation));
    output.say("");
    output.show_record(explanation_sheet(*answer.explanation));
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
