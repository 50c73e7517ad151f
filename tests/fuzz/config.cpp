// tests/fuzz/config.cpp -- a configuration file: good, or with a line for each mistake.
// SPDX-License-Identifier: Apache-2.0
#include "broker/config/config.hpp"
#include "tests/fuzz/bytes.hpp"

int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    const dibs::fuzz::Bytes input(bytes, size);
    dibs::ConfigResult result = dibs::parse_config(input.text(), "input");
    for (const std::string& mistake : result.mistakes) {
        dibs::fuzz::expect(mistake.starts_with("input:"), "a mistake says where it stands");
    }
    if (!result.mistakes.empty()) return 0;
    ++dibs::fuzz::understood;
    for (dibs::PoolSettings& pool : result.config.pools) {
        dibs::fuzz::expect(!pool.view().name.empty(), "a good pool has a name");
    }
    return 0;
}
