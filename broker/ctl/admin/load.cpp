// broker/ctl/admin/load.cpp -- `dibs load`: makes a snapshot the state of the running broker.
//
// It sends the snapshot slice by slice; the broker checks it, and if no client is attached leaves
// it to a successor. The successor sends the next Welcome.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <stdexcept>
#include <string>

#include "broker/config/file_bytes.hpp"
#include "broker/ctl/admin/admin_client.hpp"
#include "broker/ctl/failure.hpp"
#include "broker/ctl/file_kind.hpp"
#include "broker/ctl/output/output.hpp"
#include "broker/ctl/subcommand.hpp"

namespace dibs::ctl {

namespace {

constexpr size_t kSlice = 32768;

std::string read(const std::string& path) {
    try {
        return file_bytes(path, kSnapshotMost);
    } catch (const std::runtime_error& error) {
        throw Failure(kExitFailed, error.what());
    }
}

void send(AdminClient& client, const std::string& file, const std::string& bytes) {
    admin::RequestT request;
    request.ask = admin::Ask::load;
    size_t at = 0;
    do {
        const size_t end = std::min(at + kSlice, bytes.size());
        request.bytes.assign(bytes.begin() + static_cast<ptrdiff_t>(at),
                             bytes.begin() + static_cast<ptrdiff_t>(end));
        request.more = end < bytes.size();
        at = end;
        const admin::AnswerT answer = client.ask(request);
        if (answer.code == admin::Code::ok) continue;
        throw Failure(kExitFailed,
                      file + ": " + (answer.names.empty() ? "refused" : answer.names.front()));
    } while (request.more);
}

}  // namespace

int run_load(int argc, char** argv) {
    Arguments arguments("load",
                        "Makes a snapshot the state of the running broker, to which nobody is "
                        "attached: an administrator's to do. The processes that the snapshot "
                        "knows are not there: their sessions end, and with them their claims and "
                        "leases; pools, accounts and what only reports know go on.");
    Output output(arguments);
    std::string file;
    arguments.operand("FILE", &file, "what dibs dump wrote");
    if (const auto exit = arguments.parse(argc, argv)) return *exit;
    const std::string bytes = read(file);
    const FileKind kind = file_kind(bytes);
    if (kind != FileKind::kSnapshot) {
        throw Failure(kExitFailed, file + ": " + is_no("snapshot", kind));
    }
    AdminClient client(output.socket());
    if (client.welcome().is_admin == 0) throw client.denied({});
    const uint64_t epoch = client.welcome().epoch;
    send(client, file, bytes);
    const uint64_t next = await_successor(client.path(), epoch).epoch;
    Sheet sheet{"dibs.load/1", {{"file", "FILE"}, {"epoch", "EPOCH"}}};
    sheet.rows.push_back({Cell::of(file), Cell::of(next)});
    output.say("The broker goes on from " + file + ", epoch " + std::to_string(next) + ".");
    if (output.form() != Form::kTable) output.show_record(sheet);
    return output.finish(kExitOk);
}

}  // namespace dibs::ctl
