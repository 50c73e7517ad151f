// broker/ctl/arguments.cpp -- CLI11 behind a narrow door.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/arguments.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

struct Arguments::Parser {
    CLI::App app;
};

Arguments::Arguments(const std::string& subcommand, const std::string& about)
    : parser_(std::make_unique<Parser>()) {
    parser_->app.name("dibs " + subcommand);
    parser_->app.description(about);
}

Arguments::~Arguments() = default;

void Arguments::flag(const std::string& name, bool* target, const std::string& about) {
    parser_->app.add_flag(name, *target, about);
}

void Arguments::text(const std::string& name, std::string* target, const std::string& about) {
    parser_->app.add_option(name, *target, about);
}

void Arguments::number(const std::string& name, uint64_t* target, const std::string& about) {
    parser_->app.add_option(name, *target, about)->capture_default_str();
}

void Arguments::operands(const std::string& name,
                         std::vector<std::string>* target,
                         const std::string& about) {
    parser_->app.add_option(name, *target, about)->required();
}

std::optional<int> Arguments::parse(int argc, char** argv) {
    try {
        parser_->app.parse(argc, argv);
        return std::nullopt;
    } catch (const CLI::Success& help) {
        parser_->app.exit(help);
        return kExitOk;
    } catch (const CLI::ParseError& error) {
        std::cerr << parser_->app.get_name() << ": " << error.what() << '\n';
        return kExitUsage;
    }
}

}  // namespace dibs::ctl
