// broker/arguments.cpp -- parses dibsd's command line.
// SPDX-License-Identifier: Apache-2.0
#include "broker/arguments.hpp"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <set>

#include "broker/text/line_wrap.hpp"
#include "broker/text/number_option.hpp"
#include "broker/text/parse_error.hpp"
#include "broker/text/spelling.hpp"
#include "broker/text/terminal_text.hpp"
#include "shm/layout.hpp"

namespace dibs {

namespace {

constexpr NumberRange kDescriptors = {0, INT32_MAX};

// What the parser could not place: a misspelt option, or a word too many.
std::string misplaced(const CLI::App& app) {
    std::set<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
        if (option->get_group().empty()) continue;  // not for people
        for (const std::string& one : option->get_lnames())
            known.insert("--" + one);
    }
    for (const std::string& word : app.remaining()) {
        if (word.size() > 1 && word.front() == '-') return no_such_option(word, known);
    }
    return app.remaining_size() == 0 ? ""
                                     : "\"" + app.remaining().front() + "\" is a word too many";
}

// An empty one is a script's empty variable, and would stand for no option.
std::string has_name(const std::string& file) {
    return file.empty() ? "the file's name is empty" : "";
}

int complain(const std::string& what) {
    std::cerr << "dibsd: " << harmless(what) << "\nSee dibsd --help.\n";
    return 2;
}

// The exit code: 1 if it could not be written. A reader that stops reading is no error.
int print(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    if (std::fflush(stdout) == 0 || errno == EPIPE) return 0;
    const char* why = errno == EBADF ? "it is closed" : std::strerror(errno);
    std::fprintf(stderr, "dibsd: cannot write to standard output: %s\n", why);
    return 1;
}

}  // namespace

std::vector<std::string> Arguments::options() const {
    std::vector<std::string> words;
    if (!config.empty()) words.insert(words.end(), {"--config", config});
    if (!socket.empty()) words.insert(words.end(), {"--socket", socket});
    if (multi_user) words.emplace_back("--multi-user");
    if (no_standby) words.emplace_back("--no-standby");
    return words;
}

std::optional<Arguments> parse_arguments(int argc, char** argv, int* exit_code) {
    Arguments arguments;
    CLI::App app("dibsd hands out warm, exclusive slots to the processes of this host.", "dibsd");
    app.add_option("-c,--config", arguments.config, "configuration file")->check(has_name);
    app.add_option("--check-config", arguments.check_config, "check this file and exit")
        ->check(has_name);
    app.add_option("--socket", arguments.socket, "listen on this path")
        ->check([](const std::string& path) {
            return path.empty() ? std::string("a path is needed, and none is there")
                                : std::string();
        });
    add_number_option(&app,
                      "--state-fd",
                      &arguments.state_fd,
                      kDescriptors,
                      "memfd with the STATE to go on from");
    app.add_option("--load", arguments.load, "snapshot of dibs dump to go on from")
        ->check(has_name)
        ->excludes("--state-fd");
    add_number_option(
        &app, "--ready-fd", &arguments.ready_fd, kDescriptors, "descriptor for the ready line");
    app.add_flag("--multi-user",
                 arguments.multi_user,
                 "serve users who do not trust each other; refuse where one could be the broker's");
    app.add_flag("--no-keeper",
                 arguments.no_keeper,
                 "one process alone: when it dies, so does all that it holds");
    app.add_flag(
           "--no-standby",
           arguments.no_standby,
           "start the next broker only when this one has died: half the memory, and a takeover "
           "that takes longer")
        ->excludes("--no-keeper");
    add_number_option(&app, "--link", &arguments.link_fd, kDescriptors)->group("");
    add_number_option(&app, "--keep", &arguments.keep_fd, kDescriptors)->group("");
    add_number_option(&app, "--ahead", &arguments.ahead_kib, {})->group("")->needs("--link");
    app.set_version_flag("-V,--version",
                         "dibsd " DIBS_VERSION ", layout " + std::to_string(shm::kLayoutVersion));
    app.allow_extras();
    try {
        app.parse(argc, argv);
        const std::string what = misplaced(app);
        if (what.empty()) return arguments;
        *exit_code = complain(what);
    } catch (const CLI::CallForVersion& version) {
        *exit_code = print(std::string(version.what()) + "\n");
    } catch (const CLI::Success&) {
        *exit_code = print(help_for_output(app.help()));
    } catch (const CLI::ParseError& error) {
        const std::string what = misplaced(app);
        *exit_code = complain(what.empty() ? parse_error_text(error) : what);
    }
    return std::nullopt;
}

}  // namespace dibs
