// demo/private_broker.cpp -- starts dibsd in a temporary folder and reads its output.
// SPDX-License-Identifier: Apache-2.0
#include "demo/private_broker.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

namespace dibs::ctl::demo {

namespace {

constexpr auto kReadyWithin = std::chrono::seconds(60);

// A claim's payload and a slot's attributes fit one block of the broker's arena each.
constexpr uint32_t kArenaBlock = 512;

bool runs(const std::string& program) {
    return std::filesystem::is_regular_file(program) && access(program.c_str(), X_OK) == 0;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
    const char* place = std::getenv("TMPDIR");
    std::string pattern = place != nullptr && *place != '\0' ? place : "/tmp";
    pattern += "/dibs-demo-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) {
        throw std::system_error(errno, std::generic_category(), "temporary folder " + pattern);
    }
    path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
    remove();
}

bool TemporaryFolder::remove() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    return !std::filesystem::exists(path_, ignored);
}

std::string broker_configuration(const BrokerSizes& sizes, const std::string& socket) {
    const bool counted = sizes.shape == PoolShape::kCounted;
    const std::string claims = std::to_string(sizes.claims);
    std::string text = "socket = \"" + socket + "\"\nlog_level = \"info\"\n";
    text += "[limits]\npools = 1\nsessions = " + std::to_string(sizes.sessions) +
            "\nslots = " + std::to_string(sizes.slots + 1) + "\nclaims = " + claims +
            "\nleases = " + claims + "\narena = \"" +
            std::to_string(uint64_t{kArenaBlock} * (sizes.claims + sizes.slots + 64)) + "B\"\n";
    text += "[[pool]]\nname = \"" + std::string(kPoolName) + "\"\nbacklog_max = " + claims + "\n";
    if (counted) {
        text += "kind = \"counted\"\nslots = " + std::to_string(sizes.slots) + "\n";
    } else {
        text += "kind = \"worker\"\nattributes_max = 64\npayload_max = 256\nunconfirmed_max = " +
                std::to_string(sizes.slots) + "\nreservation_ttl = \"10min\"\n";
    }
    return text;
}

std::string own_program() {
    return std::filesystem::read_symlink("/proc/self/exe").string();
}

std::string broker_program() {
    const char* given = std::getenv("DIBS_DIBSD");
    if (given != nullptr && *given != '\0') return given;
    const std::filesystem::path folder = std::filesystem::path(own_program()).parent_path();
    const std::string beside = (folder / "dibsd").string();
    const std::string built = (folder.parent_path() / "dibsd").string();
    for (const std::string& program : {beside, built})
        if (runs(program)) return program;
    throw std::runtime_error("there is no broker program, neither " + beside + " nor " + built +
                             "; install dibsd beside dibs, or set DIBS_DIBSD to its path");
}

PrivateBroker::PrivateBroker(const std::string& folder, const BrokerSizes& sizes)
    : socket_(folder + "/dibs.sock") {
    const std::string program = broker_program();
    if (!runs(program)) {
        throw std::runtime_error("there is no broker program " + program +
                                 ", which DIBS_DIBSD names");
    }
    const std::string file = folder + "/dibsd.toml";
    std::ofstream out(file);
    out << broker_configuration(sizes, socket_);
    out.close();
    if (!out) throw std::runtime_error("cannot write " + file);
    ChildConfig config;
    config.command = {program, "--no-keeper", "--config", file};
    config.output = output_.write_end();
    process_ = std::make_unique<Child>("broker", config);
    output_.close_write_end();
    await_ready();
}

void PrivateBroker::await_ready() {
    if (output_.await_ready(1, kReadyWithin)) return;
    // Its output may close a moment before it can be reaped.
    const auto status = process_->wait(output_.closed() ? 1000 : 0);
    const std::string why = status ? "ended before it was ready (" + shown_status(*status) + ")"
                                   : "was not ready within 60 s";
    throw std::runtime_error("the broker " + why + "; it said:\n" + output_.last_words());
}

}  // namespace dibs::ctl::demo
