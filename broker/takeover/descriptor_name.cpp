// broker/takeover/descriptor_name.cpp -- how a descriptor is called where a service manager stores
// it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/takeover/descriptor_name.hpp"

#include <array>
#include <charconv>

namespace dibs {

namespace {

constexpr std::array<std::string_view, 4> kPlain = {"state", "board", "listener", "config"};
constexpr std::string_view kBroker = "broker.";
constexpr std::string_view kSession = "s.";

std::string written(uint32_t number, int base) {
    std::array<char, 16> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, base).ptr;
    return {digits.data(), end};
}

// All of it is one number, written as above.
bool read_number(std::string_view text, int base, uint32_t* number) {
    const auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), *number, base);
    return error == std::errc() && end == text.data() + text.size() &&
           written(*number, base) == text;
}

}  // namespace

std::string DescriptorName::text() const {
    if (what == What::kBroker) return std::string(kBroker) + written(row, 10);
    if (what == What::kSession) {
        return std::string(kSession) + written(row, 16) + "." + written(generation, 16);
    }
    return std::string(kPlain[static_cast<size_t>(what)]);
}

std::optional<DescriptorName> DescriptorName::of(std::string_view text) {
    for (size_t i = 0; i < kPlain.size(); ++i) {
        if (text == kPlain[i]) return DescriptorName{static_cast<What>(i)};
    }
    DescriptorName name;
    if (text.starts_with(kBroker)) {
        name.what = What::kBroker;
        if (!read_number(text.substr(kBroker.size()), 10, &name.row)) return std::nullopt;
        return name;
    }
    if (!text.starts_with(kSession)) return std::nullopt;
    name.what = What::kSession;
    text.remove_prefix(kSession.size());
    const size_t dot = text.find('.');
    if (dot == std::string_view::npos || !read_number(text.substr(0, dot), 16, &name.row) ||
        !read_number(text.substr(dot + 1), 16, &name.generation)) {
        return std::nullopt;
    }
    return name;
}

}  // namespace dibs
