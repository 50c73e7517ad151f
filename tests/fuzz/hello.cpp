// tests/fuzz/hello.cpp -- the first packet of a client: a session of valid sizes, or a refusal that
// says why.
// SPDX-License-Identifier: Apache-2.0
#include "broker/handshake.hpp"
#include "tests/fuzz/bytes.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    using dibs::fuzz::expect;
    dibs::shm::SessionSizes sizes;
    const auto refusal = dibs::check_hello(std::as_bytes(std::span(bytes, size)), &sizes);
    if (refusal) {
        expect(!refusal->text.empty(), "a refusal says why");
        expect(refusal->text.size() <= sizeof(dibs::shm::Farewell::text), "in a Farewell's room");
        return 0;
    }
    expect(dibs::shm::valid_sizes(sizes), "what is accepted can be laid out");
    expect(dibs::shm::plan_up(sizes).size < uint64_t{1} << 32U, "and mapped");
    return 0;
}
