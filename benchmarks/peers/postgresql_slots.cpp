// benchmarks/peers/postgresql_slots.cpp -- slots as rows of a table, claimed by SKIP LOCKED.
// SPDX-License-Identifier: Apache-2.0
#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <fstream>
#include <stdexcept>
#include <vector>

#include "benchmarks/peers/kinds.hpp"
#include "benchmarks/peers/library.hpp"
#include "benchmarks/peers/server_process.hpp"
#include "benchmarks/scratch_folder.hpp"

namespace dibs::bench {

namespace {

constexpr const char* kUser = "postgres";
constexpr const char* kTakeRow =
    "UPDATE slots SET holder = pg_backend_pid() WHERE id = (SELECT id FROM slots WHERE holder IS "
    "NULL LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id";
constexpr const char* kGiveRow = "UPDATE slots SET holder = NULL WHERE id = $1";
constexpr int kNoRows = 1;  // PGRES_COMMAND_OK, PGRES_TUPLES_OK of libpq-fe.h
constexpr int kRows = 2;

const Library& libpq() {
    static const Library loaded("libpq.so.5");
    return loaded;
}

std::string postgresql_program(const char* name) {
    return find_program(name, "/usr/lib/postgresql/*/bin");
}

struct LibpqFunctions {
    void* (*connectdb)(const char*);
    int (*status)(void*);
    void (*finish)(void*);
    char* (*error)(void*);
    void* (*exec)(void*, const char*);
    void* (*prepare)(void*, const char*, const char*, int, const void*);
    void* (*run)(void*, const char*, int, const char* const*, const int*, const int*, int);
    int (*result_status)(void*);
    int (*rows)(void*);
    char* (*value)(void*, int, int);
    void (*clear)(void*);
    LibpqFunctions() {
        libpq().load(connectdb, "PQconnectdb");
        libpq().load(status, "PQstatus");
        libpq().load(finish, "PQfinish");
        libpq().load(error, "PQerrorMessage");
        libpq().load(exec, "PQexec");
        libpq().load(prepare, "PQprepare");
        libpq().load(run, "PQexecPrepared");
        libpq().load(result_status, "PQresultStatus");
        libpq().load(rows, "PQntuples");
        libpq().load(value, "PQgetvalue");
        libpq().load(clear, "PQclear");
    }
};

// A folder that the server's user may write to.
class ServerFolder {
  public:
    ServerFolder() {
        const passwd* entry = geteuid() == 0 ? getpwnam(kUser) : nullptr;
        if (entry != nullptr &&
            chown(folder_.file("").c_str(), entry->pw_uid, entry->pw_gid) != 0) {
            throw std::runtime_error("chown fails");
        }
    }
    [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }

  private:
    ScratchFolder folder_;
};

// Made once, which takes seconds; one server at a time uses it.
std::string cluster(const Cpus& cpus) {
    static const ServerFolder folder;
    static const std::string made = [&cpus] {
        std::string path = folder.file("cluster");
        std::vector<std::string> command = {postgresql_program("initdb"), "-D", path, "-U", kUser};
        command.insert(command.end(), {"-A", "trust", "-N", "--no-locale"});
        run_program({command, cpus, folder.file("log"), kUser});
        return path;
    }();
    return made;
}

class PostgresqlSlots final : public SlotSource {
  public:
    // Nothing has to survive a crash: neither the write-ahead log nor the table is forced to disk.
    PostgresqlSlots(uint32_t slots, const Cpus& cpus)
        : server_({{postgresql_program("postgres"),
                    "-D",
                    cluster(cpus),
                    "-k",
                    folder_.file(""),
                    "-c",
                    "listen_addresses=",
                    "-c",
                    "fsync=off",
                    "-c",
                    "synchronous_commit=off",
                    "-c",
                    "autovacuum=off",
                    "-c",
                    "client_min_messages=warning"},
                   cpus,
                   folder_.file("log"),
                   kUser},
                  [this] { return connected(); }) {
        must(pq_.exec(connection_, "DROP TABLE IF EXISTS slots"));
        must(pq_.exec(connection_, "CREATE UNLOGGED TABLE slots (id int, holder int)"));
        must(pq_.exec(connection_,
                      ("INSERT INTO slots SELECT generate_series(1, " + std::to_string(slots) + ")")
                          .c_str()));
        disconnect();
    }
    ~PostgresqlSlots() override { disconnect(); }
    void attach(uint32_t /*worker*/) override {
        if (!connected()) throw std::runtime_error("no connection to PostgreSQL");
        must(pq_.prepare(connection_, "take", kTakeRow, 0, nullptr));
        must(pq_.prepare(connection_, "give", kGiveRow, 1, nullptr));
    }
    void claim() override {
        while (must(pq_.run(connection_, "take", 0, nullptr, nullptr, nullptr, 0)) == 0)
            sched_yield();
    }
    void release() override {
        const char* slot = slot_.c_str();
        must(pq_.run(connection_, "give", 1, &slot, nullptr, nullptr, 0));
    }
    [[nodiscard]] std::vector<pid_t> servers() const override {
        const std::string pid = std::to_string(server_.pid());
        std::ifstream children("/proc/" + pid + "/task/" + pid + "/children");
        std::vector<pid_t> all = {server_.pid()};
        for (pid_t child = 0; children >> child;)
            all.push_back(child);
        return all;
    }

  private:
    bool connected() {
        disconnect();
        connection_ =
            pq_.connectdb(("host=" + folder_.file("") + " dbname=postgres user=" + kUser).c_str());
        return pq_.status(connection_) == 0;
    }
    void disconnect() {
        if (connection_ != nullptr) pq_.finish(connection_);
        connection_ = nullptr;
    }
    // Returns how many rows there are, and keeps what the first one begins with.
    int must(void* result) {
        const int status = pq_.result_status(result);
        if (status != kNoRows && status != kRows) {
            throw std::runtime_error(std::string("PostgreSQL: ") + pq_.error(connection_));
        }
        const int rows = pq_.rows(result);
        if (rows > 0) slot_ = pq_.value(result, 0, 0);
        pq_.clear(result);
        return rows;
    }

    ServerFolder folder_;
    LibpqFunctions pq_;
    void* connection_ = nullptr;
    std::string slot_;
    ServerProcess server_;
};

}  // namespace

Kind postgresql_kind() {
    const bool usable =
        !postgresql_program("postgres").empty() && !postgresql_program("initdb").empty();
    return {"PostgreSQL, SKIP LOCKED",
            !usable           ? "the package postgresql is not installed"
            : libpq().found() ? ""
                              : "the package libpq5 is not installed",
            [](uint32_t slots, const Cpus& cpus) {
                return std::make_unique<PostgresqlSlots>(slots, cpus);
            }};
}

}  // namespace dibs::bench
