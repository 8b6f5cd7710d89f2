import { expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { answering } from "../actions/senders.ts";
import { openEngine } from "../support/engine.ts";
import { answered } from "../support/factory.ts";
import { temporaryFolder } from "../support/store.ts";

test.each([
  ["no body", "payload = NULL"],
  ["a target that is no URL", "target = 'nowhere'"],
])("a callback that somebody left with %s is given up at once, and never said to have left", async (_what, change) => {
  await using folder = await temporaryFolder();
  const first = await openEngine({ folder: folder.path, starts: false });
  const { id } = await first.create({ approve: true, callback: "http://127.0.0.1:9/hook" });
  await first.abandon();
  const file = openFile(`${folder.path}/outgate.db`);
  await file.batch([{ sql: `UPDATE outbox SET ${change} WHERE action_id = ?`, args: [id] }]);
  await file.close();
  const sender = answering(answered(200));
  await using second = await openEngine({ folder: folder.path, sender });
  expect(await second.told(id, "callback", 1)).toMatchObject([
    {
      delivered: false,
      attempts: 1,
      error: "The request was altered after it was created or approved, so it was not sent. Given up after 1 attempt.",
      next_retry_at: null,
    },
  ]);
  expect(sender.sent).toEqual([]);
});
