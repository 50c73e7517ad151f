// broker/arguments.cpp -- dibsd's command line.
// SPDX-License-Identifier: Apache-2.0
#include "broker/arguments.hpp"

#include <CLI/CLI.hpp>

namespace dibs {

std::vector<std::string> Arguments::options() const {
    std::vector<std::string> words;
    if (!config.empty()) words.insert(words.end(), {"--config", config});
    if (!socket.empty()) words.insert(words.end(), {"--socket", socket});
    if (multi_user) words.emplace_back("--multi-user");
    return words;
}

std::optional<Arguments> parse_arguments(int argc, char** argv, int* exit_code) {
    Arguments arguments;
    CLI::App app("dibsd hands out warm, exclusive slots to the processes of this host.", "dibsd");
    app.add_option("-c,--config", arguments.config, "configuration file");
    app.add_option("--check-config", arguments.check_config, "check this file and exit");
    app.add_option("--socket", arguments.socket, "listen on this path");
    app.add_option("--state-fd", arguments.state_fd, "memfd with the STATE to go on from")
        ->check(CLI::NonNegativeNumber);
    app.add_option("--ready-fd", arguments.ready_fd, "descriptor for the ready line")
        ->check(CLI::NonNegativeNumber);
    app.add_flag("--multi-user",
                 arguments.multi_user,
                 "serve users who do not trust each other; refuse where one could be the broker's");
    app.add_flag("--no-keeper",
                 arguments.no_keeper,
                 "one process alone: when it dies, so does all that it holds");
    app.add_option("--link", arguments.link_fd)->group("")->check(CLI::NonNegativeNumber);
    app.add_option("--keep", arguments.keep_fd)->group("")->check(CLI::NonNegativeNumber);
    app.set_version_flag("--version", DIBS_VERSION);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        *exit_code = app.exit(error) == 0 ? 0 : 2;
        return std::nullopt;
    }
    return arguments;
}

}  // namespace dibs
