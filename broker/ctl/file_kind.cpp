// broker/ctl/file_kind.cpp -- recognises files by magic numbers and typical lines.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/file_kind.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "broker/journal/journal_reader.hpp"
#include "shm/layout.hpp"

namespace dibs::ctl {

namespace {

constexpr std::string_view kSnapshotMark = "DSNP";  // schemas/snapshot.fbs
constexpr size_t kSnapshotMarkAt = 4;
constexpr std::string_view kProgramMark =
    "\x7f"
    "ELF";

bool is_state(std::string_view bytes) {
    uint64_t magic = 0;
    if (bytes.size() < sizeof(magic)) return false;
    std::memcpy(&magic, bytes.data(), sizeof(magic));
    return magic == shm::kStateMagic;
}

bool is_text(std::string_view bytes) {
    return std::none_of(bytes.begin(), bytes.end(), [](char letter) {
        const auto byte = static_cast<unsigned char>(letter);
        return byte < 0x20 && letter != '\n' && letter != '\t' && letter != '\r';
    });
}

bool is_comment(std::string_view line) {
    return line.empty() || line.starts_with('#') || line.starts_with("//");
}

// Decides by the first line that tells the kind; the text behind that line is for the parser.
FileKind kind_of_text(std::string_view bytes) {
    bool said = false;
    for (size_t at = 0; at < bytes.size();) {
        const size_t end = std::min(bytes.find('\n', at), bytes.size());
        std::string_view line = bytes.substr(at, end - at);
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        at = end + 1;
        if (line.starts_with('{')) return FileKind::kJournal;
        if (line.starts_with("[[")) return FileKind::kConfiguration;
        if (!is_text(line)) return FileKind::kOther;
        said = said || !is_comment(line);
    }
    return said ? FileKind::kText : FileKind::kJournal;
}

std::string_view described(FileKind kind) {
    switch (kind) {
        case FileKind::kEmpty:
            return "it is empty";
        case FileKind::kState:
            return "it is a state, which dibs fsck and dibs dump --state read";
        case FileKind::kSnapshot:
            return "it is a snapshot, which dibs load reads";
        case FileKind::kBinaryJournal:
            return "it is a binary journal or a recording, which dibs replay reads";
        case FileKind::kJournal:
            return "it seems to be a journal, which dibs replay reads";
        case FileKind::kConfiguration:
            return "it seems to be a configuration, which dibs config check reads";
        case FileKind::kProgram:
            return "it is a program";
        case FileKind::kText:
            return "it is some text";
        case FileKind::kOther:
            break;
    }
    return "it is nothing that dibs has written";
}

}  // namespace

FileKind file_kind(std::string_view bytes) {
    if (bytes.empty()) return FileKind::kEmpty;
    if (is_state(bytes)) return FileKind::kState;
    if (is_binary_journal(bytes)) return FileKind::kBinaryJournal;
    if (bytes.starts_with(kProgramMark)) return FileKind::kProgram;
    const bool marked = bytes.size() > kSnapshotMarkAt;
    if (marked && bytes.substr(kSnapshotMarkAt).starts_with(kSnapshotMark)) {
        return FileKind::kSnapshot;
    }
    return kind_of_text(bytes);
}

std::string is_no(std::string_view wanted, FileKind kind) {
    return "is no " + std::string(wanted) + ": " + std::string(described(kind));
}

}  // namespace dibs::ctl
