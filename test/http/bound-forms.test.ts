import { describe, expect, test } from "bun:test";
import { requestDigest } from "../../src/core/dedupe.ts";
import { later } from "../support/factory.ts";
import { hiddenIn, pressLink } from "../support/forms.ts";
import { openRealServer } from "./real-server.ts";
import { KEYS } from "./stub-server.ts";
import { signedIn } from "./signed-in.ts";
import { shared } from "../support/shared.ts";

const app = await shared(openRealServer({ starts: false }));
const ann = await signedIn(app);

let count = 0;

async function created(members: object): Promise<string> {
  const url = `http://127.0.0.1:9/${(count += 1)}`;
  return (await app.call("POST", "/v1/actions", { url, ...members })).json.id;
}

const stateOf = async (id: string) => {
  const { status, run } = await app.engine.get(id);
  return [status, run];
};

const HELD = { approve: true, notify: { email: "ann@example.com" } };

const LATER = { run_at: later(3_600_000).toISOString() };

/** Every single decision of a page: which form, what it chooses, and the action that it is for. */
const DECISIONS = [
  ["the inbox", "/approvals/", "approve", HELD],
  ["the inbox", "/approvals/", "reject", HELD],
  ["the page of an action", "/actions/", "approve", HELD],
  ["the page of an action", "/actions/", "reject", HELD],
  ["the page of an action", "/actions/", "cancel", LATER],
  ["the page of an action", "/actions/", "send_now", LATER],
  ["the page of an ended action", "/actions/", "retry", LATER],
  ["the page of an ended action", "/actions/", "retry_and_approve", HELD],
  ["the page of its secrets", "/reveal", "approve", HELD],
  ["the link of a mail", "/a/", "approve", HELD],
  ["the link of a mail", "/a/", "reject", HELD],
] as const;

describe.each(DECISIONS)("on %s (%s) the form to %s", (_name, place, decision, members) => {
  /** The page of a new action, and its form as it is sent. */
  async function opened() {
    const id = await created(members);
    if (decision.startsWith("retry")) await app.call("POST", `/v1/actions/${id}/cancel`);
    const link = place === "/a/" ? (await app.linksOf(id)).approve : null;
    const path = link ?? (place === "/reveal" ? `/actions/${id}` : `${place}${id}`);
    const html =
      place === "/reveal"
        ? await (await ann.send(`${path}/reveal`, await ann.hiddenOf(path))).text()
        : await ann.pageOf(path);
    const { requests = "", ...fields } = hiddenIn(html);
    expect(requests).toStartWith(`${id},1,`);
    return { id, path, requests, fields: { ...fields, decision, reason: "Seen." } };
  }

  test("decides on what its page showed, and on nothing else", async () => {
    const { id, path, requests, fields } = await opened();
    const before = await stateOf(id);
    const other = await ann.send(path, { ...fields, requests: requests.replace(/.$/, "x") });
    const told = await other.text();
    expect([other.status, told.includes(`The request of action ${id} is not the one that was shown.`)]).toEqual([
      409,
      true,
    ]);
    expect(told).toContain("Seen.</textarea>");
    // A tab that was open during an update, and the form of another action.
    const old = await ann.send(path, fields);
    expect([old.status, (await old.text()).includes("Read the action again before you decide.")]).toEqual([400, true]);
    for (const wrong of ["", `${await created(members)},1,2:00`, `${requests} ${requests}`, `${id},x,2:00`]) {
      expect((await ann.send(path, { ...fields, requests: wrong })).status, wrong).toBe(400);
    }
    expect(await stateOf(id)).toEqual(before);
    expect((await ann.send(path, { ...fields, requests })).status).toBe(303);
    if (decision !== "send_now") expect(await stateOf(id)).not.toEqual(before);
  });

  test("decides nothing in a later run: somebody may have rejected that, or what it said may be unknown", async () => {
    const { id, path, requests, fields } = await opened();
    if (!decision.startsWith("retry")) await app.call("POST", `/v1/actions/${id}/cancel`);
    await app.call("POST", `/v1/actions/${id}/retry`);
    if (decision.startsWith("retry")) await app.call("POST", `/v1/actions/${id}/cancel`);
    const before = await stateOf(id);
    const { status } = await ann.send(path, { ...fields, requests });
    // A link leads to the receipt.
    expect([before[1], status]).toEqual([2, place === "/a/" ? 303 : 409]);
    expect(await stateOf(id)).toEqual(before);
  });
});

test("nobody who decides gets a digest by which masked values could be guessed", async () => {
  const url = "http://127.0.0.1:9/shops";
  const id = await created({ ...HELD, url, headers: { Authorization: `Basic ${btoa("shop:autumn24")}` } });
  const { approve } = await app.linksOf(id);
  const { json } = await app.call("GET", `/v1/actions/${id}/facts`, undefined, KEYS.approver);
  const { digest } = json as never as { digest: string };
  const ofLink = hiddenIn(await (await fetch(app.url + approve)).text());
  const ofPage = hiddenIn(await ann.pageOf(`/approvals/${id}`));
  const requests = `${id},1,${digest}`;
  expect([ofLink["requests"], ofPage["requests"]]).toEqual([requests, requests]);
  // Of the right guess, and of a request that the guesser could create.
  const guess = requestDigest(await app.engine.get(id), (text) => new Bun.SHA256().update(text).digest("hex"));
  const other = await created({ ...HELD, url, headers: { Authorization: `Basic ${btoa("shop:autumn24")}` } });
  expect(guess).not.toContain(digest);
  expect(digest).not.toBe(app.engine.actionService.actionDigest(await app.engine.get(other)));
  for (const wrong of [guess, guess.replace(/^2:/, "")]) {
    const pressed = await pressLink(app.url + approve, { requests: `${id},1,${wrong}`, decision: "approve" });
    expect([pressed.status, await stateOf(id)]).toEqual([409, ["awaiting_approval", 1]]);
  }
});
