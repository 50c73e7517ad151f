// tests/fuzz/claim_payload.cpp -- a claim's payload, as the broker verifies it and as the worker's
// library reads it. What the broker lets through, the library can read.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/payload.hpp"
#include "clientlib/wire/payload_decoder.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

size_t text_size(const char* text) {
    return text == nullptr ? 0 : std::strlen(text);
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    if (size > dibs::shm::kPayloadMax) return 0;
    // As in a segment: on an 8-byte boundary.
    alignas(16) static uint8_t place[dibs::shm::kPayloadMax];
    std::memcpy(place, bytes, size);
    const bool valid = dibs::valid_claim_payload({place, size});
    dibs_assignment assignment = {};
    const bool decoded = dibs::client::decode_claim(place, size, assignment);
    dibs::fuzz::expect(!valid || decoded, "what the broker verifies, the library decodes");
    if (valid) ++dibs::fuzz::understood;
    size_t read = 0;
    for (size_t i = 0; i < assignment.option_count; ++i) {
        read += text_size(assignment.options[i].key) + text_size(assignment.options[i].value);
    }
    for (size_t i = 0; i < assignment.label_count; ++i)
        read += text_size(assignment.labels[i]);
    for (size_t i = 0; i < assignment.prefer_count; ++i)
        read += text_size(assignment.prefer[i]);
    const auto* body = static_cast<const uint8_t*>(assignment.body);
    for (size_t i = 0; i < assignment.body_size; ++i)
        read += body[i];
    dibs::fuzz::expect(read < size_t{1} << 40U, "sizes are sizes");
    return 0;
}
