// clientlib/wire/payload_decoder.hpp -- reads a ClaimPayload (schemas/claim.fbs) without trusting
// it.
//
// The bytes lie in DOWN, which the broker writes, but another client made them: every offset is
// checked against the size before it is followed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "dibs/dibs.h"

namespace dibs::client {

// Sets body, options and labels of `assignment` to places in `bytes`; no bytes are an empty
// payload. False: malformed, and the counts are 0.
bool decode_claim(const uint8_t* bytes, size_t size, dibs_assignment& assignment);

}  // namespace dibs::client
