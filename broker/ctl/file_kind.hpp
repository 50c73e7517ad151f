// broker/ctl/file_kind.hpp -- says what a wrong file really is, and which command reads it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::ctl {

enum class FileKind : uint8_t {
    kEmpty,
    kState,
    kSnapshot,
    kBinaryJournal,
    kJournal,  // lines of JSON, or nothing but comments
    kConfiguration,
    kProgram,
    kText,
    kOther
};

// By its first bytes, or by its first lines.
FileKind file_kind(std::string_view bytes);

// "is no journal: it is a snapshot, which dibs load reads"
std::string is_no(std::string_view wanted, FileKind kind);

}  // namespace dibs::ctl
