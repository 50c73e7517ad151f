// broker/journal/journal_texts.hpp -- gives views of a line's strings, valid as long as the line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <string>
#include <string_view>
#include <vector>

#include "broker/journal/journal_error.hpp"
#include "broker/journal/json_text.hpp"

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

// A slot's "key=value" texts as rows keep them: each ended by a zero byte.
inline std::string joined_attributes(const Strings* texts) {
    std::string result;
    for (const std::string_view text : views(texts)) {
        if (text.find('=') == std::string_view::npos) {
            throw JournalError("the attribute " + json_string(text) + " is no \"key=value\"");
        }
        result += text;
        result += '\0';
    }
    return result;
}

}  // namespace dibs::ctl
