// broker/text/parse_error.hpp -- words the parser's errors about a command line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace dibs {

inline std::string parse_error_text(const CLI::ParseError& error) {
    const std::string text = error.what();
    const bool mismatch = dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr;
    if (!mismatch || !text.ends_with(" missing")) return text;
    return "option " + text.substr(0, text.find(':')) + " needs a value";
}

}  // namespace dibs
