// broker/ctl/discover/discover.cpp -- `dibs discover gpu`: prints pools of the GPUs of this host.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "broker/config/file_bytes.hpp"
#include "broker/ctl/arguments.hpp"
#include "broker/ctl/discover/listing.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/subcommand.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {

namespace {

constexpr const char* kList = "LC_ALL=C nvidia-smi -L";
constexpr const char* kMemory =
    "LC_ALL=C nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader";

// What it prints.
std::string said_by(const std::string& command) {
    std::FILE* pipe = popen((command + " 2>&1").c_str(), "re");
    if (pipe == nullptr) throw Failure(kExitFailed, command + ": " + std::strerror(errno));
    std::string text;
    char bytes[4096];
    while (const size_t count = std::fread(bytes, 1, sizeof bytes, pipe))
        text.append(bytes, count);
    const int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNoCommand) {
        throw Failure(kExitNotFound,
                      "nvidia-smi is not here, which lists GPUs; --listing FILE reads what it "
                      "printed elsewhere");
    }
    throw Failure(kExitFailed, command + " failed: " + text.substr(0, text.find('\n')));
}

std::string listing_of(const std::string& file) {
    if (file.empty()) {
        const std::string list = said_by(kList);  // it says first what is wrong
        return list + said_by(kMemory);
    }
    try {
        return file == "-" ? file_bytes(STDIN_FILENO, file) : file_bytes(file);
    } catch (const std::runtime_error& error) {
        throw Failure(kExitFailed, error.what());
    }
}

}  // namespace

int run_discover(int argc, char** argv) {
    std::string what;
    std::string file;
    std::string pool = "gpu";
    Arguments arguments("discover",
                        "Prints pools of the GPUs that nvidia-smi lists, for dibsd's "
                        "configuration: one of all whole GPUs, and one for each profile of MIG "
                        "devices.");
    arguments.operand("gpu", &what, "the word gpu");
    arguments.text("--listing",
                   &file,
                   "read what nvidia-smi -L printed, and \"UUID, memory\", instead; - is standard "
                   "input",
                   "FILE");
    arguments.text(
        "--pool", &pool, "the pool's name, of MIG devices its beginning; else gpu", "NAME");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (what != "gpu") {
        throw Failure(kExitUsage, "\"" + what + "\": dibs can only discover gpu");
    }
    if (!shm::is_pool_name(pool.data(), pool.size())) {
        throw Failure(kExitUsage, "--pool: " + std::string(shm::kPoolNameRule));
    }
    const std::vector<Gpu> gpus = read_gpus(listing_of(file), file.empty() ? "nvidia-smi" : file);
    if (gpus.empty()) throw Failure(kExitNotFound, "no GPU is listed");
    const std::string text = gpu_pools(gpus, pool);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0 && errno != EPIPE) {
        throw Failure(kExitFailed, std::string("standard output: ") + std::strerror(errno));
    }
    return kExitOk;
}

}  // namespace dibs::ctl
