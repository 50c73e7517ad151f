// tests/fuzz/line_mutator.cpp -- how libFuzzer changes an input that is a text of lines.
//
// Half of its own changes leave no line that is understood, and a text is refused at its first
// mistake. So the other half keep the lines: one goes, comes again or elsewhere, comes from another
// input, or has one of its words changed into something else that can be read.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t size_max);
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes,
                                          size_t size,
                                          size_t size_max,
                                          unsigned seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* bytes,
                                            size_t size,
                                            const uint8_t* others,
                                            size_t others_size,
                                            uint8_t* out,
                                            size_t size_max,
                                            unsigned seed);

namespace {

using Random = std::minstd_rand;

size_t below(Random& random, size_t bound) {
    return bound == 0 ? 0 : random() % bound;
}

struct Piece {
    size_t begin;
    size_t size;
};

// A line with its end.
Piece any_line(std::string_view text, Random& random) {
    const size_t at = below(random, text.size());
    const size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
    const size_t begin = before == std::string_view::npos ? 0 : before + 1;
    const size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    return {begin, end - begin};
}

bool in_word(char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_' ||
           letter == '-' || letter == '.';
}

Piece any_word(std::string_view text, Random& random) {
    size_t begin = below(random, text.size());
    while (begin < text.size() && !in_word(text[begin]))
        ++begin;
    while (begin > 0 && in_word(text[begin - 1]))
        --begin;
    size_t end = begin;
    while (end < text.size() && in_word(text[end]))
        ++end;
    return {begin, end - begin};
}

std::string other_word(std::string_view word, Random& random) {
    constexpr std::array<std::string_view, 10> kNumbers = {"0",
                                                           "1",
                                                           "-1",
                                                           "255",
                                                           "65536",
                                                           "4294967295",
                                                           "4294967296",
                                                           "18446744073709551615",
                                                           "1e308",
                                                           "0.5"};
    if (below(random, 4) == 0) return std::string(kNumbers[below(random, kNumbers.size())]);
    std::array<uint8_t, 64> bytes{};
    const size_t size = std::min(word.size(), bytes.size() / 2);
    std::copy_n(word.begin(), size, bytes.begin());
    const size_t made = LLVMFuzzerMutate(bytes.data(), size, bytes.size());
    std::string other(bytes.begin(), bytes.begin() + made);
    for (char& letter : other) {
        if (std::isprint(static_cast<unsigned char>(letter)) == 0 || letter == '"') letter = '7';
    }
    return other;
}

void change(std::string& text, Random& random) {
    const Piece line = any_line(text, random);
    const Piece word = any_word(text, random);
    const std::string copy = text.substr(line.begin, line.size);
    switch (below(random, 6)) {
        case 0:
            text.erase(line.begin, line.size);
            return;
        case 1:
            text.insert(any_line(text, random).begin, copy);
            return;
        case 2:
            text.erase(line.begin, line.size);
            text.insert(text.empty() ? 0 : any_line(text, random).begin, copy);
            return;
        default:
            text.replace(word.begin,
                         word.size,
                         other_word(std::string_view(text).substr(word.begin, word.size), random));
            return;
    }
}

size_t give(const std::string& text, uint8_t* out, size_t size_max) {
    return static_cast<size_t>(std::copy_n(text.begin(), std::min(text.size(), size_max), out) -
                               out);
}

}  // namespace

size_t LLVMFuzzerCustomMutator(uint8_t* bytes, size_t size, size_t size_max, unsigned seed) {
    Random random(seed);
    if (size == 0 || below(random, 2) == 0) return LLVMFuzzerMutate(bytes, size, size_max);
    std::string text(bytes, bytes + size);
    for (size_t count = 1 + below(random, 3); count > 0 && !text.empty(); --count)
        change(text, random);
    const size_t made = give(text, bytes, size_max);
    return made == 0 ? LLVMFuzzerMutate(bytes, size, size_max) : made;
}

size_t LLVMFuzzerCustomCrossOver(const uint8_t* bytes,
                                 size_t size,
                                 const uint8_t* others,
                                 size_t others_size,
                                 uint8_t* out,
                                 size_t size_max,
                                 unsigned seed) {
    Random random(seed);
    std::string text(bytes, bytes + size);
    const std::string other(others, others + others_size);
    if (text.empty() || other.empty()) return give(text.empty() ? other : text, out, size_max);
    const size_t place = any_line(text, random).begin;
    const Piece first = any_line(other, random);
    size_t end = first.begin + first.size;
    for (size_t more = below(random, 4); more > 0 && end < other.size(); --more)
        end = std::min(other.find('\n', end), other.size() - 1) + 1;
    text.insert(place, other, first.begin, end - first.begin);
    return give(text, out, size_max);
}
