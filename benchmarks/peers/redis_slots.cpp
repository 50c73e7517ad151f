// benchmarks/peers/redis_slots.cpp -- slots as elements of a Redis list.
// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <charconv>
#include <initializer_list>
#include <stdexcept>

#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/line_socket.hpp"
#include "benchmarks/peers/server_process.hpp"
#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

namespace {

// Both say which worker holds the slot, so that a janitor could take back what a dead one had.
constexpr std::string_view kTakeScript =
    "local slot = redis.call('RPOP', KEYS[1]) "
    "if slot then redis.call('HSET', KEYS[2], slot, ARGV[1]) end return slot";
constexpr std::string_view kGiveScript =
    "redis.call('HDEL', KEYS[2], ARGV[1]) return redis.call('LPUSH', KEYS[1], ARGV[1])";

class RedisSlots final : public SlotSource {
  public:
    RedisSlots(uint32_t slots, const Cpus& cpus, RedisWay way)
        : path_(folder_.file("redis.sock")),
          server_({{find_program("redis-server"),
                    "--port",
                    "0",
                    "--unixsocket",
                    path_,
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--loglevel",
                    "warning"},
                   cpus,
                   folder_.file("log")},
                  [this] { return socket_.connect_to(path_); }),
          way_(way) {
        for (uint32_t i = 0; i < slots; ++i)
            ask({"LPUSH", "free", std::to_string(i)});
        take_ = ask({"SCRIPT", "LOAD", kTakeScript});
        give_ = ask({"SCRIPT", "LOAD", kGiveScript});
    }
    void attach(uint32_t worker) override {
        socket_ = {};
        if (!socket_.connect_to(path_)) throw std::runtime_error("no connection to " + path_);
        worker_ = std::to_string(worker);
        held_ = "held:" + worker_;
    }
    void claim() override {
        if (way_ == RedisWay::kPop) {
            slot_ = ask({"BRPOP", "free", "0"});
        } else if (way_ == RedisWay::kMove) {
            slot_ = ask({"BLMOVE", "free", held_, "RIGHT", "LEFT", "0"});
        } else {
            while ((slot_ = ask({"EVALSHA", take_, "2", "free", "held", worker_})).empty())
                sched_yield();
        }
    }
    void release() override {
        if (way_ == RedisWay::kPop) {
            ask({"LPUSH", "free", slot_});
        } else if (way_ == RedisWay::kMove) {
            ask({"LMOVE", held_, "free", "RIGHT", "LEFT"});
        } else {
            ask({"EVALSHA", give_, "2", "free", "held", slot_});
        }
    }
    [[nodiscard]] std::vector<pid_t> servers() const override { return {server_.pid()}; }

  private:
    std::string_view ask(std::initializer_list<std::string_view> words) {
        command_ = "*" + std::to_string(words.size()) + "\r\n";
        for (const std::string_view word : words) {
            command_ += "$" + std::to_string(word.size()) + "\r\n";
            command_.append(word) += "\r\n";
        }
        socket_.send(command_);
        return answer();
    }
    // Of an array the last element; empty where there is nothing.
    std::string_view answer() {
        const std::string_view line = socket_.line();
        if (line[0] == '-') throw std::runtime_error("Redis: " + std::string(line));
        int number = -1;
        std::from_chars(line.data() + 1, line.data() + line.size(), number);
        if (line[0] == '$') return number < 0 ? "" : socket_.line();
        std::string_view last = line;
        for (int i = 0; line[0] == '*' && i < number; ++i)
            last = answer();
        return last;
    }

    ScratchFolder folder_;
    std::string path_;
    LineSocket socket_;
    ServerProcess server_;
    RedisWay way_;
    std::string take_;  // hashes of the scripts
    std::string give_;
    std::string worker_;
    std::string held_;
    std::string slot_;
    std::string command_;
};

}  // namespace

Kind redis_kind(RedisWay way) {
    const char* name = way == RedisWay::kPop    ? "Redis, BRPOP and LPUSH"
                       : way == RedisWay::kMove ? "Redis, BLMOVE and LMOVE"
                                                : "Redis, Lua scripts";
    return {name,
            find_program("redis-server").empty() ? "the package redis-server is not installed" : "",
            [way](uint32_t slots, const Cpus& cpus) {
                return std::make_unique<RedisSlots>(slots, cpus, way);
            }};
}

}  // namespace dibs::bench
