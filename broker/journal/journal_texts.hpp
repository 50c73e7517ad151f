// broker/journal/journal_texts.hpp -- gives views of a line's strings, valid as long as the line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <string_view>
#include <vector>

namespace dibs::ctl {

using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

// Empty for a missing string.
inline std::string_view view(const flatbuffers::String* text) {
    return text == nullptr ? std::string_view() : text->string_view();
}

inline std::vector<std::string_view> views(const Strings* texts) {
    std::vector<std::string_view> result;
    if (texts == nullptr) return result;
    for (const flatbuffers::String* text : *texts)
        result.push_back(text->string_view());
    return result;
}

}  // namespace dibs::ctl
