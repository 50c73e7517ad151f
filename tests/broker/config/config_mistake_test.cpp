// tests/broker/config/config_mistake_test.cpp -- mistakes of a configuration, one to a row: each is
// told once, with its line and column.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "broker/config/config.hpp"
#include "tests/broker/config/config_mistakes.hpp"

namespace dibs {
namespace {

struct Mistake {
    const char* name;
    std::string text;
    std::string line;
};

void PrintTo(const Mistake& mistake, std::ostream* out) {
    *out << mistake.name;
}

const std::string kWorkerPool = "[[pool]]\nname = \"a\"\nkind = \"worker\"\n";
const std::string kOthers = "[[policy]]\ndefault = true\n";

std::string seventeen_attributes() {
    std::string table = "{ ";
    for (char key = 'a'; key <= 'q'; ++key)
        table += std::string(key == 'a' ? "" : ", ") + key + " = \"1\"";
    return table + " }";
}

class ConfigMistake : public testing::TestWithParam<Mistake> {};

TEST_P(ConfigMistake, IsToldOnceWithItsPlace) {
    EXPECT_EQ(parse_config(GetParam().text, "f").mistakes,
              std::vector<std::string>{GetParam().line});
}

INSTANTIATE_TEST_SUITE_P(
    Each,
    ConfigMistake,
    testing::Values(Mistake{"ResourceThatIsNoAmount",
                            kPool + "resources = { memory = \"much\" }\n",
                            "f:5:24: resources.memory: must be a whole number, or a size such as "
                            "\"80GiB\""},
                    Mistake{"ResourceOfNothing",
                            kPool + "resources = { memory = 0 }\n",
                            "f:5:24: resources.memory: must be from 1 to 2^53"},
                    Mistake{"ResourceThatIsNegative",
                            kPool + "resources = { memory = -1 }\n",
                            "f:5:24: resources.memory: must be from 1 to 2^53"},
                    Mistake{"ResourceWithABlank",
                            kPool + "resources = { \"gpu memory\" = 1 }\n",
                            "f:5:30: resources.gpu memory: a name has 1 to 31 letters, digits, "
                            "'_', '-' and '.'"},
                    Mistake{"ResourcesThatAreNoTable",
                            kPool + "resources = 5\n",
                            "f:5:13: resources: must be a table, NAME = amount"},
                    Mistake{"ResourcesThatAreNone",
                            kPool + "resources = {}\n",
                            "f:5:13: resources: a slot has 1 to 6"},
                    Mistake{"ResourcesWithAQuantum",
                            kPool + "quantum = \"1ms\"\nresources = { memory = 1 }\n",
                            "f:5:11: quantum: no lease of a pool with resources is parked"},
                    Mistake{"ResourcesWithoutRoomForThem",
                            kPool + "attributes_max = 20\nresources = { memory = 1 }\n",
                            "f:5:18: attributes_max: a grant's attributes take 33 bytes with what "
                            "it has of each resource"},
                    Mistake{"LeastOrderOfWhatSlotsLack",
                            kWorkerPool + "workers_max = 1\nresources = { memory = 2 }\n"
                                          "create_min = { memory = 3 }\n",
                            "f:6:14: create_min: memory: of resources, and at most so much as they "
                            "say"},
                    Mistake{"LeastOrderWithoutResources",
                            kWorkerPool + "workers_max = 1\ngather = \"1ms\"\n",
                            "f:5:1: gather: only a pool with resources has it"},
                    Mistake{"ResourcesOfWorkersThatAreCollected",
                            kWorkerPool + "expiry = \"lazy\"\nresources = { memory = 1 }\n",
                            "f:5:13: resources: parts of workers' slots are not collected: expiry "
                            "is not lazy"},
                    Mistake{"AttributeKeyWithEqualsSign",
                            kPool + "attributes = [{ \"a=b\" = \"1\" }]\n",
                            "f:5:25: attributes: no '=' in a key, no zero byte anywhere"},
                    Mistake{"AttributeKeyWithZeroByte",
                            kPool + "attributes = [{ \"a\\u0000\" = \"1\" }]\n",
                            "f:5:29: attributes: no '=' in a key, no zero byte anywhere"},
                    Mistake{"AttributeValueWithZeroByte",
                            kPool + "attributes = [{ a = \"1\\u0000\" }]\n",
                            "f:5:21: attributes: no '=' in a key, no zero byte anywhere"},
                    Mistake{"SeventeenAttributes",
                            kPool + "attributes = [" + seventeen_attributes() + "]\n",
                            "f:5:15: attributes: more than 16"},
                    Mistake{"AttributeThatIsNoString",
                            kPool + "attributes = [{ a = \"1\" }, { device = 1 }]\n",
                            "f:5:39: attributes: \"device\" must be a string, is an integer"},
                    Mistake{"AttributesThatAreNoArray",
                            kPool + "attributes = { a = \"1\" }\n",
                            "f:5:14: attributes: must be an array of tables, one per slot"},
                    Mistake{"AttributesOfASlotThatAreNoTable",
                            kPool + "attributes = [{ a = \"1\" }, \"b\"]\n",
                            "f:5:28: attributes: must be tables, one per slot"},
                    Mistake{"EnvironmentThatIsNoTable",
                            kPool + "environment = \"GPU\"\nattributes = [{ a = \"1\" }]\n",
                            "f:5:15: environment: must be a table, VARIABLE = \"attribute\""},
                    Mistake{"RequiredLabelOf64Bytes",
                            kWorkerPool + "required_label = \"" + std::string(64, 'l') + "\"\n",
                            "f:4:18: required_label: longer than 63 bytes"},
                    Mistake{"GraceOfLazyExpiry",
                            kPool + "expiry = \"lazy\"\ngrace = \"1s\"\n",
                            "f:6:1: grace: only cooperative expiry has one"},
                    Mistake{"GraceOfStrictExpiry",
                            kWorkerPool + "grace = \"1s\"\nexpiry = \"strict\"\n",
                            "f:4:1: grace: only cooperative expiry has one"},
                    Mistake{"SecondDefaultPolicy",
                            kOthers + "leases = 1\n" + kOthers,
                            "f:5:11: default: a second default policy"},
                    Mistake{"PolicyAsATable",
                            "[policy]\ndefault = true\n",
                            "f:1:1: policy: must be an array of tables: write [[policy]]"},
                    Mistake{"PolicyAsANumber",
                            "policy = 3\n",
                            "f:1:10: policy: must be an array of tables: write [[policy]]"},
                    Mistake{"PolicyAsAnArrayOfNumbers",
                            "policy = [3]\n",
                            "f:1:11: policy: must be a table: write [[policy]]"},
                    Mistake{"AccountOfAPolicyThatIsANumber",
                            kOthers + "account = 3\n",
                            "f:3:11: account: must be a string, is an integer"},
                    Mistake{"PoolsOfAPolicyThatAreNumbers",
                            kOthers + "pools = [3]\n",
                            "f:3:10: pools: must hold names, not an integer"},
                    Mistake{"UserThatIsAFloat",
                            "[[policy]]\nuser = 3.5\n",
                            "f:2:8: user: must be a name or a number"},
                    Mistake{"UserThatIsNoUid",
                            "[[policy]]\nuser = 4294967295\n",
                            "f:2:8: user: is no number of a user or group"},
                    Mistake{"ValueThatIsADate",
                            "socket = 2026-01-01\n",
                            "f:1:10: socket: must be a string, is a date or time"},
                    Mistake{"AttributesOfAWorkerPool",
                            kWorkerPool + "attributes = [{ a = \"1\" }]\n",
                            "f:4:1: attributes: the workers announce them"},
                    Mistake{"SocketOf108Bytes",
                            "socket = \"/" + std::string(107, 's') + "\"\n",
                            "f:1:10: socket: a socket's path has at most 107 bytes"},
                    Mistake{"AccountAsATable",
                            "[account]\nname = \"a\"\n",
                            "f:1:1: account: must be an array of tables: write [[account]]"},
                    Mistake{"AccountsThatAreNoTables",
                            "account = [\"a\"]\n",
                            "f:1:12: account: must be a table: write [[account]]"},
                    Mistake{"MorePoolsThanTheirLimit",
                            "[limits]\npools = 1\n" + kWorkerPool +
                                "[[pool]]\nname = \"b\"\nkind = \"worker\"\n",
                            "f:3:1: 2 pools, but limits.pools is 1"}),
    [](const auto& row) { return std::string(row.param.name); });

// What is just not a mistake any more.
TEST(ConfigAtItsBounds, IsTaken) {
    const std::string text = "socket = \"/" + std::string(106, 's') + "\"\n[limits]\npools = 1\n" +
                             kWorkerPool + "expiry = \"cooperative\"\ngrace = \"1s\"\n" +
                             "required_label = \"" + std::string(63, 'l') + "\"\n" + kOthers;
    EXPECT_EQ(parse_config(text, "f").mistakes, std::vector<std::string>{});
    std::string sixteen = seventeen_attributes();
    sixteen.replace(sixteen.find(", q = \"1\""), 9, "");
    EXPECT_EQ(parse_config(kPool + "attributes = [" + sixteen + "]\n", "f").mistakes,
              std::vector<std::string>{});
}

}  // namespace
}  // namespace dibs
