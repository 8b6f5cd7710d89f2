import { expect, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { openRealServer } from "./real-server.ts";
import { signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";
import { runStatements } from "../../db/commands/command.ts";

test("what another version stored with an action is shown, masked as its viewer sees it, and not on the receipt", async () => {
  await using app = await openRealServer({ starts: false });
  const ann = await signedIn(app);
  const { id } = await app.engine.create({ approve: true, url: "https://api.example.com/" });
  const token = "tok_4f9a8b7c6d5e4f3a2b1c";
  const extras = { priority: { level: 7 }, apiToken: token };
  const file = openFile(`${app.engine.folder}/outgate.db`, "shared");
  const set = "UPDATE actions SET extras = ? WHERE id = ?";
  await runStatements(file, [{ sql: set, args: [JSON.stringify(extras), id] }]);
  await file.close();

  const seenBy = async (key: string) => {
    const { text } = await app.call("GET", `/v1/actions/${id}`, undefined, key);
    return JSON.parse(text) as { extras?: object; hidden_values?: number; receipt_url: string };
  };
  const whole = await seenBy(KEYS.owner);
  expect(whole.extras).toEqual(extras);
  const masked = {
    extras: { priority: { level: 7 }, apiToken: expect.stringContaining("24-chars") },
    hidden_values: 1,
  };
  expect(await seenBy(KEYS.approver)).toMatchObject(masked);

  for (const path of [`/actions/${id}`, `/approvals/${id}`]) {
    const page = await ann.pageOf(path);
    expect(page).toContain("Only for another version");
    expect(page).toContain("level");
    expect(page).not.toContain(token);
  }
  for (const accept of ["application/json", "text/html"]) {
    const receipt = await (await fetch(app.url + whole.receipt_url, { headers: { accept } })).text();
    expect(receipt).toContain("api.example.com");
    expect(receipt).not.toMatch(/priority|apiToken|tok_/);
  }
});
