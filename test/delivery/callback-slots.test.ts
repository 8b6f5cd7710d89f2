import { describe, expect, test } from "bun:test";
import type { OutboundRequest, Sender } from "../../src/outbound/sender.ts";
import { anotherOwner } from "../actions/callers.ts";
import { type Engine, openEngine } from "../support/engine.ts";
import { eventually } from "../support/eventually.ts";
import { answered } from "../support/factory.ts";

describe("a receiver that takes everything and answers nothing", () => {
  /** Calls to the hooks stay open until the end of the test. */
  function hanging() {
    const open: OutboundRequest[] = [];
    const sender: Sender = {
      send: (request, { stop }) => {
        if (!request.url.includes("silent")) return Promise.resolve(answered(200));
        open.push(request);
        return new Promise((resolve) => {
          stop?.addEventListener("abort", () => resolve({ kind: "unknown", fault: "interrupted" }));
        });
      },
    };
    return { open, sender };
  }
  const silent = (port: number) => `http://127.0.0.1:${port}/silent`;

  const opened = (open: readonly OutboundRequest[], count: number) =>
    eventually(() => (open.length >= count ? open : null), `${count} open calls`);

  async function finish(engine: Engine, callback: string, count: number): Promise<void> {
    const created = await Promise.all(Array.from({ length: count }, () => engine.create({ callback })));
    await Promise.all(created.map(({ id }) => engine.saw(id, { status: "completed" })));
  }

  test("delays no action, and holds no more than its slots", async () => {
    const { open, sender } = hanging();
    await using engine = await openEngine({ sender });
    await finish(engine, silent(9_001), 300);
    await opened(open, 16);
    expect(open).toHaveLength(16);
  });

  test("delays no callback to another host, nor those of another account", async () => {
    const { open, sender } = hanging();
    await using engine = await openEngine({ sender });
    for (let port = 9_001; port <= 9_020; port += 1) await finish(engine, silent(port), 20);
    // Three quarters of the 56 slots that Bun's default leaves: the others are for whoever comes next.
    await opened(open, 42);
    expect(open).toHaveLength(42);
    const stranger = await anotherOwner(engine);
    const request = { ...(await engine.create({ approve: true })), approve: false, callback: "http://127.0.0.1:9100/" };
    const { action } = await engine.actionService.create(stranger, request);
    await engine.actionService.wait(stranger, action.id, { waitMs: 1_000 });
    await eventually(async () => {
      const [entry] = await engine.store.outbox.list(stranger.accountId, null, 1);
      return entry?.status === "delivered" ? entry : null;
    }, "the callback of the stranger");
  });
});
