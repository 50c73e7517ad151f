#!/usr/bin/env python3
# tests/tool/admin_channel.py -- admin conversations as bytes: greetings, half messages, floods,
# tables that are none, askers who read nothing. Whatever comes, the broker serves the next one.
#
#   admin_channel.py DIBSD DIBS [PART]     speaks TAP
# SPDX-License-Identifier: Apache-2.0
import os
import socket
import struct
import sys

from tap import Skip, case, expect, expect_equal, main, number_in

POOL = '[[pool]]\nname = "gpu"\nkind = "counted"\nslots = 2\n'
HELLO = 0x4f4c48444d444944
WELCOME = 0x4d434c574d444944
FAREWELL = 0x4557455241464944
SESSION_HELLO = 0x4f4c4c4548424944


def hello(admin_version=1, version=b"0.1.0"):
    return struct.pack("<QII24sQ", HELLO, admin_version, 1, version, 0)


def request(ask):
    """The smallest Request table with one field, `ask`, at its place in the vtable."""
    # root offset · vtable: its size, the table's, where `ask` stands · table: back to the vtable
    return struct.pack("<IHHHHiB3x", 12, 6, 8, 4, 0, 8, ask)


def greet(place):
    connection = place.connect()
    connection.send(hello())
    answer = connection.recv(4096)
    expect_equal(number_in(answer, 0, "<Q"), WELCOME)
    return connection


def farewell(connection):
    answer = connection.recv(4096)
    expect_equal(number_in(answer, 0, "<Q"), FAREWELL)
    size = number_in(answer, 20, "<I")
    return answer[24:24 + size].decode()


def code_of(answer):
    """The field `code` of an Answer: the first of its vtable; absent is 0."""
    root = number_in(answer, 0, "<I")
    vtable = root - number_in(answer, root, "<i")
    size = number_in(answer, vtable, "<H")
    place = number_in(answer, vtable + 4, "<H") if size >= 6 else 0
    return answer[root + place] if place else 0


def serves(place):
    connection = greet(place)
    connection.send(request(1))
    expect_equal(code_of(connection.recv(65536)), 0)
    connection.close()


@case("greets and answers")
def greets(place):
    broker = place.start(POOL)
    connection = place.connect()
    connection.send(hello())
    answer = connection.recv(4096)
    expect_equal(len(answer), 56)
    expect_equal(number_in(answer, 8, "<I"), 1)
    expect_equal(answer[16:22], b"0.1.0\0")
    expect_equal(number_in(answer, 48, "<I"), 1)  # the broker's own user administers
    for _ in range(100):
        connection.send(request(1))
        expect_equal(code_of(connection.recv(65536)), 0)
    expect(broker.poll() is None, "the broker lives")


@case("answers requests in order that are sent before the first answer is read")
def pipelines(place):
    place.start(POOL)
    connection = greet(place)
    for ask in (1, 77, 2):
        connection.send(request(ask))
    expect_equal([code_of(connection.recv(65536)) for _ in range(3)], [0, 6, 0])


@case("says both versions to a tool of another version")
def says_versions(place):
    place.start(POOL)
    connection = place.connect()
    connection.send(hello(admin_version=7, version=b"9.9.9"))
    expect_equal(farewell(connection),
                 "dibs 9.9.9 speaks admin version 7, dibsd 0.1.0 version 1: "
                 "bring the older one up to date")


@case("says both layouts to a library of another layout")
def says_layouts(place):
    place.start(POOL)
    connection = place.connect()
    connection.send(struct.pack("<QI28x", SESSION_HELLO, 7))
    expect_equal(farewell(connection),
                 "the client speaks layout 7, this broker layout 1: "
                 "one of the two must be brought up to date")


@case("refuses half a greeting")
def half_greeting(place):
    place.start(POOL)
    connection = place.connect()
    connection.send(hello()[:20])
    expect_equal(farewell(connection), "an AdminHello has 48 bytes, this one 20")
    serves(place)


@case("ends a conversation whose request is no table")
def no_table(place):
    place.start(POOL)
    good = request(1)
    bad = [b"x", b"\0" * 12, os.urandom(200), good[:11], good[:16],
           struct.pack("<I", 0xfffffff0) + good[4:], b"\xff" * 1024, good + b"\0" * 2000]
    for packet in bad:
        connection = greet(place)
        connection.send(packet)
        answer = connection.recv(65536)
        expect_equal(code_of(answer), 1)
        expect_equal(connection.recv(65536), b"")
        connection.close()
    serves(place)


@case("lives through many requests of random bytes")
def random_bytes(place):
    broker = place.start(POOL)
    good = bytearray(request(5))
    for seed in range(300):
        connection = greet(place)
        packet = bytearray(good)
        packet[seed % len(packet)] ^= 1 << (seed % 8)
        packet[(seed * 7) % len(packet)] ^= (seed * 31) & 0xff
        connection.send(bytes(packet))
        connection.recv(65536)
        connection.close()
    expect(broker.poll() is None, "the broker lives")
    serves(place)


@case("ends who asks and never reads, and serves the others meanwhile")
def never_reads(place):
    place.start(POOL)
    silent = greet(place)
    silent.setblocking(False)
    sent = 0
    try:
        while sent < 100000:
            silent.send(request(2))
            sent += 1
    except (BlockingIOError, BrokenPipeError, ConnectionResetError):
        pass
    expect(sent < 100000, "its socket fills up: the broker takes no more from it")
    for _ in range(20):
        serves(place)
    silent.close()
    serves(place)


@case("lets an administrator in beside a crowd, and bounds the crowd")
def crowd(place):
    place.start(POOL)
    crowd = [greet(place) for _ in range(64)]
    connection = place.connect()
    connection.send(hello())
    expect_equal(farewell(connection), "too many administer already: try again in 10 seconds")
    crowd[0].close()
    # The hang-up is heard before the next greeting, which comes later on the same thread.
    serves_when_room(place)
    for one in crowd[1:]:
        one.send(request(1))
        expect_equal(code_of(one.recv(65536)), 0)
        one.close()


@case("listeners of four users leave room for a fifth who asks")
def listeners(place):
    if os.geteuid() != 0:
        raise Skip("only root can become another user")
    place.start('socket_mode = "0666"\n' + POOL)
    os.chmod(place.folder, 0o755)
    heard = []
    for user in range(61001, 61005):
        os.seteuid(user)  # whose connections they are
        try:
            for _ in range(16):
                heard.append(greet(place))
                heard[-1].send(request(22))
                expect_equal(code_of(heard[-1].recv(65536)), 0)
        finally:
            os.seteuid(0)
    expect_equal(place.run("ls", "pools", user=61005, group=61005, extra_groups=[])[0], 0)
    for one in heard:
        one.close()


def serves_when_room(place):
    while True:
        connection = place.connect()
        connection.send(hello())
        if number_in(connection.recv(4096), 0, "<Q") == WELCOME:
            return connection.close()
        connection.close()


@case("lets sessions open while conversations flood")
def flood(place):
    place.start(POOL)
    askers = [greet(place) for _ in range(16)]
    for _ in range(50):
        for one in askers:
            one.send(request(2))
        for one in askers:
            expect_equal(code_of(one.recv(65536)), 0)
    session = place.connect()
    session.send(struct.pack("<QI28x", SESSION_HELLO, 1))
    answer, descriptors, _, _ = socket.recv_fds(session, 4096, 8)
    expect_equal(len(answer), 80)
    expect_equal(len(descriptors), 5)
    for descriptor in descriptors:
        os.close(descriptor)


if __name__ == "__main__":
    main(sys.argv)
