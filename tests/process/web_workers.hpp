// tests/process/web_workers.hpp -- a broker with pools of workers, a `dibs worker` for them, and a
// client that uses its slots.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/client_attached.hpp"
#include "tests/process/dibsd.hpp"
#include "tests/process/tool.hpp"

namespace dibs::test {

inline constexpr const char* kPools =
    "[[pool]]\nname = \"web\"\nkind = \"worker\"\nanswer_max = 4096\nattributes_max = 256\n"
    "reservation_ttl = \"1h\"\n"
    "[[pool]]\nname = \"mute\"\nkind = \"worker\"\nreservation_ttl = \"1h\"\n"
    "[[pool]]\nname = \"eager\"\nkind = \"worker\"\nanswer_max = 4096\nrelease_is_ready = true\n"
    "reservation_ttl = \"1h\"\n"
    "[[pool]]\nname = \"gpu\"\nkind = \"counted\"\nslots = 1\n";

// Answers with its process id and what it was told; does what the text asks for.
inline constexpr const char* kServe =
    "while read -r line; do case $line in *die*) exit 9;; *twice*) echo first;; *long*) head -c "
    "5000 /dev/zero | tr '\\0' x; echo;; *stay*) sleep "
    "1000;; "
    "esac; echo \"$$ $line\"; done";

class Worker : public testing::Test {
  public:
    std::unique_ptr<Tool> start(const Words& words, const std::string& script = kServe) {
        return std::make_unique<Tool>(dibsd_.socket(),
                                      Words{"worker"} + words + Words{"--", "sh", "-c", script});
    }
    // Uses a slot: the answer, or why there is none.
    static std::string call(const Attached& client, const std::string& body) {
        dibs_claim_options asked = Attached::asking(DIBS_FOREVER);
        asked.body = body.data();
        asked.body_size = body.size();
        const dibs_completion end = client.claim(asked);
        if (end.outcome != DIBS_GRANTED) return dibs_reason_name(end.code);
        return answer_of(client, end.lease);
    }
    static std::string answer_of(const Attached& client, const dibs_lease& lease) {
        dibs_completion ended = {};
        while (ended.kind != DIBS_LEASE_ENDED)
            EXPECT_EQ(dibs_reap(client, &ended, 1, DIBS_FOREVER), 1);
        const void* answer = nullptr;
        size_t size = 0;
        if (dibs_lease_answer(client, &lease, 0, &answer, &size) != DIBS_OK) {
            return dibs_reason_name(ended.code);
        }
        return {static_cast<const char*>(answer), size};
    }
    // The process that answers, by what kServe answers.
    static pid_t pid_of(const Attached& client) { return std::stoi(call(client, "who")); }

    Folder folder_;
    Dibsd dibsd_{folder_, kPools};
};

}  // namespace dibs::test
