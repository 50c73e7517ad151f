// broker/ctl/output/output.cpp -- writes a subcommand's rows and records to standard output.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/output/output.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/text/line_wrap.hpp"
#include "broker/text/terminal_text.hpp"

namespace dibs::ctl {

namespace {

bool is_terminal() {
    return isatty(STDOUT_FILENO) == 1;
}

bool bold() {
    const char* term = std::getenv("TERM");
    const char* off = std::getenv("NO_COLOR");
    return is_terminal() && (off == nullptr || *off == '\0') && term != nullptr &&
           std::strcmp(term, "dumb") != 0;
}

}  // namespace

std::string unwritten(int error) {
    std::string text = "cannot write to standard output";
    if (error == 0) return text;
    return text + ": " + (error == EBADF ? "it is closed" : std::strerror(error));
}

void require_output() {
    const int flags = fcntl(STDOUT_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) throw Failure(kExitFailed, unwritten(EBADF));
}

Output::Output(Arguments& arguments, TextOnly) {
    signal(SIGPIPE, SIG_IGN);
    arguments.text(
        "--socket", &socket_, "the broker's socket; else DIBS_SOCKET, then its place", "PATH");
}

Output::Output(Arguments& arguments) {
    signal(SIGPIPE, SIG_IGN);
    arguments.text(
        "-o,--output", &word_, "table, json (one document) or jsonl (one line a row)", "FORM");
    arguments.text(
        "--socket", &socket_, "the broker's socket; else DIBS_SOCKET, then its place", "PATH");
}

void Output::show_rows(const Sheet& sheet) {
    switch (form()) {
        case Form::kTable:
            text_ += table_text(sheet, columns_of(STDOUT_FILENO), bold());
            return;
        case Form::kJson:
            text_ += json_text(sheet, false);
            return;
        case Form::kJsonLines:
            text_ += json_lines_text(sheet);
            return;
    }
}

void Output::show_record(const Sheet& sheet) {
    text_ += form() == Form::kTable ? record_text(sheet, columns_of(STDOUT_FILENO), bold())
                                    : json_text(sheet, true);
}

void Output::say(const std::string& sentence) {
    if (form() == Form::kTable)
        text_ += wrapped(harmless(sentence), columns_of(STDOUT_FILENO), 0) + "\n";
}

bool Output::flush() {
    size_t at = 0;
    while (at < text_.size()) {
        const ssize_t count = ::write(STDOUT_FILENO, text_.data() + at, text_.size() - at);
        if (count > 0) at += static_cast<size_t>(count);
        if (count >= 0 || errno == EINTR) continue;
        if (errno == EPIPE) return false;
        throw Failure(kExitFailed, unwritten(errno));
    }
    text_.clear();
    return true;
}

bool Output::write(const std::string& text) {
    text_ += text;
    return flush();
}

int Output::finish(int wanted) {
    (void)flush();
    return wanted;
}

}  // namespace dibs::ctl
