// clientlib/state_file.cpp -- dumps the broker's whole state to a descriptor and loads it.
// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/admin_connection.hpp"
#include "clientlib/admin_tables.hpp"

namespace dibs::client {
namespace {

constexpr size_t kPartSize = 131072;
constexpr size_t kSlice = 32768;
// For each part: a million rows take a second to be written down.
constexpr int64_t kPartTimeoutNs = 60 * DIBS_SECOND;

bool write_all(int fd, const uint8_t* bytes, size_t size) {
    while (size != 0) {
        const ssize_t written = ::write(fd, bytes, size);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        bytes += written;
        size -= static_cast<size_t>(written);
    }
    return true;
}

// As many bytes as there are, up to `size`; negative: none can be read.
ssize_t read_all(int fd, uint8_t* bytes, size_t size) {
    size_t got = 0;
    while (got != size) {
        const ssize_t read = ::read(fd, bytes + got, size - got);
        if (read < 0 && errno == EINTR) continue;
        if (read < 0) return -1;
        if (read == 0) break;
        got += static_cast<size_t>(read);
    }
    return static_cast<ssize_t>(got);
}

int dump(AdminConnection& connection, int fd, uint8_t* answer) {
    DumpRequest request;
    for (;;) {
        connection.wait_for(kPartTimeoutNs);
        const int size = connection.ask(&request, sizeof request, answer, kPartSize);
        if (size < 0) return size;
        SliceAnswer slice;
        if (!read_slice(answer, static_cast<size_t>(size), &slice)) return DIBS_EHANDSHAKE;
        if (slice.code != 0) return code_of_answer(slice.code);
        if (!write_all(fd, slice.bytes, slice.count)) return DIBS_ESYSTEM;
        if (slice.more == 0) return DIBS_OK;
        if (slice.cursor <= request.cursor) return DIBS_EHANDSHAKE;
        request.cursor = slice.cursor;
    }
}

// A slice is sent once it is known whether another one follows.
int load(AdminConnection& connection, int fd, uint8_t* memory) {
    struct Packet {
        LoadRequest request;
        uint8_t bytes[kSlice];
    };
    static_assert(2 * sizeof(Packet) <= kPartSize);
    auto* packet = reinterpret_cast<Packet*>(memory);
    uint8_t* next = memory + sizeof(Packet);
    ssize_t count = read_all(fd, next, kSlice);
    do {
        if (count < 0) return DIBS_ESYSTEM;
        packet->request = {};
        packet->request.bytes_count = static_cast<uint32_t>(count);
        memcpy(packet->bytes, next, static_cast<size_t>(count));
        count = count == kSlice ? read_all(fd, next, kSlice) : 0;
        if (count < 0) return DIBS_ESYSTEM;
        packet->request.more = count != 0 ? 1 : 0;
        alignas(8) uint8_t answer[4096];
        const size_t size = sizeof packet->request + packet->request.bytes_count;
        connection.wait_for(kPartTimeoutNs);
        const int heard = connection.ask(packet, (size + 3) / 4 * 4, answer, sizeof answer);
        if (heard < 0) return heard;
        SliceAnswer slice;
        if (!read_slice(answer, static_cast<size_t>(heard), &slice)) return DIBS_EHANDSHAKE;
        if (slice.code != 0) return code_of_answer(slice.code);
    } while (count != 0);
    return DIBS_OK;
}

using Transfer = int (*)(AdminConnection&, int, uint8_t*);

int transfer(const dibs_connect_options* options, int fd, Transfer run) {
    if (fd < 0) return DIBS_EARGUMENT;
    AdminConnection connection;
    dibs_connect_options known;
    const int code = open_conversation(connection, options, &known);
    if (code != DIBS_OK) return code;
    auto* memory = static_cast<uint8_t*>(calloc(1, kPartSize));
    if (memory == nullptr) return DIBS_ESYSTEM;
    const int result = run(connection, fd, memory);
    free(memory);
    return result;
}

}  // namespace
}  // namespace dibs::client

int dibs_dump(const dibs_connect_options* options, int fd) {
    return dibs::client::transfer(options, fd, dibs::client::dump);
}

int dibs_load(const dibs_connect_options* options, int fd) {
    return dibs::client::transfer(options, fd, dibs::client::load);
}
