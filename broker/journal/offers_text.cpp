// broker/journal/offers_text.cpp -- asks the core for offers, for a scenario's expectation.
// SPDX-License-Identifier: Apache-2.0
#include "broker/journal/offers_text.hpp"

#include "broker/core/look.hpp"
#include "broker/journal/decision_text.hpp"
#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"

namespace dibs::ctl {

namespace {

void write_asked(JsonText& json, std::string_view key, const std::vector<core::Amount>& amounts) {
    json.open_list(key);
    for (const core::Amount& amount : amounts) {
        json.open_object();
        json.text("name", amount.name);
        json.signed_number("amount", amount.amount);
        json.close_object();
    }
    json.close_list();
}

}  // namespace

std::vector<core::Amount> amounts_of(
    const flatbuffers::Vector<flatbuffers::Offset<journal::Amount>>* given) {
    std::vector<core::Amount> amounts;
    if (given == nullptr) return amounts;
    for (const journal::Amount* amount : *given)
        amounts.push_back({amount->name()->string_view(), amount->amount().value_or(0)});
    return amounts;
}

std::string offers_text(const core::Core& core, const journal::OffersRow& asked) {
    const std::string pool = asked.pool()->str();
    const uint32_t row = core.find_pool(pool);
    if (row == shm::kNoRow) throw JournalError("there is no pool " + json_string(pool));
    const std::vector<core::Amount> least = amounts_of(asked.min());
    const std::vector<core::Amount> most = amounts_of(asked.max());
    std::vector<core::Offer> offers;
    uint64_t unused = 0;
    const shm::Reason reason =
        core::Look::offers(core, {row, least, most, asked.seed(), asked.count()}, &offers, &unused);
    JsonText json;
    json.open_object();
    json.open_object("offers");
    json.text("pool", pool);
    write_asked(json, "min", least);
    write_asked(json, "max", most);
    json.number("seed", asked.seed());
    json.number("count", asked.count());
    json.text("reason", reason_word(reason));
    json.open_list("offers");
    for (const core::Offer& offer : offers) {
        json.open_object();
        json.number("slot", offer.slot);
        std::vector<core::Resource> room = core.resources(row);
        for (size_t at = 0; at < room.size(); ++at)
            room[at].amount = offer.room[at];
        write_resources(json, "available", room);
        json.close_object();
    }
    json.close_list();
    json.close_object();
    json.close_object();
    return json.line();
}

}  // namespace dibs::ctl
