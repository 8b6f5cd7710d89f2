import { describe, expect, test } from "bun:test";
import { answers, openRawTarget, type RawTarget, resets, says } from "../support/raw-target.ts";
import { IN_TIME, sender } from "./attempt.ts";
import { requestTo } from "./policies.ts";
import type { HttpMethod } from "../../src/core/target.ts";

const METHODS: readonly HttpMethod[] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

function linesOf(target: RawTarget, at = 0): readonly string[] {
  return (target.requests[at] ?? "").split("\r\n");
}

describe("the request", () => {
  test("goes out as it is listed: method, path, headers, body, and only framing is added", async () => {
    await using target = await openRawTarget(answers(200));
    const headers = [
      ["X-Trace", "a b\tc"],
      ["authorization", "Bearer x"],
      ["User-Agent", "Outgate/0.1"],
      ["Content-Type", "application/json"],
    ] as const;
    const url = target.url("/a/b?c=d%20e&f=%2F#g");
    await sender.send({ url, method: "PATCH", headers, body: '{"ü":1.0}' }, IN_TIME);
    const [first, ...rest] = linesOf(target);
    expect(first).toBe("PATCH /a/b?c=d%20e&f=%2F HTTP/1.1");
    expect(rest.toSorted()).toEqual(
      [
        "",
        "Accept-Encoding: identity",
        "Accept: */*",
        "Authorization: Bearer x",
        "Connection: close",
        "Content-Length: 10",
        "Content-Type: application/json",
        `Host: 127.0.0.1:${target.port}`,
        "User-Agent: Outgate/0.1",
        "X-Trace: a b\tc",
        Buffer.from('{"ü":1.0}').toString("latin1"),
      ].toSorted(),
    );
  });

  test("names the host of the URL, whatever address is dialled", async () => {
    await using target = await openRawTarget(answers(200));
    for (const host of ["LOCALHOST", "a.localhost.", "127.1"]) {
      await sender.send(requestTo(target.url("/", host)), IN_TIME);
    }
    const hosts = target.requests.map((request) => /^Host: (.*)$/im.exec(request)?.[1]?.trim());
    expect(hosts).toEqual(["localhost", "a.localhost", "127.0.0.1"].map((host) => `${host}:${target.port}`));
  });

  test("carries 64 headers of the caller and a dozen of ours, none dropped", async () => {
    await using target = await openRawTarget(answers(200));
    const headers = Array.from({ length: 80 }, (_, at) => [`X-Header-${at}`, "v".repeat(200)] as const);
    await sender.send(requestTo(target.url(), { headers }), IN_TIME);
    expect(linesOf(target).filter((line) => line.startsWith("X-Header-")).length).toBe(80);
  });

  test("is sent once per attempt on a connection of its own, for all five methods", async () => {
    for (const dying of [says(""), resets(), says("HTTP/1.1 2"), resets("HTTP/1.1 200 OK\r\n")]) {
      await using target = await openRawTarget(dying);
      for (const method of METHODS) {
        const outcome = await sender.send(requestTo(target.url(), { method }), IN_TIME);
        expect(outcome).toEqual({ kind: "unknown", fault: "closed" });
      }
      expect([target.connections, target.requests.length]).toEqual([5, 5]);
    }
  });

  test("is sent once even where an earlier connection was left open for more", async () => {
    let served = 0;
    await using target = await openRawTarget((socket) => {
      served += 1;
      // The second request on a kept connection would find it dying, and be repeated by the engine.
      if (served % 2 === 1) socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
      else socket.destroy();
    });
    for (let round = 0; round < 10; round += 1) {
      await sender.send(requestTo(target.url(), { method: "PUT" }), IN_TIME);
    }
    expect([target.connections, target.requests.length]).toEqual([10, 10]);
  });
});
