// tests/broker/core/store/index_test.cpp -- find, insert and remove under collisions.
// SPDX-License-Identifier: Apache-2.0
#include "broker/core/store/index.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "broker/core/store/row_index.hpp"
#include "tests/repeats.hpp"

namespace dibs::tests {

namespace {

TEST(Index, FindsOnlyWhatTheCallerCallsTheSame) {
    core::Index index(8);
    index.insert(7, 1);
    index.insert(7, 2);
    EXPECT_EQ(index.find(7, [](uint32_t row) { return row == 2; }), 2U);
    EXPECT_EQ(index.find(7, [](uint32_t) { return false; }), shm::kNoRow);
    EXPECT_EQ(index.find(8, [](uint32_t) { return true; }), shm::kNoRow);
}

TEST(Index, GrowsToHoldWhatComes) {
    core::Index index(0);
    for (uint32_t row = 0; row < 1000; ++row) {
        index.grow();
        index.insert(core::numbers_hash(row), row);
    }
    for (uint32_t row = 0; row < 1000; row += 2)
        index.remove(core::numbers_hash(row), row);
    EXPECT_EQ(index.size(), 500U);
    for (uint32_t row = 0; row < 1000; ++row) {
        const uint32_t found =
            index.find(core::numbers_hash(row), [&](uint32_t at) { return at == row; });
        EXPECT_EQ(found, row % 2 == 1 ? row : shm::kNoRow);
    }
}

TEST(Index, TellsTextsApartByEachOfTheirBytes) {
    std::set<uint64_t> hashes;
    const std::string text = "twenty-one letters ab";
    for (size_t size = 0; size <= text.size(); ++size) {
        hashes.insert(core::text_hash({text.data(), size}, 0));
        for (size_t at = 0; at < size; ++at) {
            std::string other = text.substr(0, size);
            other[at] = '!';
            hashes.insert(core::text_hash(other, 0));
        }
    }
    EXPECT_EQ(hashes.size(), 22U + 21U * 22U / 2U);
}

TEST(Index, KeysThatShareAPlaceUnderOneSeedDoNotUnderAnother) {
    const auto place = [](uint64_t key, uint64_t seed) {
        return core::hash_bytes(&key, sizeof(key), seed) & 0xfff;
    };
    std::vector<uint64_t> chosen;
    for (uint64_t key = 0; chosen.size() < 32; ++key) {
        if (place(key, 0) == 7) chosen.push_back(key);
    }
    std::set<uint64_t> places;
    for (const uint64_t key : chosen)
        places.insert(place(key, 0x5eed));
    EXPECT_GT(places.size(), 24U);
}

// Every so manyth row is looked for after each step.
template <class Any>
void agree_with_a_map(uint32_t rows_max, uint32_t stride) {
    for (const uint64_t spread : {1ULL, 3ULL, 1'000'003ULL}) {
        Any index(rows_max);
        std::map<uint32_t, uint64_t> rows;
        std::mt19937_64 random(spread);
        for (uint64_t step = tests::repeats(5'000, 200'000); step > 0; --step) {
            const auto row = static_cast<uint32_t>(random() % rows_max);
            if (const auto found = rows.find(row); found != rows.end()) {
                index.remove(found->second, row);
                rows.erase(found);
            } else {
                const uint64_t hash = random() % spread;
                index.insert(hash, row);
                rows[row] = hash;
            }
            ASSERT_EQ(index.size(), rows.size());
            for (uint32_t any = 0; any < rows_max; any += stride) {
                const auto known = rows.find(any);
                const uint64_t hash = known == rows.end() ? 0 : known->second;
                const uint32_t found = index.find(hash, [&](uint32_t at) { return at == any; });
                ASSERT_EQ(found, known == rows.end() ? shm::kNoRow : any);
            }
        }
    }
}

TEST(Index, AgreesWithAMapWhenFullAndAllHashesCollide) {
    agree_with_a_map<core::Index>(60, 7);
}

// Of 400 rows with one home most stand too far from it.
TEST(RowIndex, AgreesWithAMapWhenFullAndAllHashesCollide) {
    agree_with_a_map<core::RowIndex>(400, 97);
}

}  // namespace

}  // namespace dibs::tests
