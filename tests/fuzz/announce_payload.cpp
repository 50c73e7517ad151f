// tests/fuzz/announce_payload.cpp -- what a worker says of a slot: nothing beyond the limits, and
// every view inside the bytes or the reader.
// SPDX-License-Identifier: Apache-2.0
#include "broker/turn/payload.hpp"
#include "tests/fuzz/bytes.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    using dibs::fuzz::expect;
    if (size > dibs::shm::kPayloadMax) return 0;
    alignas(16) static uint8_t place[dibs::shm::kPayloadMax];
    std::memcpy(place, bytes, size);
    static dibs::AnnouncementReader reader;
    dibs::Announcement out;
    if (!reader.read({place, size}, out)) return 0;
    ++dibs::fuzz::understood;
    expect(out.name.size() <= 63, "a name has at most 63 bytes");
    expect(out.labels().size() <= dibs::shm::kLabelsMax, "at most 32 labels");
    size_t sum = 0;
    for (const std::string_view label : out.labels()) {
        for (const char letter : label)
            sum += static_cast<uint8_t>(letter);
    }
    for (const char letter : out.attributes)
        sum += static_cast<uint8_t>(letter);
    expect(out.attributes.empty() || out.attributes.back() == 0, "attributes end with a zero byte");
    expect(sum < size_t{1} << 32U, "bytes are bytes");
    return 0;
}
