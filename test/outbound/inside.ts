import { describe, expect, test } from "bun:test";
import { basename } from "node:path";
import { createSender } from "../../src/outbound/send.ts";
import { isInside, isPossible, runInside } from "../support/namespace.ts";
import { type DnsAnswer, type DnsScript, NXDOMAIN } from "../support/namespace-dns.ts";
import { policyWith, requestTo } from "./policies.ts";

/** As with HOST=0.0.0.0 ALLOWED_PRIVATE_TARGETS=127.0.0.1/32; 127.0.0.66 stands for what must never be reached. */
export const ALLOWED = "127.0.0.1";

export const FORBIDDEN = "127.0.0.66";

export const PORT = 8_080;

const sender = createSender(policyWith({ allowedPrivateTargets: [`${ALLOWED}/32`] }));

/** Tests that have a network of their own: they run in a second process, which `runsInside` starts. */
export const inside: (name: string, tests: () => void) => void = isInside() ? describe : () => {};

/** Runs the tests of a file that stand in `inside`, and passes when they do; skipped where no namespace can be made. */
export function runsInside(path: string): void {
  if (isInside()) return;
  const file = basename(path);
  const possible = isPossible();
  if (!possible) console.log(`${file}: skipped, unshare is not permitted here`);
  test.skipIf(!possible)("in a network of its own", () => runFile(path), RUN_MS_MAX);
}

const RUN_MS_MAX = 60_000;

async function runFile(path: string): Promise<void> {
  const { exitCode, output } = await runInside([process.execPath, "test", path], RUN_MS_MAX);
  const isOfInterest = (line: string) => /skipped|rebinding:|^ *[1-9]\d* (pass|skip|fail)$/.test(line);
  console.log(exitCode === 0 ? output.split("\n").filter(isOfInterest).join("\n") : output);
  expect(exitCode).toBe(0);
}

/** A script for IPv4; about IPv6 it says what no cache keeps. */
export function v4(script: (name: string) => DnsAnswer): DnsScript {
  return (name, type) => (type === "A" ? script(name) : NXDOMAIN);
}

/** One attempt at a host, under the policy above or another one. */
export function send(host: string, { timeoutMs = 2_000, port = PORT, by = sender } = {}) {
  return by.send(requestTo(`http://${host}:${port}/`), { timeoutMs });
}
