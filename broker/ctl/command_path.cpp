// broker/ctl/command_path.cpp -- searches $PATH before anything is claimed or started.
// A user who has waited for a slot should not learn only then that the command was misspelt.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/command_path.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <sstream>

#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

enum class Found { kNothing, kNotExecutable, kProgram };

Found look_at(const std::string& path) {
    struct stat status = {};
    if (stat(path.c_str(), &status) != 0) return Found::kNothing;
    if (S_ISDIR(status.st_mode) || access(path.c_str(), X_OK) != 0) return Found::kNotExecutable;
    return Found::kProgram;
}

Failure not_executable(const std::string& path) {
    return {kExitCannotExecute, "cannot execute " + path + ": it is no executable file for you"};
}

}  // namespace

std::string find_command(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        const Found found = look_at(name);
        if (found == Found::kNotExecutable) throw not_executable(name);
        if (found == Found::kNothing) throw Failure(kExitNoCommand, "there is no command " + name);
        return name;
    }
    const char* path = std::getenv("PATH");
    std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
    std::string refused;
    for (std::string folder; std::getline(folders, folder, ':');) {
        const std::string file = (folder.empty() ? "." : folder) + "/" + name;
        const Found found = name.empty() ? Found::kNothing : look_at(file);
        if (found == Found::kProgram) return file;
        if (found == Found::kNotExecutable && refused.empty()) refused = file;
    }
    if (!refused.empty()) throw not_executable(refused);
    throw Failure(kExitNoCommand, "there is no command \"" + name + "\" in the folders of PATH");
}

}  // namespace dibs::ctl
