// broker/text/number_option.hpp -- adds an option that takes a whole number, for both programs.
//
// The parser's own numbers wrap around, so that -1 would be the largest one, and it prints a
// range's end as a floating-point number. This needs the parser's headers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "broker/config/quantity.hpp"

namespace dibs {

template <class Target>
CLI::Option* add_number_option(CLI::App* app,
                               const std::string& name,
                               Target* target,
                               NumberRange range,
                               const std::string& about = "") {
    const std::string shown = name.substr(name.rfind("--"));
    const auto take = [target, range, shown](const std::string& text) {
        const auto number = parse_number(text, range);
        if (!number) throw CLI::ValidationError(shown + ": " + no_number(text, range));
        *target = static_cast<Target>(*number);
    };
    return app->add_option_function<std::string>(name, take, about)->type_name("N");
}

}  // namespace dibs
