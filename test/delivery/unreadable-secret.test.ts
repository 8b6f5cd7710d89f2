import { SIGNING_USES } from "../../src/core/account-store.ts";
import { describe, expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { answering } from "../actions/senders.ts";
import { refusalOf } from "../actions/callers.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { runStatements } from "../../db/commands/command.ts";

const ORIGIN = "http://127.0.0.1:9";

const URL_OF = `${ORIGIN}/orders`;

const NOT_SIGNED = "The call could not be signed, so it was not sent; the log of the service says why.";

/** An engine whose signing secrets, of one origin or of all, were altered by hand in the database. */
async function openAltered(column: "sealed_seed" | "sealed_root_secret") {
  const sender = answering(answered(200));
  const engine = await openEngine({ sender });
  const { signingService, owner } = engine;
  if (column === "sealed_seed") for (const use of SIGNING_USES) await signingService.rotate(owner, ORIGIN, use);
  const table = column === "sealed_seed" ? "signing_seeds" : "accounts";
  const file = openFile(`${engine.folder}/outgate.db`);
  await runStatements(file, [
    { sql: `UPDATE ${table} SET ${column} = substr(${column}, 1, length(${column}) - 8) || 'AAAAAAA='`, args: [] },
  ]);
  await file.close();
  return {
    ...engine,
    sender,
    signingService,
    table,
    unreadable: () => engine.lines.filter(({ level }) => level === "error"),
  };
}

describe.each(["sealed_seed", "sealed_root_secret"] as const)("a %s that can't be opened", (column) => {
  test("sends nothing and is no end: the action waits, says so, and is sent once it was rotated", async () => {
    await using engine = await openAltered(column);
    const { id } = await engine.create({ url: URL_OF });
    const waiting = await engine.saw(id, { status: "pending", attempts: 1 });
    expect(engine.sender.sent).toEqual([]);
    expect(waiting.result).toMatchObject({ lastError: NOT_SIGNED, errorSource: "dispatch" });
    expect(await engine.events(id)).toContainEqual(
      expect.objectContaining({ type: "attempt", outcome: "not_sent", error: NOT_SIGNED }),
    );
    const { accountId } = engine.owner;
    expect(engine.unreadable()).toEqual([
      {
        level: "error",
        event: "signing.unreadable",
        fields: { account_id: accountId, table: engine.table, row: expect.any(String) },
      },
    ]);
    await engine.signingService.rotate(engine.owner, ORIGIN);
    engine.clock.advance(2_400);
    await engine.saw(id, { status: "completed", attempts: 2 });
    expect(engine.sender.sent).toHaveLength(1);
  });

  test("is told to an owner with the way out, and the rotation page needs no look into it", async () => {
    await using engine = await openAltered(column);
    const refused = await refusalOf(engine.signingService.read(engine.owner, ORIGIN));
    expect(refused).toMatchObject({ code: "internal_error", message: expect.stringContaining("Rotate it") });
    const end = await engine.signingService.overlapEnd(engine.owner, ORIGIN);
    expect(end !== null).toBe(column === "sealed_seed");
    await engine.signingService.rotate(engine.owner, ORIGIN);
    expect(await engine.signingService.read(engine.owner, ORIGIN)).toMatchObject({ previous: null });
  });

  test("puts a callback off on its schedule, and never says that it may have arrived", async () => {
    await using engine = await openAltered(column);
    const { id } = await engine.create({ url: "http://127.0.0.1:10/", callback: URL_OF, approve: true });
    expect(await engine.told(id, "callback", 1)).toMatchObject([
      { delivered: false, attempts: 1, error: NOT_SIGNED, next_retry_at: expect.any(String) },
    ]);
    await engine.signingService.rotate(engine.owner, ORIGIN, "callbacks");
    engine.clock.advance(6_000);
    expect(await engine.told(id, "callback", 2)).toMatchObject([{}, { delivered: true, attempts: 2 }]);
  });
});
