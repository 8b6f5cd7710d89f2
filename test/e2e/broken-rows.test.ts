import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

/** What somebody wrote into a row by hand; each in an action of its own. */
const ALTERED = [
  "revision = 'x'",
  "due_at = 'soon'",
  "due_at = 9223372036854775807",
  "created_at = ''",
  "method = 'BREW'",
  "host = x'00'",
  "sealed_headers = 'garbage'",
  "body = x'00ff'",
  "body = 'no JSON'",
  "run = 'first'",
  "url = 'nowhere'",
];

test("rows that somebody altered by hand are ended, named and readable, and hold up no other of their host", async () => {
  await using target = new Target();
  await using first = new Service();
  // Nothing is sent yet: each waits for a person, and is released by hand as well.
  const make = () => first.create({ url: target.url, approve: true, body: { a: 1 }, callback: target.url });
  const altered = await Promise.all(ALTERED.map(make));
  const good = await make();
  await first.end("SIGKILL");
  const db = new Database(join(first.folder, "data/outgate.db"));
  db.run("UPDATE outbox SET status = 'dropped', due_at = NULL");
  db.run("UPDATE actions SET status = 'pending', approve = 0, due_at = 0");
  for (const [at, text] of ALTERED.entries()) {
    db.run(`UPDATE actions SET ${text} WHERE id = ?`, [String(altered[at]?.["id"])]);
  }
  db.close();

  await using service = new Service({ folder: first.folder });
  expect(await service.final(good["id"])).toMatchObject({ status: "completed", attempts: 1 });
  for (const [at, { id }] of altered.entries()) {
    const action = await service.final(id);
    // Bytes that are sent as they are: nobody has approved others.
    const isSent = ALTERED[at] === "body = 'no JSON'";
    expect({ at: ALTERED[at], status: action["status"] }).toEqual({
      at: ALTERED[at],
      status: isSent ? "completed" : "failed",
    });
    if (!isSent)
      expect(action["last_error"]).toBe(
        "The request was altered after it was created or approved, so it was not sent.",
      );
    expect((await service.request(`/v1/actions/${String(id)}/timeline`)).status).toBe(200);
    expect((await service.request(`/v1/actions/${String(id)}/cancel`, { method: "POST" })).status).toBe(409);
  }
  expect((await service.request("/v1/actions?limit=100")).status).toBe(200);
  const named = service.log().flatMap((line) => (line.event === "action.set_aside" ? [line["action_id"]] : []));
  expect(named.length).toBe(new Set(named).size);
  const metrics = await (await service.request("/metrics")).text();
  expect(metrics).toContain(`outgate_rows_set_aside_total{of="action"} ${named.length}\n`);
  expect(named.length).toBeGreaterThan(6);
}, 30_000);
