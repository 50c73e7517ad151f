// broker/ctl/admin/dump.cpp -- `dibs dump`: writes the whole state as one snapshot.
//
// The running broker sends it through an admin conversation, slice by slice; a state that was left
// behind is read from a private copy. A file gets its name once it is whole.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "broker/core/core.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/admin/state_check.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"
#include "broker/snapshot/dump.hpp"
#include "shm/descriptor.hpp"

namespace dibs::ctl {

namespace {

std::vector<uint8_t> dump_of_broker(const std::string& socket) {
    AdminClient client(socket);
    admin::RequestT request;
    request.ask = admin::Ask::dump;
    std::vector<uint8_t> bytes;
    client.pages(request, {}, [&](admin::AnswerT& answer) {
        bytes.insert(bytes.end(), answer.bytes.begin(), answer.bytes.end());
    });
    return bytes;
}

std::vector<uint8_t> dump_of_state(const std::string& path) {
    const StateCopyOfFile copy(path);
    std::string why = core::state_refusal(copy.bytes());
    if (why.empty()) why = core::rows_refusal(copy.bytes());
    if (!why.empty()) throw Failure(kExitFailed, path + ": " + why);
    try {
        return snapshot::dump(copy.bytes());
    } catch (const snapshot::SnapshotError& error) {
        throw Failure(kExitFailed, path + ": " + error.what());
    }
}

// An empty path is standard output's.
[[noreturn]] void fail(const std::string& path) {
    throw Failure(kExitFailed,
                  path.empty() ? unwritten(errno) : path + ": " + std::strerror(errno));
}

void write_all(int fd, std::span<const uint8_t> bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t written = write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) fail(path);
        bytes = bytes.subspan(static_cast<size_t>(written));
    }
}

void write_file(const std::string& path, std::span<const uint8_t> bytes) {
    struct stat about = {};
    const bool plain = stat(path.c_str(), &about) != 0 || S_ISREG(about.st_mode);
    const std::string draft = plain ? path + ".draft" : path;
    const shm::Descriptor file(open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file.valid()) fail(path);
    write_all(file.get(), bytes, path);
    if (!plain) return;
    if (fsync(file.get()) != 0 || rename(draft.c_str(), path.c_str()) != 0) fail(path);
}

}  // namespace

int run_dump(int argc, char** argv) {
    Arguments arguments("dump",
                        "Writes the whole state of the scheduler as one snapshot, as it stands "
                        "between two turns: the running broker's, without holding it up, or that "
                        "of a state left behind. Administrators may. dibs load reads it.");
    std::string socket;
    std::string state;
    std::vector<std::string> files;
    arguments.text("--socket", &socket, "the broker's socket", "PATH");
    arguments.text(
        "--state", &state, "a state that was left behind, instead of the broker's", "FILE");
    arguments.words("FILE", &files, "where to; - or none is standard output");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (files.size() > 1) throw Failure(kExitUsage, "one FILE is enough");
    const std::string file = files.empty() ? "-" : files.front();
    if (file == "-" && isatty(STDOUT_FILENO) != 0) {
        throw Failure(kExitUsage, "a snapshot is no text: name a FILE, or redirect the output");
    }
    const std::vector<uint8_t> bytes =
        state.empty() ? dump_of_broker(socket) : dump_of_state(state);
    if (file == "-") {
        write_all(STDOUT_FILENO, bytes, {});
    } else {
        write_file(file, bytes);
    }
    return kExitOk;
}

}  // namespace dibs::ctl
