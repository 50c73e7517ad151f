// broker/ctl/top/facts.cpp -- asks the broker for what `dibs top` shows.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/facts.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "broker/ctl/admin/reason.hpp"
#include "broker/ctl/clock.hpp"
#include "broker/ctl/output/sheet.hpp"

namespace dibs::ctl::top {

namespace {

// The first kRowsMost rows, the oldest first. `rows`: where an answer has them.
template <class Row>
std::vector<std::unique_ptr<Row>> some(AdminClient& client,
                                       admin::Ask ask,
                                       std::vector<std::unique_ptr<Row>> admin::AnswerT::*rows,
                                       bool* cut) {
    std::vector<std::unique_ptr<Row>> all;
    admin::RequestT request;
    request.ask = ask;
    for (;;) {
        admin::AnswerT answer = client.must(request, "");
        std::move((answer.*rows).begin(), (answer.*rows).end(), std::back_inserter(all));
        if (!answer.more || answer.cursor == request.cursor) break;
        request.cursor = answer.cursor;
        if (all.size() < kRowsMost) continue;
        *cut = true;
        break;
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& left, const auto& right) {
        return std::pair(~left->age_ns, left->number) < std::pair(~right->age_ns, right->number);
    });
    return all;
}

std::string reason_of(const admin::ExplanationT& told) {
    const admin::WaitFacts& facts = *told.facts;
    const auto reason = static_cast<core::WaitReason>(facts.reason());
    std::string text(wait_word(static_cast<core::WaitReason>(facts.obstacle())));
    if (reason == core::WaitReason::kBehind) text = "behind, " + text;
    if (facts.holder_number() != 0) {
        text += " by " + number_text(Letter::kLease, facts.holder_number());
    }
    return text;
}

// Of a claim that has been granted meanwhile: nothing.
void ask_reasons(AdminClient& client, Facts* facts) {
    const size_t count = std::min(facts->claims.size(), kReasonsMost);
    for (size_t i = 0; i < count; ++i) {
        const admin::ClaimT& claim = *facts->claims[i];
        if (!claim.full) continue;
        admin::RequestT request;
        request.ask = admin::Ask::explain;
        request.id = claim.id;
        const admin::AnswerT answer = client.ask(request);
        if (answer.code != admin::Code::ok || answer.explanation == nullptr) continue;
        facts->reasons[claim.number] = reason_of(*answer.explanation);
    }
}

void count_grants(const Facts& before, Facts* facts) {
    const auto span_ns = static_cast<double>(facts->taken_ns - before.taken_ns);
    for (const auto& pool : facts->pools) {
        const auto was = std::find_if(before.pools.begin(),
                                      before.pools.end(),
                                      [&](const auto& one) { return one->name == pool->name; });
        const bool comparable =
            was != before.pools.end() && (*was)->granted <= pool->granted && span_ns > 0;
        if (!comparable) continue;
        const auto granted = static_cast<double>(pool->granted - (*was)->granted);
        facts->granted_per_second[pool->name] = granted * 1e9 / span_ns;
    }
}

}  // namespace

Facts look(AdminClient& client, const Facts* before) {
    Facts facts;
    facts.socket = client.path();
    facts.from = client.viewpoint();
    facts.taken_ns = monotonic_ns();
    admin::RequestT request;
    request.ask = admin::Ask::status;
    facts.status = std::move(client.must(request, "").status);
    if (facts.status == nullptr) facts.status = std::make_unique<admin::StatusT>();
    facts.pools = client.pools("");
    facts.accounts = client.accounts();
    std::erase_if(facts.accounts, [](const auto& account) { return !account->configured; });
    facts.claims = some(client, admin::Ask::claims, &admin::AnswerT::claims, &facts.cut);
    facts.leases = some(client, admin::Ask::leases, &admin::AnswerT::leases, &facts.cut);
    ask_reasons(client, &facts);
    if (before != nullptr) count_grants(*before, &facts);
    return facts;
}

}  // namespace dibs::ctl::top
