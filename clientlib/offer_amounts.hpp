// clientlib/offer_amounts.hpp -- compares what is wanted with what an offer has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "dibs/dibs.h"

namespace dibs::client {

struct Session;

// "NAME=AMOUNT" for each resource of an offer, which must be sound.
struct OfferTexts {
    explicit OfferTexts(const dibs_offer& offer);

    const char* least[DIBS_RESOURCES_MAX] = {};
    char texts[DIBS_RESOURCES_MAX][DIBS_RESOURCE_NAME_MAX + 24];
};

// By the offer's order of its resources; what is not named is 0. False: no amounts of them.
bool read_amounts(const dibs_offer& offer,
                  const char* const* texts,
                  size_t count,
                  uint64_t (&amounts)[DIBS_RESOURCES_MAX]);
// DIBS_OK; DIBS_EOFFEREXPIRED: more is wanted than the offer has; DIBS_EARGUMENT: it is none. What
// is not understood is the broker's to refuse.
int check_accept(const dibs_claim_options& options);
// The offer, if one is accepted, is of that pool: DIBS_OK; else DIBS_EARGUMENT.
int check_offered(Session& session, uint32_t pool, const dibs_claim_options& options);

}  // namespace dibs::client
