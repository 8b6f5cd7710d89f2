import { expect } from "bun:test";
import type { Answered, Outcome } from "../../src/core/outcome.ts";
import { createSender } from "../../src/outbound/send.ts";
import { type Behaviour, openRawTarget } from "../support/raw-target.ts";
import { LOCAL, requestTo } from "./policies.ts";

/** The beginning of most answers. */
export const OK = "HTTP/1.1 200 OK\r\n";

type Sent = Awaited<ReturnType<typeof sender.send>>;

export const sender = createSender(LOCAL);

/** For calls that end by themselves, however busy the machine is. */
export const IN_TIME = { timeoutMs: 10_000 } as const;

/** For calls that their deadline ends: by then a busy machine has connected, sent and read. */
export const CUT_OFF = { timeoutMs: 1_500 } as const;

/** One attempt against a target that behaves so, without headers; it must be the only one, and leave no connection when it ends. */
export async function attempt(behaviour: Behaviour, timeoutMs: number = IN_TIME.timeoutMs): Promise<Outcome> {
  await using target = await openRawTarget(behaviour);
  const outcome = await sender.send(requestTo(target.url()), { timeoutMs });
  // An answer that nobody reads or cancels is let go of after a second. A busy machine is late with the timer, too.
  let rungMs = Number.POSITIVE_INFINITY;
  const timer = setTimeout(() => (rungMs = performance.now()), 600);
  await target.abandoned();
  clearTimeout(timer);
  expect(performance.now() - rungMs).toBeLessThan(300);
  expect([target.connections, target.requests.length]).toEqual([1, 1]);
  if (outcome.kind === "stopped") throw new Error("It was stopped before it began.");
  return withoutHeaders(outcome);
}

/** An outcome as if its target had sent no headers: which ones are kept has tests of its own. */
export function withoutHeaders<Any extends Sent>(outcome: Any): Any {
  return outcome.kind === "answered" ? { ...outcome, headers: null } : outcome;
}

/** The same, where an answer is what is expected. */
export async function answer(behaviour: Behaviour, timeoutMs?: number): Promise<Answered> {
  const outcome = await attempt(behaviour, timeoutMs);
  if (outcome.kind !== "answered") throw new Error(`Not answered: ${outcome.fault}`);
  return outcome;
}

/** An answer that came whole and said nothing but status and body. */
export function whole(code: number, body: string | null): Answered {
  return {
    kind: "answered",
    code,
    body,
    headers: null,
    truncated: false,
    brokenBy: null,
    retryAfter: null,
    location: null,
  };
}

/** How bytes are shown that are no text. */
export function base64(bytes: Uint8Array): string {
  return JSON.stringify({ encoding: "base64", data: Buffer.from(bytes).toString("base64") });
}
