// broker/text/line_wrap.cpp -- wraps words into lines.
// SPDX-License-Identifier: Apache-2.0
#include "broker/text/line_wrap.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace dibs {

namespace {

constexpr size_t kUsualColumns = 80;
constexpr size_t kMeaningLeast = 28;  // columns that a meaning needs to stand beside its word
constexpr size_t kMeaningBelow = 6;   // else it stands below, so far to the right

// Where the meaning of "  WHAT  meaning" begins; npos: the line is no such one.
size_t meaning_at(std::string_view line) {
    if (!line.starts_with("  ") || line.size() < 3 || line[2] == ' ') return std::string::npos;
    const size_t gap = line.find("  ", 2);
    return gap == std::string::npos ? gap : line.find_first_not_of(' ', gap);
}

// A meaning that stands `at` columns to the right, or further to the left where there is no room.
std::string placed(const std::string& meaning, size_t at, size_t width) {
    const size_t place = at + kMeaningLeast <= width ? at : kMeaningBelow;
    return std::string(place, ' ') + wrapped(meaning, std::max(width, place + 1) - place, place);
}

std::string folded_line(const std::string& line, size_t width) {
    if (width_of(line) <= width) return line;
    const size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string::npos) return wrapped(line, width, 0);
    if (begin >= kMeaningBelow) return placed(line.substr(begin), begin, width);
    const size_t at = meaning_at(line);
    if (at == std::string::npos) return line;
    const std::string below = placed(line.substr(at), at, width);
    const bool beside = at + kMeaningLeast <= width;
    if (beside) return line.substr(0, at) + below.substr(at);
    return line.substr(0, line.find_last_not_of(' ', at - 1) + 1) + "\n" + below;
}

}  // namespace

size_t columns_of(int fd) {
    struct winsize size = {};
    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) return size.ws_col;
    const char* given = std::getenv("COLUMNS");
    if (given == nullptr) return 0;
    size_t columns = 0;
    (void)std::from_chars(given, given + std::strlen(given), columns);
    return columns;
}

size_t width_of(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
        return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U;
    }));
}

std::string counted(uint64_t number, const std::string& noun) {
    return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

std::string wrapped(const std::string& text, size_t width, size_t indent) {
    if (width == 0) return text;
    std::string all;
    size_t column = 0;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find(' ', at), text.size());
        const std::string word = text.substr(at, end - at);
        if (column != 0 && column + 1 + width_of(word) > width) {
            all += "\n" + std::string(indent, ' ');
            column = 0;
        } else if (column != 0) {
            all += ' ';
            ++column;
        }
        all += word;
        column += width_of(word);
        at = end + 1;
    }
    return all;
}

std::string wrapped_lines(const std::string& text, size_t width, size_t indent) {
    std::string all;
    for (size_t at = 0; at < text.size();) {
        const size_t end = std::min(text.find('\n', at), text.size());
        const std::string line = text.substr(at, end - at);
        const size_t head = width_of(line) <= width ? line.size() : std::min(indent, line.size());
        all += line.substr(0, head) +
               wrapped(line.substr(head), std::max(width, indent + 1) - indent, indent) + "\n";
        at = end + 1;
    }
    return all;
}

std::string folded_help(const std::string& help, size_t width) {
    std::string all;
    for (size_t at = 0; at < help.size();) {
        const size_t end = std::min(help.find('\n', at), help.size());
        all += folded_line(help.substr(at, end - at), width) + "\n";
        at = end + 1;
    }
    return all;
}

size_t columns_for_output() {
    const size_t columns = columns_of(STDOUT_FILENO);
    return columns == 0 ? kUsualColumns : columns;
}

std::string help_for_output(const std::string& help) {
    return folded_help(help, columns_for_output());
}

}  // namespace dibs
