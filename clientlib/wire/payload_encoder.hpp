// clientlib/wire/payload_encoder.hpp -- writes ClaimPayload and AnnouncePayload
// (schemas/claim.fbs).
//
// It does not use the generated builder, which needs operator new.
//
// Both are a table of three reference fields; a claim that brings terms has more. The encoder
// lays everything out front to back, so that every offset points forward, as the format wants; the
// same code runs twice, first without a target to learn the size, then into the payload area of UP.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dibs/dibs.h"

namespace dibs::client {

struct ClaimContent {
    const dibs_option* options = nullptr;
    size_t option_count = 0;
    const char* const* labels = nullptr;
    size_t label_count = 0;
    const void* body = nullptr;
    size_t body_size = 0;
    const dibs_claim_options* terms =
        nullptr;  // preferred labels, priority, preemption; null = none
};

struct AnnounceContent {
    const char* name = nullptr;  // null = none
    const char* const* labels = nullptr;
    size_t label_count = 0;
    const dibs_option* attributes = nullptr;
    size_t attribute_count = 0;
    const char* const* resources = nullptr;
    size_t resource_count = 0;
    uint32_t parts = 0;
};

// Returns the encoded size; writes nothing if `target` is null, else exactly that many bytes.
// `target` is aligned to 4 bytes. The content is within its limits (counts, no null where there
// must be none).
size_t encode_claim(const ClaimContent& content, uint8_t* target);
size_t encode_announce(const AnnounceContent& content, uint8_t* target);

}  // namespace dibs::client
