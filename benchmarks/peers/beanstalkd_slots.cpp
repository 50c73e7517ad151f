// benchmarks/peers/beanstalkd_slots.cpp -- slots as jobs of beanstalkd, by reserve and release.
// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>

#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/line_socket.hpp"
#include "benchmarks/peers/server_process.hpp"
#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

namespace {

class BeanstalkdSlots final : public SlotSource {
  public:
    BeanstalkdSlots(uint32_t slots, const Cpus& cpus)
        : path_(folder_.file("beanstalkd.sock")),
          server_({{find_program("beanstalkd"), "-l", "unix:" + path_}, cpus, folder_.file("log")},
                  [this] { return socket_.connect_to(path_); }) {
        for (uint32_t i = 0; i < slots; ++i) {
            socket_.send("put 0 0 3600 1\r\ns\r\n");
            socket_.expect("INSERTED");
        }
    }
    void attach(uint32_t /*worker*/) override {
        socket_ = {};
        if (!socket_.connect_to(path_)) throw std::runtime_error("no connection to " + path_);
    }
    void claim() override {
        constexpr std::string_view kReserved = "RESERVED ";
        socket_.send("reserve\r\n");
        const std::string_view found = socket_.expect(kReserved).substr(kReserved.size());
        job_ = found.substr(0, found.find(' '));
        socket_.expect("s");
    }
    void release() override {
        socket_.send("release " + job_ + " 0 0\r\n");
        socket_.expect("RELEASED");
    }
    [[nodiscard]] std::vector<pid_t> servers() const override { return {server_.pid()}; }

  private:
    ScratchFolder folder_;
    std::string path_;
    LineSocket socket_;
    ServerProcess server_;
    std::string job_;
};

}  // namespace

Kind beanstalkd_kind() {
    return {"beanstalkd, reserve and release",
            find_program("beanstalkd").empty() ? "the package beanstalkd is not installed" : "",
            [](uint32_t slots, const Cpus& cpus) {
                return std::make_unique<BeanstalkdSlots>(slots, cpus);
            }};
}

}  // namespace dibs::bench
