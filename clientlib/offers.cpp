// clientlib/offers.cpp -- asks what is offered and what a lease is, and accepts offers.
// SPDX-License-Identifier: Apache-2.0
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/offer_amounts.hpp"
#include "clientlib/question.hpp"

namespace dibs::client {

namespace {

constexpr uint64_t kAmountMax = uint64_t{1} << 53U;

// schemas/admin.fbs: the fields of an Offer, of a Lease.
namespace OfferField {
constexpr size_t kPool = 0;
constexpr size_t kSlot = 1;
constexpr size_t kResources = 2;
constexpr size_t kAmounts = 3;
}  // namespace OfferField
namespace LeaseField {
constexpr size_t kAccount = 0;
constexpr size_t kAge = 1;
constexpr size_t kFull = 2;
constexpr size_t kPool = 3;
constexpr size_t kNumber = 4;
constexpr size_t kId = 5;
constexpr size_t kFence = 6;
constexpr size_t kState = 7;
constexpr size_t kUnits = 8;
constexpr size_t kSlots = 9;
constexpr size_t kUid = 10;
constexpr size_t kPid = 11;
constexpr size_t kInterval = 13;
constexpr size_t kLeft = 14;
constexpr size_t kKept = 15;
constexpr size_t kMeta = 16;
constexpr size_t kExpired = 17;
constexpr size_t kResources = 18;
constexpr size_t kAmounts = 19;
constexpr size_t kEnded = 20;
constexpr size_t kEndedAgo = 21;
constexpr size_t kReason = 22;
}  // namespace LeaseField

// A whole number, or one with KiB to TiB.
bool read_amount(const char* text, uint64_t* amount) {
    char* end = nullptr;
    if (*text < '0' || *text > '9') return false;
    const unsigned long long number = strtoull(text, &end, 10);
    static const char* const kUnits[] = {"", "KiB", "MiB", "GiB", "TiB"};
    for (unsigned unit = 0; unit < sizeof kUnits / sizeof *kUnits; ++unit) {
        if (strcmp(end, kUnits[unit]) != 0) continue;
        if (number > kAmountMax >> (10 * unit)) return false;
        *amount = static_cast<uint64_t>(number) << (10 * unit);
        return true;
    }
    return false;
}

int read_offers(const Heard& heard, dibs_offer* offers, size_t room, uint64_t* stamp) {
    size_t root = 0;
    if (!Row::at(heard, 0, &root)) return DIBS_EHANDSHAKE;
    const Row answer{heard, root};
    const auto told = answer.number<uint64_t>(AnswerField::kStamp);
    if (stamp != nullptr) *stamp = told;
    const AnswerList list = answer.list(AnswerField::kOffers);
    if (list.count > room) return DIBS_EHANDSHAKE;
    for (uint32_t i = 0; i < list.count; ++i) {
        size_t table = 0;
        if (!Row::at(heard, list.first + i * sizeof(uint32_t), &table)) return DIBS_EHANDSHAKE;
        const Row row{heard, table};
        dibs_offer& offer = offers[i];
        offer = {};
        row.text(OfferField::kPool, offer.pool);
        offer.slot = row.number<uint32_t>(OfferField::kSlot);
        offer.stamp = told;
        offer.count = row.resources(
            OfferField::kResources, OfferField::kAmounts, offer.resources, offer.amounts);
        if (offer.count == 0) return DIBS_EHANDSHAKE;
    }
    return static_cast<int>(list.count);
}

// As a claim of the same would be refused.
int why_refused(const Heard& heard) {
    size_t root = 0;
    if (!Row::at(heard, 0, &root)) return DIBS_EHANDSHAKE;
    const auto reason = Row{heard, root}.number<int16_t>(AnswerField::kReason);
    return reason < 0 ? int{reason} : int{DIBS_ESTATE};
}

int read_inspection(const Heard& heard, dibs_inspection* out) {
    size_t root = 0;
    size_t table = 0;
    if (!Row::at(heard, 0, &root)) return DIBS_EHANDSHAKE;
    const AnswerList list = Row{heard, root}.list(AnswerField::kLeases);
    if (list.count != 1 || !Row::at(heard, list.first, &table)) return DIBS_EHANDSHAKE;
    const Row row{heard, table};
    *out = {};
    row.text(LeaseField::kPool, out->pool);
    row.text(LeaseField::kAccount, out->account);
    out->age_ns = row.duration(LeaseField::kAge);
    out->ended = row.number<uint8_t>(LeaseField::kEnded);
    out->uid = DIBS_HIDDEN_UID;
    if (row.number<uint8_t>(LeaseField::kFull) == 0) return DIBS_OK;
    out->lease = row.number<uint64_t>(LeaseField::kId);
    out->fence = row.number<uint64_t>(LeaseField::kFence);
    out->claim = row.number<uint64_t>(LeaseField::kNumber);
    out->kept_ns = row.duration(LeaseField::kKept);
    out->interval_ns = row.duration(LeaseField::kInterval);
    out->left_ns = row.duration(LeaseField::kLeft);
    out->expired_ns = row.duration(LeaseField::kExpired);
    out->ended_ns = row.duration(LeaseField::kEndedAgo);
    out->code = row.number<int16_t>(LeaseField::kReason);
    out->uid = row.number<uint32_t>(LeaseField::kUid);
    out->pid = row.number<uint32_t>(LeaseField::kPid);
    out->units = row.number<uint32_t>(LeaseField::kUnits);
    const AnswerList slots = row.list(LeaseField::kSlots);
    if (slots.count != 0) (void)read_at(heard.bytes, heard.size, slots.first, &out->slot);
    out->count =
        row.resources(LeaseField::kResources, LeaseField::kAmounts, out->resources, out->amounts);
    row.text(LeaseField::kState, out->state);
    row.text(LeaseField::kMeta, out->meta);
    return DIBS_OK;
}

bool is_offer(const dibs_offer& offer) {
    if (offer.count == 0 || offer.count > DIBS_RESOURCES_MAX || offer.slot == UINT32_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < offer.count; ++i) {
        const size_t size = strnlen(offer.resources[i], DIBS_RESOURCE_NAME_MAX + 1);
        if (size == 0 || size > DIBS_RESOURCE_NAME_MAX) return false;
    }
    return true;
}

}  // namespace

OfferTexts::OfferTexts(const dibs_offer& offer) {
    for (uint32_t i = 0; i < offer.count; ++i) {
        snprintf(texts[i],
                 sizeof texts[i],
                 "%s=%llu",
                 offer.resources[i],
                 static_cast<unsigned long long>(offer.amounts[i]));
        least[i] = texts[i];
    }
}

bool read_amounts(const dibs_offer& offer,
                  const char* const* texts,
                  size_t count,
                  uint64_t (&amounts)[DIBS_RESOURCES_MAX]) {
    memset(amounts, 0, sizeof amounts);
    if (count != 0 && texts == nullptr) return false;
    for (size_t i = 0; i < count; ++i) {
        const char* equals = texts[i] == nullptr ? nullptr : strchr(texts[i], '=');
        if (equals == nullptr) return false;
        const auto size = static_cast<size_t>(equals - texts[i]);
        uint32_t at = 0;
        while (at < offer.count && (strlen(offer.resources[at]) != size ||
                                    memcmp(offer.resources[at], texts[i], size) != 0)) {
            ++at;
        }
        if (at == offer.count || !read_amount(equals + 1, &amounts[at])) return false;
    }
    return true;
}

int check_accept(const dibs_claim_options& options) {
    const dibs_offer& offer = *options.offer;
    if (!is_offer(offer)) return DIBS_EARGUMENT;
    uint64_t amounts[DIBS_RESOURCES_MAX];
    if (!read_amounts(offer, options.least, options.least_count, amounts)) return DIBS_OK;
    for (uint32_t i = 0; i < offer.count; ++i) {
        if (amounts[i] > offer.amounts[i]) return DIBS_EOFFEREXPIRED;
    }
    return DIBS_OK;
}

}  // namespace dibs::client

using namespace dibs::client;

int dibs_offers(const dibs_connect_options* options,
                const dibs_offers_query* query,
                dibs_offer* offers,
                size_t count,
                uint64_t* stamp) {
    if (query == nullptr || offers == nullptr || count == 0 || count > DIBS_OFFERS_MAX) {
        return DIBS_EARGUMENT;
    }
    dibs_offers_query known;
    int code = read_options(query, &known, sizeof known, sizeof known);
    if (code != DIBS_OK) return code;
    if (known.pool == nullptr) return DIBS_EARGUMENT;
    if (!good_name(known.pool)) return DIBS_ENAME;
    if (known.wait_ns < 0) return DIBS_ENEGATIVE;
    if (!good_amounts(known.least, known.least_count) ||
        !good_amounts(known.most, known.most_count)) {
        return DIBS_EVECTOR;
    }
    Question question(Ask::kOffers);
    question.fields.number(Field::kNumber, count);
    question.fields.number(Field::kInterval, static_cast<uint64_t>(known.wait_ns));
    question.fields.number(Field::kAfterStamp, known.after_stamp);
    question.fields.reference(Field::kPool);
    question.fields.reference(Field::kLeast);
    question.fields.reference(Field::kMost);
    question.begin();
    question.text(Field::kPool, known.pool);
    question.texts(Field::kLeast, known.least, known.least_count);
    question.texts(Field::kMost, known.most, known.most_count);
    Heard heard;
    code = put(options, question, heard, known.wait_ns);
    if (code == DIBS_ESTATE) return why_refused(heard);
    return code != DIBS_OK ? code : read_offers(heard, offers, count, stamp);
}

// S3.21.
int dibs_offer_take(const dibs_offer* offer,
                    const char* const* most,
                    size_t most_count,
                    dibs_offer* taken) {
    if (offer == nullptr || taken == nullptr || !is_offer(*offer)) return DIBS_EARGUMENT;
    uint64_t amounts[DIBS_RESOURCES_MAX];
    if (!read_amounts(*offer, most, most_count, amounts)) return DIBS_EVECTOR;
    bool is_something = false;
    bool leaves_some = true;
    for (uint32_t i = 0; i < offer->count; ++i) {
        if (offer->amounts[i] == 0) {  // the slot has none of it
            amounts[i] = 0;
            continue;
        }
        is_something = is_something || amounts[i] != 0;
        leaves_some = leaves_some && amounts[i] < offer->amounts[i];
    }
    if (!is_something) return DIBS_EVECTOR;
    *taken = *offer;
    for (uint32_t i = 0; i < offer->count && leaves_some; ++i)
        taken->amounts[i] = amounts[i];
    return DIBS_OK;
}

int dibs_inspect(const dibs_connect_options* options, uint64_t lease, dibs_inspection* inspection) {
    if (inspection == nullptr || lease == 0) return DIBS_EARGUMENT;
    Question question(Ask::kInspect);
    question.fields.number(Field::kId, lease);
    question.begin();
    Heard heard;
    const int code = put(options, question, heard);
    return code != DIBS_OK ? code : read_inspection(heard, inspection);
}
