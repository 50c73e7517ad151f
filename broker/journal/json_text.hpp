// broker/journal/json_text.hpp -- writes one line of JSON, with keys in the caller's order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dibs::ctl {

// What is no UTF-8 is written as U+FFFD, byte by byte: a line of JSON is one, whatever it says.
class JsonText {
  public:
    // An empty key is for the members of a list and for the outermost object.
    void open_object(std::string_view key = {}) { open(key, '{'); }
    void close_object() { close('}'); }
    void open_list(std::string_view key) { open(key, '['); }
    void close_list() { close(']'); }

    void text(std::string_view key, std::string_view value);
    void number(std::string_view key, uint64_t value);
    void signed_number(std::string_view key, int64_t value);
    void nothing(std::string_view key);  // null
    void truth(std::string_view key, bool value);

    [[nodiscard]] const std::string& line() const { return line_; }

  private:
    void open(std::string_view key, char bracket);
    void close(char bracket);
    void name(std::string_view key);
    void quoted(std::string_view value);
    void escaped(uint32_t point);

    std::string line_;
};

// As a line of JSON has it, quotes included: in a message, nothing of it can be taken for something
// else.
std::string json_string(std::string_view value);

}  // namespace dibs::ctl
