// tests/hostile/stranger.cpp -- a client that does with its own session whatever it can.
// SPDX-License-Identifier: Apache-2.0
#include "tests/hostile/stranger.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "shm/doorbell.hpp"
#include "tests/process/raw_client.hpp"

namespace dibs::test {

namespace {

constexpr int kTries = 2000;

uint64_t mostly_small(Random& random) {
    switch (random() % 4) {
        case 0:
            return random() % 8;
        case 1:
            return uint64_t{1} << (random() % 64);
        case 2:
            return (random() % 4) << 32 | random() % 8;  // looks like an id
        default:
            return random();
    }
}

shm::Hello large() {
    shm::Hello hello;
    hello.submission_entries = 1024;
    hello.completion_entries = 4096;
    return hello;
}

// Until the broker has taken all but `left` of what was published.
void await_taken(const RawClient& client, uint64_t published, uint64_t left) {
    while (client.down().submission_consumed.load() + left < published && !ended(client))
        sched_yield();
}

void fill_payload(RawClient& client, Random& random) {
    for (size_t i = 0; i < client.welcome().up_payload; i += 8) {
        const uint64_t bytes = random();
        std::memcpy(client.payload() + i, &bytes, 8);
    }
}

}  // namespace

shm::Submission anything(Random& random) {
    const auto rarely = [&](uint64_t otherwise) {
        return random() % 16 == 0 ? random() : otherwise;
    };
    shm::Submission entry;
    entry.user_data = random();
    entry.op = static_cast<shm::Op>(random() % 4096 == 0 ? random() : random() % 13);
    entry.flags = static_cast<uint8_t>(random() % 4 == 0 ? random() : 0);
    entry.pool = static_cast<uint16_t>(rarely(random() % 3));
    entry.units = static_cast<uint16_t>(rarely(random() % 4));
    entry.tag = static_cast<uint16_t>(rarely(random() % 8));
    if (random() % 2 == 0) {
        entry.payload_offset = static_cast<uint32_t>(mostly_small(random));
        entry.payload_size = static_cast<uint32_t>(mostly_small(random) % 300);
    }
    entry.id = mostly_small(random);
    entry.fence = mostly_small(random);
    if (random() % 4 == 0) entry.key[0] = static_cast<uint8_t>(random() % 3);
    return entry;
}

void Stranger::operate(uint64_t count) {
    constexpr uint64_t kBatch = 512;
    RawClient client(socket, large());
    if (!client.attached()) return;
    fill_payload(client, random);
    uint64_t pushed = 0;
    while (pushed < count && !ended(client)) {
        for (uint64_t i = 0; i < kBatch; ++i)
            client.submit_silently(anything(random));
        pushed += kBatch;
        entries->fetch_add(kBatch, std::memory_order_relaxed);
        if (shm::publish_submissions(client.up(), client.down(), pushed)) client.ring();
        await_taken(client, pushed, kBatch);
        client.up().completion_head.store(client.down().completion_tail.load());
    }
}

void Stranger::scribble() {
    RawClient client(socket);
    if (!client.attached()) return;
    auto* words = reinterpret_cast<uint64_t*>(&client.up());
    const size_t count = client.welcome().up_size / sizeof(uint64_t);
    for (int i = 0; i < kTries && !ended(client); ++i) {
        words[random() % 64] = mostly_small(random);  // the head and the first lines
        words[random() % count] = random();
        client.ring();
    }
}

void Stranger::jump() {
    RawClient client(socket);
    if (!client.attached()) return;
    for (uint16_t tag = 0; tag < 5; ++tag)
        client.claim(tag, 2);
    auto& line = client.lines()[random() % 8];
    const uint64_t jumps[] = {0, 1, 2, 7, 128, 129, 1U << 20, ~uint64_t{0}, mostly_small(random)};
    for (const uint64_t sequence : jumps) {
        line.sequence.store(sequence);
        client.up().submission_tail.store(mostly_small(random));
        client.ring();
    }
    entries->fetch_add(std::size(jumps), std::memory_order_relaxed);
}

// Another thread changes words of the lines and of the payloads behind them all the while. The
// sequences it leaves alone, so that entries go on being read.
void Stranger::flip() {
    RawClient client(socket, large());
    if (!client.attached()) return;
    fill_payload(client, random);
    std::atomic<bool> done{false};
    const size_t lines = client.welcome().submission_entries;
    auto* words = reinterpret_cast<std::atomic<uint64_t>*>(client.lines());
    auto* payload = reinterpret_cast<std::atomic<uint64_t>*>(client.payload());
    std::thread flipper([&, own = Random(random())]() mutable {
        while (!done.load(std::memory_order_relaxed)) {
            words[own() % lines * 8 + 1 + own() % 7].fetch_xor(own(), std::memory_order_relaxed);
            payload[own() % 64].store(own(), std::memory_order_relaxed);
        }
    });
    for (uint64_t pushed = 1; pushed <= kTries && !ended(client); ++pushed) {
        shm::Submission entry = anything(random);
        entry.payload_offset = 0;
        entry.payload_size = static_cast<uint32_t>(random() % 300);
        client.submit(entry);
        entries->fetch_add(1, std::memory_order_relaxed);
        await_taken(client, pushed, 256);
        client.up().completion_head.store(client.down().completion_tail.load());
    }
    done = true;
    flipper.join();
}

void Stranger::lie() {
    RawClient client(socket);
    if (!client.attached()) return;
    shm::UpHead& up = client.up();
    for (int i = 0; i < kTries && !ended(client); ++i) {
        up.sleeping.store(static_cast<uint32_t>(random() % 4));
        up.cpu.store(static_cast<uint32_t>(mostly_small(random)));
        up.net_rings.store(random());
        if (i % 100 == 99) up.submission_tail.store(mostly_small(random));
        if (i == kTries / 2) up.completion_head.store(mostly_small(random));
        client.submit(anything(random));
        entries->fetch_add(1, std::memory_order_relaxed);
        await_taken(client, static_cast<uint64_t>(i), 64);
    }
}

void Stranger::punch() {
    RawClient client(socket);
    if (!client.attached()) return;
    for (int i = 0; i < 100 && !ended(client); ++i) {
        for (int j = 0; j < 20; ++j)
            client.submit_silently(anything(random));
        entries->fetch_add(20, std::memory_order_relaxed);
        const auto page = static_cast<off_t>(random() % (client.welcome().up_size / 4096));
        (void)fallocate(client.up_fd(),
                        FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        page * 4096,
                        4096 * static_cast<off_t>(1 + random() % 4));
        client.ring();
        sched_yield();
    }
}

void Stranger::ignore() {
    RawClient client(socket);
    if (!client.attached()) return;
    for (uint64_t pushed = 1; pushed <= kTries && !ended(client); ++pushed) {
        shm::Submission entry;
        entry.op = shm::Op::kCancel;  // not found: one completion each
        client.submit(entry);
        entries->fetch_add(1, std::memory_order_relaxed);
        await_taken(client, pushed, 64);
    }
}

void Stranger::storm() {
    RawClient client(socket);
    if (!client.attached()) return;
    const int bell = client.bell();
    for (int i = 0; i < kTries; ++i)
        client.ring();
    (void)fcntl(bell, F_SETFL, fcntl(bell, F_GETFL) & ~O_NONBLOCK);
    uint64_t count = 0;
    (void)!read(bell, &count, sizeof(count));
    const uint64_t full = ~uint64_t{0} - 1;
    (void)!write(bell, &full, sizeof(full));  // whoever writes to it now waits for ever
    client.submit_silently(anything(random));
    client.up().submission_tail.store(1);
}

}  // namespace dibs::test
