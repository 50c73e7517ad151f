// broker/ctl/output/output.hpp -- a subcommand's standard output: its form, its width, its errors.
//
// Data goes to standard output, messages to standard error. If the reader of the output stops
// reading, the tool ends quietly. A full disk or a closed descriptor is reported.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "broker/ctl/arguments.hpp"
#include "broker/ctl/output/sheet.hpp"

namespace dibs::ctl {

// That it could not be written, and why; 0: the cause is not known.
std::string unwritten(int error);

// Failure where standard output is closed: otherwise the user would learn it after a long wait.
void require_output();

class Output {
  public:
    // Adds -o and --socket.
    explicit Output(Arguments& arguments);
    // --socket alone.
    struct TextOnly {};
    static constexpr TextOnly kTextOnly = {};
    Output(Arguments& arguments, TextOnly);

    void show_rows(const Sheet& sheet);
    void show_record(const Sheet& sheet);
    // A sentence, in the table's form only.
    void say(const std::string& sentence);
    [[nodiscard]] Form form() const { return form_of(word_); }
    [[nodiscard]] const std::string& socket() const { return socket_; }

    // What is there, for a caller that writes it itself.
    [[nodiscard]] std::string take() { return std::exchange(text_, std::string()); }
    // Writes this at once; false if there is no reader.
    bool write(const std::string& text);
    // Writes what is there. The exit code: `wanted` if it was written, or the reader had stopped.
    int finish(int wanted);
    // The same at once, for what is shown piece by piece; false if there is no reader.
    bool flush();

  private:
    std::string socket_;
    std::string word_ = "table";
    std::string text_;
};

}  // namespace dibs::ctl
