// broker/ctl/runner/command_file.cpp -- parses a runner's file and reports every mistake in it.
// SPDX-License-Identifier: Apache-2.0
#include "broker/ctl/runner/command_file.hpp"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <climits>
#include <cstring>
#include <map>
#include <stdexcept>
#include <utility>

#include "broker/config/config_section.hpp"
#include "broker/config/file_bytes.hpp"
#include "broker/ctl/command_path.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/labels.hpp"
#include "broker/ctl/output/who.hpp"
#include "shm/descriptor.hpp"
#include "shm/pool_name.hpp"

namespace dibs::ctl {

namespace {

using worker::Leftovers;
using worker::Lines;
using worker::Options;

constexpr size_t kFileMost = 1U << 20;
constexpr uint32_t kProcessesMax = 1000;
constexpr uint64_t kYear = 365ULL * 24 * 3600 * DIBS_SECOND;
constexpr size_t kNameMost = DIBS_NAME_MAX - 5;  // the process's number stands behind it
constexpr double kCpusMost = 4096;
constexpr double kPeriodUs = 100'000;

// What is the pool's, and where that is said.
constexpr std::pair<const char*, const char*> kOfThePool[] = {{"min", "workers_min"},
                                                              {"minimum", "workers_min"},
                                                              {"workers_min", "workers_min"},
                                                              {"spare", "spare"},
                                                              {"workers_max", "workers_max"},
                                                              {"idle_timeout", "idle_timeout"},
                                                              {"boot_timeout", "boot_timeout"}};

// Of a process that announces its slot itself the runner sees no use.
constexpr const char* kOfUses[] = {"lines",
                                   "labels",
                                   "attributes",
                                   "uses_max",
                                   "age_max",
                                   "use_max",
                                   "between",
                                   "leftovers",
                                   "ready_timeout",
                                   "line_max"};

// The bytes of a file that only root and this user may write to. std::runtime_error.
std::string guarded_bytes(const std::string& path) {
    const shm::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    struct stat about = {};
    if (!file.valid() || fstat(file.get(), &about) != 0)
        throw std::runtime_error(path + ": " + std::strerror(errno));
    if (!S_ISREG(about.st_mode)) throw std::runtime_error(path + ": is not a regular file");
    if (about.st_uid != 0 && about.st_uid != geteuid()) {
        throw std::runtime_error(path + ": belongs to user " + user_name(about.st_uid) +
                                 ", who could have any command run: it must be root's or yours "
                                 "(chown)");
    }
    if ((about.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        throw std::runtime_error(path +
                                 ": others may write to it, and could have any command run: "
                                 "chmod go-w " +
                                 path);
    }
    return file_bytes(file.get(), path, kFileMost);
}

std::string inaudible(std::string_view text) {
    return text.find('\0') != std::string_view::npos ? "a zero byte ends a text for a command" : "";
}

// One table [[worker]].
class Type {
  public:
    Type(const toml::table& table, Mistakes& mistakes)
        : section_(table, "a worker", mistakes), mistakes_(mistakes) {}

    Options read() {
        options_.speaker = "dibs-runner";
        options_.service = true;
        read_names();
        read_command();
        read_folder();
        read_user();
        read_environment();
        read_ready();
        read_uses();
        read_limits();
        for (const auto& [key, meant] : kOfThePool) {
            section_.forbid(key,
                            std::string("is the pool's: ") + meant +
                                " of its [[pool]] in dibsd's configuration");
        }
        section_.finish();
        return std::move(options_);
    }

  private:
    void read_names() {
        for (const auto& [key, text] :
             {std::pair{"pool", &options_.pool.name}, std::pair{"type", &options_.type}}) {
            const bool is_there = section_.text(key, *text);
            if (is_there && !shm::is_pool_name(text->data(), text->size()))
                section_.mistake(key, shm::kPoolNameRule);
        }
        if (!section_.has("pool")) section_.missing("pool");
        if (options_.type.empty()) options_.type = options_.pool.name;
        section_.count("max", options_.pool.count, 1, kProcessesMax);
        if (!section_.has("max")) section_.missing("max");
        const bool is_only = options_.type == options_.pool.name;
        options_.name = options_.pool.name + (is_only ? "" : "-" + options_.type);
        options_.name.resize(std::min(options_.name.size(), kNameMost));
        if (!text("name", options_.name)) return;
        check("name", [&] { check_name("name", options_.name); });
        if (options_.name.size() > kNameMost)
            section_.mistake("name", "at most 58 bytes; the process's number stands behind it");
    }

    void read_command() {
        const size_t mistakes = mistakes_.lines.size();
        options_.command = texts("command");
        if (!section_.has("command")) return section_.missing("command");
        if (mistakes_.lines.size() != mistakes) return;
        if (options_.command.empty() || options_.command.front().empty())
            return section_.mistake("command", "there is none: [\"/usr/bin/serve\", \"--fast\"]");
        const std::string& name = options_.command.front();
        if (name.find('/') != std::string::npos && name.front() != '/') {
            return section_.mistake(
                "command", in_quotes(name) + ": write its whole path, or a name that is in PATH");
        }
        check("command", [&] { options_.program = find_command(name); });
    }

    void read_folder() {
        text("folder", options_.folder);
        struct stat about = {};
        if (!options_.folder.empty() &&
            (options_.folder.front() != '/' || stat(options_.folder.c_str(), &about) != 0 ||
             !S_ISDIR(about.st_mode))) {
            section_.mistake("folder", in_quotes(options_.folder) + " is no folder's whole path");
        }
    }

    void read_user() {
        std::string name;
        if (!text("user", name)) return;
        const struct passwd* entry = getpwnam(name.c_str());
        if (entry == nullptr)
            return section_.mistake("user", "this host knows no user " + in_quotes(name));
        if (entry->pw_uid == geteuid()) return;
        if (geteuid() != 0) {
            return section_.mistake("user",
                                    "only root's runner has commands of other users, and this one "
                                    "is user " +
                                        user_name(geteuid()) + "'s");
        }
        worker::OtherUser user = {entry->pw_uid, entry->pw_gid, {}, entry->pw_name, entry->pw_dir};
        int count = 0;
        (void)getgrouplist(user.name.c_str(), user.gid, nullptr, &count);
        user.groups.resize(static_cast<size_t>(count));
        (void)getgrouplist(user.name.c_str(), user.gid, user.groups.data(), &count);
        for (const auto& [variable, value] : {std::pair{"HOME=", user.home},
                                              std::pair{"USER=", user.name},
                                              std::pair{"LOGNAME=", user.name}})
            options_.environment.push_back(variable + value);
        options_.user = std::move(user);
    }

    // Behind the user, whose HOME it may replace.
    void read_environment() {
        for (const auto& [key, value] : table_of_texts("environment")) {
            std::string why;
            if (key.empty() || key.find_first_of(std::string_view("=\n\0", 3)) != key.npos) {
                why = "a variable's name has no '=', no newline and no zero byte";
            } else if (key.starts_with("DIBS_") || key == "NOTIFY_SOCKET") {
                why = "the runner sets it";
            } else if (options_.user && key.starts_with("LD_")) {
                why = "would have code of this file's choice run as user " + options_.user->name +
                      ", whatever the command is: set it in the command itself";
            }
            if (!why.empty()) section_.mistake("environment", in_quotes(key) + ": " + why);
            std::erase_if(options_.environment,
                          [sign = key + "="](const auto& one) { return one.starts_with(sign); });
            options_.environment.push_back(key + "=" + value);
        }
    }

    void read_ready() {
        std::string ready = "start";
        section_.text("ready", ready);
        options_.notify = ready == "notify";
        options_.session = ready == "session";
        if (ready.starts_with("line:")) options_.ready_line = ready.substr(5);
        if (ready != "start" && !options_.notify && !options_.session &&
            options_.ready_line.empty()) {
            section_.mistake(
                "ready",
                in_quotes(ready) + " is none of \"start\", \"line:TEXT\", \"notify\", \"session\"");
        }
        if (!options_.session) return;
        for (const char* key : kOfUses)
            section_.forbid(key, "with ready = \"session\" the process itself has the slot");
        if (options_.user) {
            section_.forbid("user",
                            "with ready = \"session\" it is not for another user: an order is "
                            "handed back by the user who has it");
        }
        options_.lines = Lines::kNone;
    }

    void read_uses() {
        section_.word("lines",
                      options_.lines,
                      {{"answer", Lines::kAnswer}, {"hold", Lines::kHold}, {"none", Lines::kNone}});
        if (options_.lines == Lines::kNone) options_.leftovers = Leftovers::kKeep;
        section_.word("leftovers",
                      options_.leftovers,
                      {{"end", Leftovers::kEnd}, {"keep", Leftovers::kKeep}});
        options_.labels = texts("labels");
        check("labels", [&] { check_labels("labels", options_.labels); });
        for (const auto& [key, value] : table_of_texts("attributes")) {
            if (key.empty() || key.find('=') != key.npos)
                section_.mistake("attributes", in_quotes(key) + ": a key has no '='");
            options_.attributes.emplace_back(key, value);
        }
        text("between", options_.between);
        uint32_t uses_max = 0;
        section_.count("uses_max", uses_max, 0, UINT32_MAX);
        options_.uses_max = uses_max;
    }

    void read_limits() {
        for (const auto& [key, limit] : {std::pair{"age_max", &options_.age_max_ns},
                                         std::pair{"use_max", &options_.use_max_ns},
                                         std::pair{"grace", &options_.grace_ns},
                                         std::pair{"backoff", &options_.backoff_ns},
                                         std::pair{"backoff_max", &options_.backoff_max_ns},
                                         std::pair{"ready_timeout", &options_.ready_timeout_ns},
                                         std::pair{"drain_timeout", &options_.drain_ns}}) {
            auto value = static_cast<uint64_t>(*limit);
            section_.duration(key, value, 0, kYear);
            *limit = static_cast<int64_t>(value);
        }
        if (options_.backoff_max_ns < options_.backoff_ns) {
            section_.mistake(section_.has("backoff_max") ? "backoff_max" : "backoff",
                             "backoff_max (" +
                                 show_duration(static_cast<uint64_t>(options_.backoff_max_ns)) +
                                 ") is below backoff");
        }
        section_.size("line_max", options_.line_max, 1, 1U << 30);
        section_.size("memory_max", options_.memory_max, 1U << 20, 1ULL << 50);
        const toml::node* cpus = section_.find("cpu_max");
        if (cpus == nullptr) return;
        const double count = cpus->value<double>().value_or(0);
        if (!cpus->is_number() || !(count >= 0.01 && count <= kCpusMost)) {
            return section_.mistake("cpu_max", "must be a number of CPUs from 0.01 to 4096");
        }
        options_.cpu_max_us = static_cast<uint64_t>(count * kPeriodUs);
    }

    bool text(std::string_view key, std::string& out) {
        if (!section_.text(key, out)) return false;
        const std::string why = inaudible(out);
        if (!why.empty()) section_.mistake(key, why);
        return why.empty();
    }

    std::vector<std::string> texts(std::string_view key) {
        std::vector<std::string> found;
        const toml::node* node = section_.find(key);
        if (node == nullptr) return found;
        const toml::array* array = node->as_array();
        if (array == nullptr) {
            section_.mistake(key, "must be an array of strings, is " + type_of(*node));
            return found;
        }
        for (const toml::node& element : *array) {
            const auto text = element.value_exact<std::string>();
            if (!text) {
                mistakes_.add(element,
                              std::string(key) + ": must hold strings, not " + type_of(element));
            } else if (const std::string why = inaudible(*text); !why.empty()) {
                mistakes_.add(element, std::string(key) + ": " + why);
            }
            found.push_back(text.value_or(""));
        }
        return found;
    }

    std::map<std::string, std::string> table_of_texts(std::string_view key) {
        std::map<std::string, std::string> found;
        const toml::node* node = section_.find(key);
        if (node == nullptr) return found;
        const toml::table* table = node->as_table();
        if (table == nullptr) {
            section_.mistake(key, "must be a table of strings, is " + type_of(*node));
            return found;
        }
        for (const auto& [name, value] : *table) {
            const auto text = value.value_exact<std::string>();
            const std::string what = std::string(key) + ": " + in_quotes(name.str()) + ": ";
            if (!text) {
                mistakes_.add(value, what + "must be a string, is " + type_of(value));
            } else if (const std::string why = inaudible(*text); !why.empty()) {
                mistakes_.add(value, what + why);
            }
            found.emplace(name.str(), text.value_or(""));
        }
        return found;
    }

    // Of what throws a Failure, which says what it is about.
    template <typename Check>
    void check(std::string_view key, Check check) {
        try {
            check();
        } catch (const Failure& failure) {
            mistakes_.add(*section_.find(key), failure.what());
        }
    }

    Section section_;
    Mistakes& mistakes_;
    Options options_;
};

void read_top(const toml::table& table,
              std::string socket,
              std::vector<Options>& types,
              Mistakes& mistakes) {
    Section top(table, "the file", mistakes);
    std::string said;
    top.text("socket", said);
    if (top.has("socket") && said.empty()) top.mistake("socket", "a path is needed");
    if (socket.empty()) socket = said;
    const toml::node* node = top.find("worker");
    top.finish();
    if (node == nullptr) return top.missing("worker");
    const toml::array* array = node->as_array();
    if (array == nullptr)
        return mistakes.add(*node, "worker: must be an array of tables: write [[worker]]");
    for (const toml::node& element : *array) {
        const toml::table* one = element.as_table();
        if (one == nullptr) {
            mistakes.add(element, "worker: must be a table: write [[worker]]");
            continue;
        }
        Options options = Type(*one, mistakes).read();
        options.socket = socket;
        for (Options& other : types) {
            if (other.pool.name != options.pool.name) continue;
            other.others_serve = options.others_serve = true;
            if (other.type == options.type && !options.type.empty()) {
                mistakes.add(element,
                             "a second worker of type " + in_quotes(options.type) + " of pool " +
                                 in_quotes(options.pool.name));
            } else if (other.name == options.name && !options.name.empty()) {
                mistakes.add(element,
                             "type " + in_quotes(other.type) + " of pool " +
                                 in_quotes(options.pool.name) + " has the name " +
                                 in_quotes(options.name) + ", too: set another name");
            }
        }
        types.push_back(std::move(options));
    }
}

}  // namespace

CommandFile read_command_file(const std::string& path, const std::string& socket) {
    CommandFile file;
    Mistakes mistakes{path};
    try {
        std::string text = guarded_bytes(path);
        auto table = parsed(text, mistakes);
        mistakes.parts_are_missing = !table;
        if (!table) table = parsed_without_mistakes(text, mistakes);
        if (table) read_top(*table, socket, file.types, mistakes);
        file.mistakes = std::move(mistakes.lines);
    } catch (const std::runtime_error& error) {
        file.mistakes.emplace_back(error.what());
    }
    return file;
}

}  // namespace dibs::ctl
