// tests/naive/dice.hpp -- random choices that are the same with every standard library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>

namespace dibs::naive {

class Dice {
  public:
    explicit Dice(uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15ULL + 1) {}

    // 0 .. below − 1; 0 if below is 0. The bias of the remainder does no harm here.
    uint64_t below(uint64_t below) { return below == 0 ? 0 : engine_() % below; }
    uint64_t between(uint64_t least, uint64_t most) { return least + below(most - least + 1); }
    bool percent(uint64_t chance) { return below(100) < chance; }

    template <class Value>
    Value one_of(std::initializer_list<Value> values) {
        return values.begin()[below(values.size())];
    }
    template <class Container>
    auto& any(Container& container) {
        return *std::next(container.begin(), static_cast<std::ptrdiff_t>(below(container.size())));
    }
    // The index of a weight, as often as it is heavy.
    size_t weighed(std::initializer_list<uint64_t> weights) {
        uint64_t sum = 0;
        for (const uint64_t weight : weights)
            sum += weight;
        uint64_t left = below(sum);
        size_t index = 0;
        for (const uint64_t weight : weights) {
            if (left < weight) return index;
            left -= weight;
            ++index;
        }
        return index;
    }

  private:
    std::mt19937_64 engine_;
};

}  // namespace dibs::naive
