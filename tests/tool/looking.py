#!/usr/bin/env python3
# tests/tool/looking.py -- every subcommand that shows something, as it is typed: what it
# prints, word by word.
#
#   looking.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys

from holding import POOLS, USER, hold, squeezed, steady, wait_until, waiting
from tap import case, expect, expect_equal, main


@case("status: JSON with its schema, and a record")
def status(place):
    broker = place.start('hardening = "off"\n' + POOLS)
    code, out, err = place.run("status", "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(steady(out.replace(place.socket, "SOCKET")),
                 '{"schema":"dibs.status/1","socket":"SOCKET","pid":N,"version":"0.1.0",'
                 '"layout":1,"epoch":1,"uptime_ns":N,"draining":false,"stops_in_ns":null,'
                 '"admin":true,"turns":N,'
                 '"sessions":0,"sessions_max":1024,"pools":2,"pools_max":64,"slots":2,'
                 '"slots_max":4096,"claims":0,"claims_max":65536,"leases":0,"leases_max":16384,'
                 '"arena_blocks":2,"arena_blocks_max":8192,'
                 '"hardening":"none; missing: all of it (hardening = \\"off\\")"}\n')
    expect_equal(json.loads(out)["pid"], broker.pid)
    code, out, err = place.run("status")
    expect_equal((code, err), (0, ""))
    expect_equal(out.splitlines()[-2:],
                 ["arena blocks    2 of 8192",
                  'restricted by   none; missing: all of it (hardening = "off")'])


@case("ls pools: table, JSON and JSON lines")
def pools(place):
    place.start(POOLS)
    code, out, err = place.run("ls", "pools")
    expect_equal((code, err), (0, ""))
    expect_equal(out, "POOL  KIND     DRAINING  SLOTS  IDLE  LEASED  PARKED  SHARED  RESERVED  RECOVERING  WAITING"
                      "  OLDEST WAIT  OLDEST LEASE  GRANTED\n"
                      "gpu   counted  no            2     2       0       0       0         0           0        0"
                      "  -            -                   0\n"
                      "web   worker   no            0     0       0       0       0         0           0        0"
                      "  -            -                   0\n")
    pool = ('"draining":false,"slots":S,"idle":S,"leased":0,"parked":0,"shared":0,"reserved":0,"recovering":0,'
            '"unknown":0,"ordered":null,"waiting":0,"confirming":0,"oldest_wait_ns":null,'
            '"oldest_lease_ns":null,"last_grant_ns":null,"accepted":0,"granted":0,"hits":0,'
            '"expired":0,"cancelled":0,"rejected":0,"turned_away":0,"released":0,"refused":0,'
            '"units_max":256,"backlog_max":8192,"interval_max_ns":300000000000,"grace_ns":0,'
            '"reservation_ttl_ns":2000000000,"quantum_ns":Q,"resources":null}')
    gpu = '"pool":"gpu","kind":"counted",' + pool.replace("S", "2").replace("Q", "1000000")
    web = '"pool":"web","kind":"worker",' + pool.replace("S", "0").replace("Q", "0")
    expect_equal(place.run("ls", "pools", "-o", "json")[1],
                 '{"schema":"dibs.pools/1","rows":[{' + gpu + ",{" + web + "]}\n")
    expect_equal(place.run("ls", "pools", "-p", "web", "-o", "jsonl")[1],
                 '{"schema":"dibs.pools/1",' + web + "\n")


@case("ls slots, leases, claims, clients, workers: what is held and waited for")
def lists(place):
    place.start(POOLS)
    holder, _ = hold(place, "gpu:2")
    waiter = place.begin("claim", "gpu", "-t", "1h")
    waiting(place, 1)
    expect_equal(squeezed(place.run("ls", "slots")[1]),
                 ["SLOT STATE NAME HOLDER ACCOUNT HELD HOLDER PID COMMAND FENCE WORKER ATTRIBUTES RESOURCES "
                  "APPLICATION GROUP",
                  f"gpu/0 leased - l1 uid:U T {holder.pid} dibs 1 - device=0 - - -",
                  f"gpu/1 leased - l1 uid:U T {holder.pid} dibs 1 - device=1 - - -"])
    expect_equal(squeezed(place.run("ls", "leases")[1]),
                 ["LEASE ID POOL STATE SLOTS HELD SINCE LEFT ACCOUNT USER PID COMMAND CLIENT FENCE META "
                  "APPLICATION TASK GROUP",
                  f"l1 l0x100000000 gpu live 0,1 T D - uid:U {USER} {holder.pid} dibs s0.1 1 - - - -"])
    expect_equal(squeezed(place.run("ls", "claims")[1]),
                 ["CLAIM POOL STATE POSITION UNITS WAITS SINCE LEFT ACCOUNT USER PID COMMAND CLIENT META "
                  "APPLICATION TASK GROUP",
                  f"c2 gpu waiting 1 1 T D T uid:U {USER} {waiter.pid} dibs s1.1 - - - -"])
    expect_equal(squeezed(place.run("ls", "clients")[1])[0],
                 "CLIENT PID USER COMMAND ACCOUNT ATTACHED STATE SLOTS CLAIMS LEASES")
    expect_equal(place.run("ls", "workers")[1],
                 "WORKER  PID  USER  COMMAND  ACCOUNT  SINCE  STATE  SLOTS  CLAIMS  LEASES  POOL  NAME\n")
    expect_equal(steady(place.run("ls", "claims", "-o", "json")[1]),
                 '{"schema":"dibs.claims/1","rows":[{"number":2,"id":"c0x100000001","pool":"gpu",'
                 '"state":"waiting","position":1,"units":1,"age_ns":N,"since":"D","left_ns":N,'
                 f'"account":"uid:U","uid":N,"user":"{USER}","pid":N,"command":"dibs","client":"s1.1",'
                 '"attempts":0,'
                 '"has_key":false,"meta":null,"application":null,"task":null,'
                 '"group":null}]}\n'.replace("c0x100000001", re.search(
                     r'"id":"(\w+)"', place.run("ls", "claims", "-o", "json")[1]).group(1)))
    expect_equal(steady(place.run("ls", "leases", "-o", "jsonl")[1]),
                 '{"schema":"dibs.leases/1","number":1,"id":"l0x100000000","pool":"gpu",'
                 '"state":"live","slots":[0,1],"units":2,"age_ns":N,"since":"D","left_ns":null,'
                 f'"account":"uid:U","uid":N,"user":"{USER}","pid":N,"command":"dibs",'
                 '"client":"s0.1","fence":1,"interval_ns":N,'
                 '"kept_ns":N,"meta":null,"application":null,"task":null,"group":null}\n')


@case("the command's name is what its process calls itself, harmless for a terminal; its time is local")
def names(place):
    place.start(POOLS)
    child = place.begin("exec", "gpu", "--", "sh", "-c",
                        "printf 'a\\033[31mb' > /proc/$$/comm; echo up; read x", stdin=subprocess.PIPE)
    expect_equal(child.stdout.readline(), "up\n")
    table = place.run("ls", "leases")[1]
    expect(f" {USER} " in table and " a?[31mb " in table and "\033" not in table, table)
    row = json.loads(place.run("ls", "leases", "-o", "jsonl")[1])
    expect_equal((row["user"], row["command"]), (USER, "a\033[31mb"))
    since = datetime.datetime.fromisoformat(row["since"].replace("Z", "+00:00"))
    begun = pathlib.Path(f"/proc/{row['pid']}").stat().st_ctime
    expect(abs(since.timestamp() - begun) < 3600, f"{since} is when it began")
    east = place.run("ls", "leases", environment={"TZ": "UTC-5"})[1]
    local = (since + datetime.timedelta(hours=5)).strftime("%Y-%m-%d %H:")
    expect(local in east, f"{local} in\n{east}")


@case("ls slots, clients, workers as JSON: every value of a row, of a worker's slot too")
def rows_as_json(place):
    def told(kind, form):
        """The worker's session comes behind those that the tool had opened before."""
        return re.sub(r'"s[1-9]\d*\.\d+"', '"W"', steady(place.run("ls", kind, "-o", form)[1]))

    place.start(POOLS.replace('kind = "worker"', 'kind = "worker"\nattributes_max = 64'))
    hold(place, "gpu")
    worker = place.begin("worker", "web", "--name", "w", "--lines", "none", "--attribute", "port=80",
                         "--", "sleep", "1000")
    expect_equal(worker.stderr.readline(), 'dibs worker: 1 slot of pool "web" ready\n')
    said = told("slots", "jsonl").splitlines()
    expect_equal(said[0],
                 '{"schema":"dibs.slots/1","id":"gpu/0","pool":"gpu","number":0,'
                 '"slot":"s0x100000000","state":"leased","name":null,"holder":1,"account":"uid:U",'
                 '"held_ns":N,"holder_pid":N,"holder_command":"dibs","fence":1,'
                 '"worker":null,"announcer_pid":null,"round":1,'
                 '"protected":false,"unqualified":false,"draining":false,"drained":false,"attributes":["device=0"],"resources":null,'
                 '"type":null,"held":false,"application":null,"group":null}')
    expect_equal(said[2],
                 '{"schema":"dibs.slots/1","id":"web/0","pool":"web","number":0,'
                 '"slot":"s0x100000002","state":"idle","name":"w-0","holder":null,"account":null,'
                 '"held_ns":null,"holder_pid":null,"holder_command":null,"fence":null,'
                 '"worker":"W","announcer_pid":N,'
                 '"round":0,"protected":false,"unqualified":false,"draining":false,"drained":false,'
                 '"attributes":["port=80"],"resources":null,"type":null,"held":false,'
                 '"application":null,"group":null}')
    row = (f'"pid":N,"user":"{USER}","command":"dibs",'
           '"account":"uid:U","age_ns":N,"state":"open","slots":S,"claims":0,"leases":L,'
           '"uid":N,"gid":N')
    expect_equal(told("clients", "json"),
                 '{"schema":"dibs.clients/1","rows":[{"id":"s0.1",' +
                 row.replace("S", "0").replace("L", "1") + '},{"id":"W",' +
                 row.replace("S", "1").replace("L", "0") + "}]}\n")
    expect_equal(told("workers", "jsonl"),
                 '{"schema":"dibs.workers/1","id":"W",' +
                 row.replace("S", "1").replace("L", "0") + ',"pool":null,"name":null}\n')


@case("lists that have more rows than one page come whole and in order")
def long_lists(place):
    place.start('[[pool]]\nname = "many"\nkind = "counted"\nslots = 1500\n')
    code, out, err = place.run("ls", "slots", "-o", "jsonl")
    expect_equal((code, err), (0, ""))
    expect_equal([json.loads(line)["number"] for line in out.splitlines()], list(range(1500)))


@case("a narrow terminal: columns go, and what stays is whole")
def narrow(place):
    place.start(POOLS + '[[account]]\nname = "a-rather-long-account"\n')
    holder, said = hold(place, "gpu:2", "--account", "a-rather-long-account")
    for kind in ("pools", "slots", "leases", "clients"):
        for columns in ("20", "8", "1"):
            out = place.run("ls", kind, environment={"COLUMNS": columns})[1]
            expect_equal(set(steady(out).split()) - set(steady(place.run("ls", kind)[1]).split()),
                         set())
    lease = place.run("ls", "leases", environment={"COLUMNS": "20"})[1].splitlines()[1]
    expect_equal(lease.split()[:2], [f"l{said['number']}", "gpu"])
    expect(str(holder.pid) in place.run("ls", "clients", environment={"COLUMNS": "8"})[1].split(),
           "the pid is cut")


@case("show: a pool, a slot, a lease, a claim, a client")
def show(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    for name, schema, key, value in (("gpu", "dibs.pools/1", "pool", "gpu"),
                                     ("gpu/1", "dibs.slots/1", "attributes", ["device=1"]),
                                     ("s0x100000001", "dibs.slots/1", "id", "gpu/1"),
                                     ("l1", "dibs.leases/1", "slots", [0, 1]),
                                     ("l0x100000000", "dibs.leases/1", "number", 1),
                                     ("l4294967296", "dibs.leases/1", "id", "l0x100000000"),
                                     ("c2", "dibs.claims/1", "position", 1),
                                     ("s0.1", "dibs.clients/1", "leases", 1)):
        code, out, err = place.run("show", name, "-o", "json")
        expect_equal((code, err), (0, ""))
        told = json.loads(out)
        expect_equal((told["schema"], told[key]), (schema, value))
        listed = steady(place.run("ls", schema[5:-2], "-o", "jsonl")[1])
        expect(steady(out) in listed, f"dibs ls tells the same of {name}:\n{listed}")
    expect_equal(squeezed(place.run("show", "gpu/1")[1])[:4],
                 ["id gpu/1", "pool gpu", "number 1", "slot s0x100000001"])


@case("explain: its place, its reason, who holds what it waits for")
def explain(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    place.begin("claim", "gpu")
    waiting(place, 1)
    place.begin("claim", "gpu")
    waiting(place, 2)
    code, out, err = place.run("explain", "c2", "-o", "json")
    expect_equal((code, err), (0, ""))
    expect_equal(steady(out),
                 '{"schema":"dibs.explain/1","claim":2,"pool":"gpu","account":"uid:U",'
                 f'"user":"{USER}","pid":N,"command":"dibs",'
                 '"reason":"held","obstacle":"held","position":1,"waiting":2,"units":1,'
                 '"confirmed":0,"idle":0,"slots":2,"leased":2,"waited_ns":N,"since":"D","left_ns":null,'
                 f'"holder":1,"holder_account":"uid:U","holder_user":"{USER}","holder_pid":N,'
                 '"holder_command":"dibs","holder_age_ns":N,"holder_since":"D",'
                 '"class":null,"class_reason":null,"better":null,"fitting":null,"label":null,"resource":null,'
                 '"limit":null,"limited":null,"preempt":null,'
                 '"sentence":"None of the 2 slots of gpu is idle. The longest holder is uid:U, '
                 f'process P (dibs) of user {USER}, lease l1, for T. A slot must be given back, or its '
                 'lease end."}\n')
    # The sentence first, then what it is made of.
    lines = steady(place.run("explain", "c3")[1]).splitlines()
    expect_equal(lines[:2],
                 ["1 claim stands before it. None of the 2 slots of gpu is idle. The longest holder is "
                  f"uid:U, process P (dibs) of user {USER}, lease l1, for T. A slot must be given back, or "
                  "its lease end.",
                  ""])
    expect_equal([" ".join(line.split()) for line in lines[2:6]],
                 ["claim c3", "pool gpu", "account uid:U", f"user {USER}"])
    place.begin("claim", "web")
    waiting(place, 3)
    expect_equal(place.run("explain", "c4")[1].splitlines()[0],
                 "Pool web has no slots. A worker must announce one.")


@case("explain of a claim that has ended says so, as far as the asker may know: 4")
def explain_the_ended(place):
    place.start('socket_mode = "0666"\n' + POOLS)
    expect_equal(place.run("explain", "c1"),
                 (4, "", "dibs explain: there is no claim c1: none has come yet; dibs ls claims shows "
                         "those that wait\n"))
    hold(place, "gpu:2")
    expect_equal(place.run("explain", "c1"),
                 (4, "", "dibs explain: claim c1 does not wait any more: it has its lease, l1; dibs "
                         "show l1 shows it\n"))
    waiter = place.begin("claim", "gpu")
    claim = waiting(place, 1)[0]
    for command in (("cancel", "c2"), ("release", "l1")):
        expect_equal(place.run(*command)[0], 0)
    waiter.wait()
    wait_until(place, ("ls", "leases", "-o", "jsonl"), lambda rows: not rows)
    for number in (1, 2):
        expect_equal(place.run("explain", f"c{number}"),
                     (4, "", f"dibs explain: claim c{number} has ended: it does not wait, and there "
                             f"is no lease l{number}; dibs ls claims shows those that wait\n"))
    expect_equal(place.run("explain", claim["id"]),
                 (4, "", f"dibs explain: claim {claim['id']} does not wait: it has ended or never "
                         "was; dibs ls claims shows those that wait\n"))
    expect_equal(place.run("explain", "c3"),
                 (4, "", "dibs explain: there is no claim c3: the last one that came is c2; dibs ls "
                         "claims shows those that wait\n"))
    if os.geteuid() != 0:
        return  # only root can become another user
    place.folder.chmod(0o755)
    stranger = {"user": 65534, "group": 65534, "extra_groups": []}
    expect_equal(place.run("explain", "c2", **stranger),
                 (4, "", "dibs explain: claim c2 has ended, or is another user's: it does not wait, "
                         "and you hold no lease l2; dibs ls claims shows those that wait\n"))
    expect_equal(place.run("explain", claim["id"], **stranger),
                 (4, "", f"dibs explain: claim {claim['id']} does not wait: it has ended, is another "
                         "user's, or never was; dibs ls claims shows those that wait\n"))


@case("explain counts over a long backlog")
def explain_backlog(place):
    place.start(POOLS)
    hold(place, "gpu:2")
    waiters = [place.begin("claim", "gpu") for _ in range(20)]
    rows = waiting(place, 20)
    expect_equal([row["position"] for row in rows], list(range(1, 21)))
    told = json.loads(place.run("explain", rows[-1]["id"], "-o", "json")[1])
    expect_equal((told["reason"], told["obstacle"], told["position"]), ("behind", "held", 20))
    by_pid = {row["pid"]: row["number"] for row in rows}
    place.run("cancel", f"c{rows[4]['number']}")
    left = waiting(place, 19)
    expect_equal([row["position"] for row in left], list(range(1, 20)))
    expect(rows[4]["number"] not in {row["number"] for row in left}, "it is gone")
    expect_equal(set(by_pid), {waiter.pid for waiter in waiters})


@case("snapshot: one picture of a pool")
def snapshot(place):
    place.start(POOLS)
    hold(place, "gpu")
    snapshot_of = ("snapshot", "gpu", "-o", "json")
    wait_until(place, snapshot_of, lambda rows: rows[0]["granted"] == 1)  # told after the grant
    code, out, err = place.run(*snapshot_of)
    expect_equal((code, err), (0, ""))
    out = re.sub(r'("(?:waited|reported)_\w+":)(?:\d+|null)', r"\1N", out)  # told, or not yet
    expect_equal(out, '{"schema":"dibs.snapshot/1","pool":"gpu","slots":2,"idle":1,"reserved":0,'
                      '"leased":1,"parked":0,"recovering":0,"unknown":0,"queued":0,'
                      '"confirming":0,"hits":1,"accepted":1,"granted":1,"expired":0,'
                      '"cancelled":0,"rejected":0,"released":0,"waited_p50_ns":N,'
                      '"waited_p99_ns":N,"net_found_work":0,"reported_claims":N,'
                      '"reported_p50_ns":N,"reported_p99_ns":N}\n')
    code, out, _ = place.run("snapshot", "gpu")
    expect(all(word in out for word in ("waited, p50", "waited, p99", "as clients report")), out)


@case("version: the tool's, and the broker's if one answers")
def version(place):
    code, out, err = place.run("version")
    expect_equal((code, err), (0, ""))
    expect_equal(out.splitlines()[0], "dibs 0.1.0, layout 1")
    expect(out.splitlines()[1].startswith("no broker answers at "), out)
    place.start(POOLS)
    expect_equal(place.run("version")[1].splitlines()[1],
                 f"dibsd 0.1.0, layout 1, at {place.socket}")
    expect_equal(place.run("version", "-o", "json")[1].replace(place.socket, "SOCKET"),
                 '{"schema":"dibs.version/1","version":"0.1.0","layout":1,'
                 '"broker_version":"0.1.0","broker_layout":1,"socket":"SOCKET"}\n')


if __name__ == "__main__":
    main(sys.argv)
