// broker/journal/journal_reader.hpp -- reads a journal line by line as checked FlatBuffers tables.
//
// The JSON form is one object per line; empty lines and lines that begin with "//" or "#" are
// comments. The binary form is "DJN2", then size-prefixed buffers of the same table; its "line"
// is the number of the buffer, from 1. The parser takes the vocabulary from schemas/journal.fbs:
// an unknown field is an error, and so is a field that the schema marks (later).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace dibs::journal {
struct Line;
}

namespace dibs::ctl {

enum class JournalForm : uint8_t { kDetect, kJson, kBinary };

// The last letter is the version.
inline constexpr std::string_view kJournalMagic = "DJN2";
// Of this or another version.
bool is_binary_journal(std::string_view bytes);

class JournalReader {
  public:
    // Throws JournalError if a binary journal does not begin as one.
    JournalReader(std::string bytes, JournalForm form);
    // Without a journal: at its end.
    JournalReader();
    ~JournalReader();
    JournalReader(const JournalReader&) = delete;
    JournalReader& operator=(const JournalReader&) = delete;

    // The next line that is not a comment, valid until the next call; nullptr at the end.
    // Throws JournalError.
    const journal::Line* next();
    // Another journal, from its beginning; throws as the constructor does. What the schema is made
    // of takes longer than a short journal, and is kept.
    void open(std::string bytes, JournalForm form);
    // Where the last line stood, or the one that next() has failed on.
    [[nodiscard]] uint32_t line() const;
    // Back to the beginning.
    void rewind();

    [[nodiscard]] bool is_binary() const;
    // The last line, in either form.
    [[nodiscard]] std::string json() const;
    [[nodiscard]] std::string_view buffer() const;

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

}  // namespace dibs::ctl
