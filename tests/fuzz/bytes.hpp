// tests/fuzz/bytes.hpp -- the bytes of one input, taken piece by piece; behind its end lie zeroes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace dibs::fuzz {

class Bytes {
  public:
    Bytes(const uint8_t* bytes, size_t size) : bytes_(bytes, size) {}

    [[nodiscard]] bool empty() const { return bytes_.empty(); }
    [[nodiscard]] std::span<const uint8_t> rest() const { return bytes_; }
    [[nodiscard]] std::string_view text() const {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }

    template <typename T>
    T take() {
        T value{};
        std::memcpy(static_cast<void*>(&value), bytes_.data(), std::min(sizeof(T), bytes_.size()));
        bytes_ = bytes_.subspan(std::min(sizeof(T), bytes_.size()));
        return value;
    }
    std::span<const uint8_t> take(size_t size) {
        const std::span<const uint8_t> taken = bytes_.first(std::min(size, bytes_.size()));
        bytes_ = bytes_.subspan(taken.size());
        return taken;
    }

  private:
    std::span<const uint8_t> bytes_;
};

// How many inputs have come past the first refusal: each target says so, once an input, where what
// it is about begins. The driver prints it.
inline uint64_t understood = 0;

// A claim of the target's own: ends the program, whatever the build.
inline void expect(bool holds, const char* what) {
    if (holds) return;
    __builtin_printf("expected: %s\n", what);
    __builtin_abort();
}

}  // namespace dibs::fuzz

// One input; libFuzzer's name for it, also the driver's.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size);
