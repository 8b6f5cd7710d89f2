import { describe, expect, test } from "bun:test";
import { proxyMatcher } from "../../src/config/values.ts";
import { FORWARDED_ADDRESSES_MAX, FORWARDED_CHARS_MAX } from "../../src/core/limits.ts";
import { clientAddress } from "../../src/http/request.ts";
import { clientNetwork } from "../../src/core/addresses.ts";

const PROXY = "10.0.0.1";

const isTrusted = proxyMatcher(["10.0.0.0/8", "fd00::/8", "127.0.0.1"]);

const from = (forwardedFor: string | null, socket = PROXY) => clientAddress(socket, forwardedFor, isTrusted);

describe("a request comes from", () => {
  test.each([
    ["its socket, where that is no proxy's", "192.0.2.1", "198.51.100.7", "192.0.2.1"],
    ["its socket, where nothing was forwarded", PROXY, null, PROXY],
    ["the address that a proxy wrote", PROXY, "198.51.100.7", "198.51.100.7"],
    ["the last address that is no proxy's", PROXY, "203.0.113.9, 198.51.100.7, 10.1.1.1", "198.51.100.7"],
    ["the proxy that stands first, where all are proxies", PROXY, "10.2.2.2,10.1.1.1", "10.2.2.2"],
    ["a proxy that came as IPv4 in IPv6", "::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"],
    ["an address with a port", PROXY, "198.51.100.7:4711", "198.51.100.7"],
    ["an IPv6 address", PROXY, "2001:DB8:0::7", "2001:db8::7"],
    ["an IPv6 address with brackets and port", PROXY, "[2001:db8::7]:4711", "2001:db8::7"],
    ["an IPv4 address in an IPv6 one", PROXY, "::ffff:198.51.100.7", "198.51.100.7"],
    ["an IPv6 proxy", "fd00::1", "198.51.100.7, fd12::1", "198.51.100.7"],
  ])("%s", (_what, socket, forwardedFor, expected) => {
    expect(from(forwardedFor, socket)).toBe(expected);
  });

  test.each(["", ",", "unknown", "_hidden", "198.51.100.7,", "198.51.100", "1.2.3.4.5", "a\tb", "999.1.1.1", "[::1"])(
    "the proxy, where what it wrote can't be read: %p",
    (forwardedFor) => {
      expect(from(forwardedFor)).toBe(PROXY);
    },
  );

  test("who a proxy says, whatever the client has written before it", () => {
    for (const forged of ["127.0.0.1", "10.0.0.1", "nonsense", ",,,", "203.0.113.9, 10.1.1.1", "x".repeat(99_999)]) {
      expect(from(`${forged}, 198.51.100.7`), forged).toBe("198.51.100.7");
    }
  });

  test("no address that was cut, and none beyond the bound", () => {
    const cut = `1198.51.100.7${" ".repeat(FORWARDED_CHARS_MAX - 22)}, 10.1.1.1`;
    expect(from(cut)).toBe("10.1.1.1");
    const many = Array.from({ length: FORWARDED_ADDRESSES_MAX }, () => "10.1.1.1").join();
    expect(from(`198.51.100.7,${many}`)).toBe("10.1.1.1");
  });

  test("nowhere, where no socket is behind it", () => {
    expect(from("198.51.100.7", "")).toBe("");
  });
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2::6", "2001:db8:1:2"],
  ["2001:db8::6", "2001:db8:0:0"],
  ["::1", "0:0:0:0"],
  ["fe80::1%eth0", "fe80:0:0:0"],
  ["", ""],
])("a client is its IPv4 address or its /64: %s is %s", (address, network) => {
  expect(clientNetwork(clientAddress(address, null, isTrusted))).toBe(network);
});
