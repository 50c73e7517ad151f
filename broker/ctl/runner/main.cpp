// broker/ctl/runner/main.cpp -- `dibs-runner`: the provisioner of elastic pools, as a service.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "broker/ctl/arguments.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/talk.hpp"
#include "broker/ctl/runner/command_file.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/ctl/worker/runner.hpp"
#include "broker/text/terminal_text.hpp"

namespace {

using namespace dibs::ctl;

constexpr const char* kAbout =
    "dibs-runner makes and stops the workers of elastic pools, as the broker orders them: each "
    "type "
    "by the command that its own file says.";

constexpr const char* kFooter =
    "TERM or INT stops it in order: no more uses, the present ones may end for their "
    "drain_timeout; a second one ends them. HUP reads the file again: types that are gone drain, "
    "what has changed applies to processes that are started, and a file with a mistake changes "
    "nothing. Exit codes: 0 stopped in order, or the checked file is good, 2 a mistake in the "
    "command line or in the file, 125 it cannot serve.";

// Root's is the host's.
std::string default_file() {
    if (geteuid() == 0) return "/etc/dibs/runner.toml";
    const char* config = std::getenv("XDG_CONFIG_HOME");
    if (config != nullptr && *config != '\0') return std::string(config) + "/dibs/runner.toml";
    const char* home = std::getenv("HOME");
    return std::string(home != nullptr ? home : "") + "/.config/dibs/runner.toml";
}

std::optional<std::vector<worker::Options>> read(const std::string& path,
                                                 const std::string& socket) {
    CommandFile file = read_command_file(path, socket);
    for (const std::string& mistake : file.mistakes)
        talk("dibs-runner: " + dibs::harmless(mistake));
    if (!file.mistakes.empty()) return std::nullopt;
    return std::move(file.types);
}

int run(int argc, char** argv) {
    std::string config = default_file();
    std::string check;
    std::string socket;
    bool version = false;
    Arguments arguments("dibs-runner", kAbout);
    arguments.text("-c,--config",
                   &config,
                   "the file of its commands, which root or its own user alone may write to "
                   "(/etc/dibs/runner.toml, or ~/.config/dibs/runner.toml)",
                   "FILE");
    arguments.text("--check", &check, "check this file and exit", "FILE");
    arguments.text("--socket", &socket, "the broker's socket", "PATH");
    arguments.flag("-V,--version", &version, "print the version");
    arguments.footer(kFooter);
    if (const auto exit_code = arguments.parse(argc, argv)) return *exit_code;
    if (version) {
        std::puts("dibs-runner " DIBS_VERSION);
        return std::fflush(stdout) == 0 ? kExitOk : kExitFailed;
    }
    ignore_lost_readers();
    if (!check.empty()) return read(check, socket) ? kExitOk : kExitUsage;
    const auto types = read(config, socket);
    if (!types) return kExitUsage;
    return worker::run_crews(*types, [&] {
        auto again = read(config, socket);
        if (!again)
            talk("dibs-runner: goes on as before: " + dibs::harmless(config) + " is not taken");
        return again;
    });
}

}  // namespace

int main(int argc, char** argv) {
    // Of what is closed the number would be the next descriptor's.
    int fd = 0;
    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0) close(fd);
    try {
        return run(argc, argv);
    } catch (const Failure& failure) {
        talk("dibs-runner: " + dibs::harmless(failure.what()));
        return failure.exit_code();
    } catch (const std::exception& error) {
        talk("dibs-runner: " + dibs::harmless(error.what()));
        return kExitOwnFailure;
    }
}
