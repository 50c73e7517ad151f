// broker/ctl/top/screen.cpp -- draws lines with ncurses.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/top/screen.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdlib>
#include <string>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/top/bar.hpp"
#include "broker/ctl/top/signals.hpp"
#include "broker/text/terminal_text.hpp"

#define NCURSES_NOMACROS
#include <ncurses.h>

namespace dibs::ctl::top {

namespace {

enum Colour : short { kGreen = 1, kYellow, kRed, kCyan };

// What makes the terminal as before, without the pauses that some descriptions have.
std::string farewell() {
    std::string all;
    for (const char* name : {"sgr0", "cnorm", "rmkx", "rmcup"}) {
        const char* text = tigetstr(name);
        if (text == nullptr || text == reinterpret_cast<const char*>(-1)) continue;
        std::string plain = text;
        for (size_t at = plain.find("$<"); at != std::string::npos; at = plain.find("$<"))
            plain.erase(at, plain.find('>', at) - at + 1);
        all += plain;
    }
    return all;
}

attr_t pair(Colour colour) {
    return static_cast<attr_t>(COLOR_PAIR(colour));
}

attr_t colour_of(char letter) {
    switch (letter) {
        case kLeased:
            return pair(kGreen) | A_BOLD;
        case kReserved:
            return pair(kCyan);
        case kRecovering:
            return pair(kYellow);
        case kUnknown:
            return pair(kRed);
        default:
            return A_NORMAL;
    }
}

attr_t look_of(Style style) {
    switch (style) {
        case Style::kHeading:
            return A_BOLD;
        case Style::kChosen:
            return A_REVERSE;
        case Style::kMessage:
            return A_STANDOUT;
        case Style::kPlain:
            break;
    }
    return A_NORMAL;
}

// Behind the last column the library would go on in the next line.
std::string clipped(const std::string& text, size_t width) {
    size_t at = 0;
    for (size_t column = 0; column < width && at < text.size(); ++column)
        at += std::max<size_t>(utf8_size(std::string_view(text).substr(at)), 1);
    return text.substr(0, at);
}

void put(int row, size_t at, const std::string& text, attr_t look) {
    attrset(static_cast<int>(look));
    mvaddnstr(row, static_cast<int>(at), text.data(), static_cast<int>(text.size()));
}

void colour_bar(int row, const std::string& text) {
    const size_t begin = text.find('[');
    const size_t end = text.find(']', begin);
    if (begin == std::string::npos || end == std::string::npos) return;
    for (size_t at = begin + 1; at < end && at < Screen::width();) {
        const size_t run = std::min(text.find_first_not_of(text[at], at), end);
        put(row, at, text.substr(at, run - at), colour_of(text[at]));
        at = run;
    }
}

}  // namespace

Screen::Screen() {
    if (isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1) {
        throw Failure(kExitUsage, "standard input and output are no terminal: --batch needs none");
    }
    (void)std::setlocale(LC_CTYPE, "");
    const char* term = std::getenv("TERM");
    const std::string name = term == nullptr ? "" : term;
    const bool known = newterm(nullptr, stdout, stdin) != nullptr;
    const char* go = known ? tigetstr("cup") : nullptr;
    if (go == nullptr || go == reinterpret_cast<const char*>(-1)) {
        if (known) endwin();
        throw Failure(kExitUsage,
                      "a terminal of the kind \"" + name +
                          "\" (TERM) cannot be drawn on: --batch needs none");
    }
    Signals::guard(farewell());
    cbreak();
    noecho();
    keypad(stdscr, TRUE);
    nodelay(stdscr, TRUE);
    set_escdelay(50);
    curs_set(0);
    const char* off = std::getenv("NO_COLOR");
    colours_ = has_colors() && (off == nullptr || *off == '\0') && start_color() == OK;
    if (!colours_) return;
    const short ground = use_default_colors() == OK ? short{-1} : short{COLOR_BLACK};
    init_pair(kGreen, COLOR_GREEN, ground);
    init_pair(kYellow, COLOR_YELLOW, ground);
    init_pair(kRed, COLOR_RED, ground);
    init_pair(kCyan, COLOR_CYAN, ground);
}

// A terminal that has no other page to go back to keeps the picture, and goes on below it.
Screen::~Screen() {
    Signals::drawing(true);
    move(LINES - 1, 0);
    clrtoeol();
    wrefresh(stdscr);
    endwin();
    Signals::drawing(false);
}

size_t Screen::width() {
    return static_cast<size_t>(COLS);
}

size_t Screen::height() {
    return static_cast<size_t>(LINES);
}

void Screen::fit() {
    struct winsize size = {};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        return;
    resizeterm(size.ws_row, size.ws_col);
    clearok(curscr, TRUE);
}

void Screen::draw(const std::vector<Line>& lines) const {
    Signals::drawing(true);
    werase(stdscr);
    for (size_t row = 0; row < lines.size() && row < height(); ++row) {
        const Line& line = lines[row];
        std::string text = clipped(line.text, width());
        if (line.style == Style::kChosen && text.size() < width()) text.resize(width(), ' ');
        put(static_cast<int>(row), 0, text, look_of(line.style));
        if (line.has_bar && colours_) colour_bar(static_cast<int>(row), line.text);
    }
    wrefresh(stdscr);
    Signals::drawing(false);
}

int Screen::key() {
    errno = 0;
    int key = wgetch(stdscr);
    while (key == KEY_RESIZE)
        key = wgetch(stdscr);
    switch (key) {
        case ERR:
            return errno == EIO ? static_cast<int>(Key::kEnd) : static_cast<int>(Key::kNone);
        case KEY_UP:
        case 'k':
            return static_cast<int>(Key::kUp);
        case KEY_DOWN:
        case 'j':
            return static_cast<int>(Key::kDown);
        case KEY_PPAGE:
            return static_cast<int>(Key::kPageUp);
        case KEY_NPAGE:
            return static_cast<int>(Key::kPageDown);
        default:
            return key < 256 ? key : static_cast<int>(Key::kOther);
    }
}

}  // namespace dibs::ctl::top
