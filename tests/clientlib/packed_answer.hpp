// tests/clientlib/packed_answer.hpp -- an administrator's answer as a broker sends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schemas/admin_generated.h"

namespace dibs::test {

inline std::vector<uint8_t> packed(const admin::AnswerT& answer) {
    flatbuffers::FlatBufferBuilder builder;
    builder.Finish(admin::Answer::Pack(builder, &answer));
    return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

}  // namespace dibs::test
