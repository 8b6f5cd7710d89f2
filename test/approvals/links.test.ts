import { expect, test } from "bun:test";
import { createMakeLinks } from "../../src/approvals/links.ts";
import { anAction, later, NOON } from "../support/factory.ts";
import { openFileStore, testSecrets } from "../support/store.ts";

const baseUrl = "https://outgate.example.com";

const DAY_MS = 86_400_000;

test("the links of a run are whole URLs, one for each decision, and end after seven days", async () => {
  await using db = await openFileStore();
  const linksOf = createMakeLinks(db.store.links, testSecrets, baseUrl);
  const { approve, reject, expiresAt } = await linksOf(anAction({ approve: true }), NOON);
  expect(approve).toMatch(/^https:\/\/outgate\.example\.com\/a\/[0-9a-z]{26}-a1-[0-9a-f]{64}$/);
  expect(reject).toMatch(/^https:\/\/outgate\.example\.com\/a\/[0-9a-z]{26}-r1-[0-9a-f]{64}$/);
  expect(expiresAt).toEqual(later(7 * DAY_MS));
});

test("made again after a crash they are the same and end at the same time; of the next run they are others", async () => {
  await using db = await openFileStore();
  const action = anAction({ approve: true });
  const make = () => createMakeLinks(db.store.links, testSecrets, baseUrl);
  const first = await make()(action, NOON);
  await db.restart();
  expect(await make()(action, later(DAY_MS))).toEqual(first);
  const next = await make()({ ...action, run: 2 }, later(DAY_MS));
  expect(next.approve).not.toBe(first.approve);
  expect(next.expiresAt).toEqual(later(8 * DAY_MS));
});

test("nothing of a link is kept but its hash", async () => {
  await using db = await openFileStore();
  const action = anAction({ approve: true });
  const { approve } = await createMakeLinks(db.store.links, testSecrets, baseUrl)(action, NOON);
  const token = approve.slice(approve.lastIndexOf("/") + 1);
  const kept = await db.store.links.find({ actionId: action.id, run: 1, decision: "approve" });
  expect(JSON.stringify(kept)).not.toContain(token.slice(-64));
  expect(kept?.hash).toBe(testSecrets.hash(token));
});
