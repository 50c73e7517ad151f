// broker/journal/scenario.cpp -- passes commands to the replayer and expectations to comparison.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/scenario.hpp"

#include <string>

#include "broker/journal/expectation.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/offers_text.hpp"
#include "broker/journal/replayer.hpp"
#include "broker/journal/state_text.hpp"

namespace dibs::ctl {
namespace {

std::string text(const flatbuffers::String* string) {
    return string == nullptr ? std::string() : string->str();
}

bool is_dispatched(const core::Core& core, const std::string& pool) {
    const uint32_t row = core.find_pool(pool);
    return row != shm::kNoRow && core::Look::is_dispatched(core, row);
}

class Scenario {
  public:
    Scenario(JournalReader& journal, uint64_t memory_max)
        : journal_(journal), replayer_(limits_of(journal, memory_max), memory_max) {}

    void run() {
        while (const journal::Line* line = journal_.next()) {
            if (is_expectation(*line)) {
                expect(*line);
            } else {
                command(*line);
            }
        }
        replayer_.finish();
        expectations_.settle();
        if (expectations_.held() == 0) throw JournalError("the scenario expects nothing");
    }
    [[nodiscard]] uint64_t held() const { return expectations_.held(); }

  private:
    void command(const journal::Line& line) {
        if (!replayer_.turn_open()) expectations_.settle();
        replayer_.apply(line);
        for (std::string& decision : replayer_.take_decisions()) {
            expectations_.decided(std::move(decision));
        }
        if (replayer_.turn_open()) return;
        for (const std::string& broken : replayer_.core().check_all()) {
            throw JournalError("an invariant is broken after this turn: " + broken);
        }
    }

    void expect(const journal::Line& line);
    void expect_row(const char* word, const std::string& row) {
        expectations_.expect_row(journal_.json(), word, row);
    }

    JournalReader& journal_;
    Replayer replayer_;
    Expectations expectations_;
};

void Scenario::expect(const journal::Line& line) {
    const core::Core& core = replayer_.core();
    const NameMap& map = replayer_.name_map();
    if (line.expect() != nullptr) {
        expectations_.expect_decision(journal_.json());
    } else if (line.expect_none() != nullptr) {
        const journal::DecisionKind kind = line.expect_none()->kind();
        const bool any = kind == journal::DecisionKind::any;
        expectations_.expect_none(any ? "" : journal::EnumNameDecisionKind(kind));
    } else if (line.expect_rest() != nullptr) {
        expectations_.expect_rest();
    } else if (line.expect_broker() != nullptr) {
        expect_row("expect_broker", broker_text(core));
    } else if (const auto* pool = line.expect_pool(); pool != nullptr) {
        expect_row("expect_pool", pool_text(core, map, pool->pool()->str()));
    } else if (const auto* slot = line.expect_slot(); slot != nullptr) {
        expect_row("expect_slot", slot_text(core, map, text(slot->pool()), slot->slot()->str()));
    } else if (const auto* claim = line.expect_claim(); claim != nullptr) {
        const bool is_entry = claim->pool() != nullptr && is_dispatched(core, claim->pool()->str());
        expect_row("expect_claim",
                   is_entry ? entry_text(core, map, claim->pool()->str(), claim->claim()->str())
                            : claim_text(core, map, claim->claim()->str(), text(claim->pool())));
    } else if (const auto* lease = line.expect_lease(); lease != nullptr) {
        expect_row("expect_lease",
                   lease_text(core, map, lease->claim()->str(), text(lease->pool())));
    } else if (const auto* session = line.expect_session(); session != nullptr) {
        expect_row("expect_session", session_text(core, map, session->session()->str()));
    } else if (const auto* account = line.expect_account(); account != nullptr) {
        expect_row("expect_account", account_text(core, account->account()->str()));
    } else if (const auto* worker = line.expect_worker(); worker != nullptr) {
        expect_row("expect_worker",
                   worker_text(core, map, worker->pool()->str(), worker->worker()->str()));
    } else if (const auto* type = line.expect_type(); type != nullptr) {
        expect_row("expect_type", type_text(core, type->pool()->str(), type->type()->str()));
    } else if (const auto* offers = line.expect_offers(); offers != nullptr) {
        expect_row("expect_offers", offers_text(core, *offers));
    } else if (const auto* app = line.expect_application(); app != nullptr) {
        expect_row("expect_application",
                   application_text(core, map, app->uid(), app->application()->str()));
    } else if (const auto* task = line.expect_task(); task != nullptr) {
        expect_row(
            "expect_task",
            task_text(core, map, task->uid(), task->application()->str(), task->task()->str()));
    } else if (const auto* ranking = line.expect_ranking(); ranking != nullptr) {
        expect_row("expect_ranking", replayer_.ranking_text(*ranking));
    }
}

}  // namespace

bool is_expectation(const journal::Line& line) {
    return line.expect() != nullptr || line.expect_none() != nullptr ||
           line.expect_rest() != nullptr || line.expect_broker() != nullptr ||
           line.expect_pool() != nullptr || line.expect_slot() != nullptr ||
           line.expect_claim() != nullptr || line.expect_lease() != nullptr ||
           line.expect_session() != nullptr || line.expect_account() != nullptr ||
           line.expect_worker() != nullptr || line.expect_offers() != nullptr ||
           line.expect_type() != nullptr || line.expect_ranking() != nullptr ||
           line.expect_application() != nullptr || line.expect_task() != nullptr;
}

uint64_t check_scenario(JournalReader& journal, uint64_t memory_max) {
    Scenario scenario(journal, memory_max);
    scenario.run();
    return scenario.held();
}

}  // namespace dibs::ctl
