// broker/ctl/discover/discover.cpp -- `dibs discover gpu`: has each vendor's tool list its GPUs.
// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
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

struct Tool {
    const char* name;
    const char* command;
};

// An older amd-smi has no -e. rocm-smi is older yet, and asked where there is no amd-smi.
constexpr Tool kTools[] = {
    {"nvidia-smi",
     "nvidia-smi -L && nvidia-smi --query-gpu=uuid,memory.total --format=csv,noheader"},
    {"amd-smi",
     "{ amd-smi list -e --json 2>/dev/null || amd-smi list --json; } && "
     "amd-smi static --asic --vram --json"},
    {"rocm-smi",
     "command -v amd-smi >/dev/null && exit 127; "
     "rocm-smi --showuniqueid --showproductname --showmeminfo vram --json"},
    {"xpu-smi",
     "xpu-smi discovery -j && for n in $(xpu-smi discovery --dump 1 | grep -x '[0-9]*'); "
     "do xpu-smi discovery -d $n -j; done"}};

// What it prints; nothing: there is no such tool.
std::optional<std::string> said_by(const Tool& tool) {
    const std::string command = std::string("export LC_ALL=C; exec 2>&1; ") + tool.command;
    std::FILE* pipe = popen(command.c_str(), "re");
    if (pipe == nullptr) throw Failure(kExitFailed, std::string("popen: ") + std::strerror(errno));
    std::string text;
    char bytes[4096];
    while (const size_t count = std::fread(bytes, 1, sizeof bytes, pipe))
        text.append(bytes, count);
    const int status = pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return text;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kExitNoCommand) return std::nullopt;
    throw Failure(kExitFailed,
                  std::string(tool.name) + " failed: " + text.substr(0, text.find('\n')) +
                      "; of another vendor's GPUs, --listing FILE reads what its tool printed");
}

std::vector<Listing> listings_here() {
    std::vector<Listing> all;
    for (const Tool& tool : kTools) {
        const auto said = said_by(tool);
        if (said) all.push_back(read_listing(*said, tool.name));
    }
    if (!all.empty()) return all;
    throw Failure(kExitNotFound,
                  "none of nvidia-smi, amd-smi, rocm-smi and xpu-smi is here, which list GPUs: "
                  "install that of your GPUs' driver, or give --listing FILE what it printed "
                  "elsewhere");
}

std::string bytes_of(const std::string& file) {
    try {
        return file == "-" ? file_bytes(STDIN_FILENO, file) : file_bytes(file);
    } catch (const std::runtime_error& error) {
        throw Failure(kExitFailed, error.what());
    }
}

// Vendors whose tools list no GPU are left out. More than one: each names its own pools.
std::string pools_of(std::vector<Listing> listings, const std::string& pool, bool all) {
    std::erase_if(listings, [](const Listing& listing) { return listing.gpus.empty(); });
    if (listings.empty()) throw Failure(kExitNotFound, "no GPU is listed");
    std::string text;
    for (Listing& listing : listings) {
        if (!text.empty()) text += "\n";
        if (!all) text += keep_inside(&listing);
        text += gpu_pools(listing, listings.size() == 1 ? pool : pool + "-" + listing.vendor->name);
    }
    if (text.find("[[pool]]") != std::string::npos) return text;
    throw Failure(kExitNotFound, text.substr(2, text.find('\n') - 2));
}

}  // namespace

int run_discover(int argc, char** argv) {
    std::string what;
    std::string file;
    std::string pool = "gpu";
    Arguments arguments(
        "discover",
        "Prints pools of the GPUs that nvidia-smi, amd-smi (or rocm-smi) and xpu-smi "
        "list, for dibsd's configuration: one of all whole GPUs, and one for each "
        "profile of MIG devices.");
    arguments.operand("gpu", &what, "the word gpu");
    arguments.text("--listing",
                   &file,
                   "read what one of these tools printed instead; - is standard input",
                   "FILE");
    arguments.text(
        "--pool", &pool, "the pool's name, or the beginning of several; else gpu", "NAME");
    bool all = false;
    arguments.flag("--all",
                   &all,
                   "also GPUs that CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES, "
                   "HIP_VISIBLE_DEVICES or ZE_AFFINITY_MASK here leave out");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    if (what != "gpu") {
        throw Failure(kExitUsage, "\"" + what + "\": dibs can only discover gpu");
    }
    if (!shm::is_pool_name(pool.data(), pool.size())) {
        throw Failure(kExitUsage, "--pool: " + std::string(shm::kPoolNameRule));
    }
    const std::string text =
        pools_of(file.empty() ? listings_here() : std::vector{read_listing(bytes_of(file), file)},
                 pool,
                 all);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0 && errno != EPIPE) {
        throw Failure(kExitFailed, std::string("standard output: ") + std::strerror(errno));
    }
    return kExitOk;
}

}  // namespace dibs::ctl
