// broker/journal/strict_json.hpp -- refuses lines that only a lax JSON parser accepts.
//
// The schema's parser reads more than JSON: quotes of one kind or the other, comments, numbers in
// quotes and in hexadecimal, a number for a truth, several words of an enum in one text. The author
// of such a line did not mean what is read from it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <flatbuffers/idl.h>

#include <string_view>

namespace dibs::ctl {

// Throws JournalError. `line`: one that the parser has taken for `definition`. Numbers of slots may
// stand where their text would, if `numbers_of_slots` says so.
void refuse_lax(std::string_view line,
                const flatbuffers::StructDef& definition,
                bool numbers_of_slots);

}  // namespace dibs::ctl
