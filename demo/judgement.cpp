// demo/judgement.cpp -- judges a run, one function for each fact.
// SPDX-License-Identifier: Apache-2.0
#include "demo/judgement.hpp"

#include <string>

namespace dibs::ctl::demo {

namespace {

std::string of(uint64_t part, uint64_t whole) {
    return std::to_string(part) + " of " + std::to_string(whole);
}

// Details stand behind a fact only where it fails.
std::string unless(bool holds, const std::string& detail) {
    return holds || detail.empty() ? std::string{} : " (" + detail + ")";
}

void judge_grants(const Evidence& evidence, Facts* facts) {
    const PlayResult& result = evidence.result;
    const bool all = result.granted == evidence.valid_rows && result.failure.empty();
    facts->check(all,
                 "every valid row granted: " + of(result.granted, evidence.valid_rows) +
                     unless(all, result.first_bad));
    const bool back = result.leases_ended == result.granted && result.bad_ends == 0;
    facts->check(back,
                 "every lease ended as it should: " + of(result.leases_ended, result.granted) +
                     unless(back, result.first_bad));
}

void judge_account(const Evidence& evidence, Facts* facts) {
    const PlayResult& result = evidence.result;
    const uint64_t ended =
        result.granted + result.expired + result.cancelled + result.rejected + result.broker_lost;
    facts->check(ended == result.submitted && result.broker_lost == 0 && result.ended_twice == 0,
                 "every claim accounted for once: granted " + std::to_string(result.granted) +
                     " + expired " + std::to_string(result.expired) + " + cancelled " +
                     std::to_string(result.cancelled) + " + rejected " +
                     std::to_string(result.rejected) + " = " + of(ended, result.submitted) +
                     " submitted, " + std::to_string(result.ended_twice) + " ended twice, " +
                     std::to_string(result.broker_lost) + " lost with the broker");
    if (!evidence.totals) {
        facts->skip("the broker counts the same", "its counters could not be read");
        facts->skip("no wake-up was lost", "the broker's counters could not be read");
        return;
    }
    const dibs_totals& totals = *evidence.totals;
    facts->check(totals.accepted == result.submitted && totals.granted == result.granted &&
                     totals.expired == result.expired && totals.cancelled == result.cancelled,
                 "the broker counts the same: accepted " + std::to_string(totals.accepted) +
                     ", granted " + std::to_string(totals.granted) + ", expired " +
                     std::to_string(totals.expired) + ", cancelled " +
                     std::to_string(totals.cancelled));
    facts->check(totals.net_found_work == 0,
                 "no wake-up was lost: the safety net found work " +
                     std::to_string(totals.net_found_work) + " times");
}

void judge_witness(const Evidence& evidence, Facts* facts) {
    facts->check(evidence.witness_faults == 0 && evidence.witness_uses > 0,
                 "no slot held twice: " + std::to_string(evidence.witness_uses) +
                     " uses seen by the witness, " + std::to_string(evidence.witness_faults) +
                     " in conflict");
    const uint64_t units = evidence.result.units_granted;
    facts->check(evidence.witness_uses >= units && evidence.witness_in_use == 0,
                 "every granted slot was used and given back: " + of(evidence.witness_uses, units) +
                     ", " + std::to_string(evidence.witness_in_use) + " still in use");
}

void judge_conservation(const Evidence& evidence, Facts* facts) {
    const Sampler& sampler = evidence.sampler;
    if (sampler.samples() == 0) {
        facts->skip("no slot lost or counted twice", "no picture of the counters was had");
        return;
    }
    // A picture that could not be read is no wrong one: the broker was put aside while it
    // published.
    std::string text = "no slot lost or counted twice: " + std::to_string(sampler.broken()) +
                       " of " + std::to_string(sampler.samples()) + " pictures do not add up";
    if (sampler.unread() > 0) {
        text += ", " + std::to_string(sampler.unread()) + " more were being written";
    }
    const bool holds = sampler.broken() == 0;
    facts->check(holds, text + unless(holds, sampler.first_broken()));
}

void judge_departure(const Evidence& evidence, Facts* facts) {
    const Departure& departure = evidence.departure;
    const bool orderly = departure.broker_status == 0 && departure.workers_failed == 0;
    const std::string broker =
        departure.broker_status ? shown_status(*departure.broker_status) : "had to be killed";
    facts->check(orderly,
                 "broker and workers end when told to: broker " + broker + ", " +
                     std::to_string(departure.workers_failed) + " workers otherwise" +
                     unless(orderly, departure.first_failure));
    facts->check(departure.children_left == 0 && departure.folder_gone,
                 "nothing left behind: " + std::to_string(departure.children_left) +
                     " processes, temporary folder " + (departure.folder_gone ? "gone" : "left"));
}

}  // namespace

Facts judge(const Evidence& evidence) {
    Facts facts;
    judge_grants(evidence, &facts);
    judge_account(evidence, &facts);
    judge_witness(evidence, &facts);
    judge_conservation(evidence, &facts);
    judge_departure(evidence, &facts);
    return facts;
}

}  // namespace dibs::ctl::demo
