// tests/fuzz/hello.cpp -- the first packet of a client or tool: a session of valid sizes, or a
// refusal that says why.
//
// Once as it is, and once with a good head before whatever follows it: few inputs have one.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>

#include "broker/admission/handshake.hpp"
#include "tests/fuzz/bytes.hpp"

namespace {

using dibs::fuzz::expect;
namespace shm = dibs::shm;

bool hear(std::span<const std::byte> packet) {
    shm::SessionSizes sizes;
    bool has_tree = false;
    const bool administers = dibs::is_admin_hello(packet);
    const auto refusal = administers ? dibs::check_admin_hello(packet)
                                     : dibs::check_hello(packet, &sizes, &has_tree);
    if (refusal) {
        expect(!refusal->text.empty(), "a refusal says why");
        expect(refusal->text.size() <= sizeof(shm::Farewell::text), "in a Farewell's room");
        return false;
    }
    if (administers) return true;
    expect(shm::valid_sizes(sizes), "what is accepted can be laid out");
    expect(shm::plan_up(sizes).size < uint64_t{1} << 32U, "and mapped");
    return true;
}

template <class Hello>
bool hear_behind_head(std::span<const uint8_t> bytes) {
    constexpr size_t kHead = 16;  // magic, version; flags or the other version
    const Hello good;
    std::array<uint8_t, sizeof(Hello)> packet;
    std::memcpy(packet.data(), &good, sizeof good);
    if (bytes.size() > kHead) {
        std::memcpy(packet.data() + kHead,
                    bytes.data() + kHead,
                    std::min(bytes.size(), packet.size()) - kHead);
    }
    // Now and then too short.
    const size_t size =
        bytes.size() % 8 == 7 ? std::min(bytes.size(), packet.size()) : packet.size();
    return hear(std::as_bytes(std::span(packet)).first(size));
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    const std::span input(bytes, size);
    const bool as_it_is = hear(std::as_bytes(input));
    const bool of_client = hear_behind_head<shm::Hello>(input);
    (void)hear_behind_head<shm::AdminHello>(input);
    if (as_it_is || of_client) ++dibs::fuzz::understood;
    return 0;
}
