import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { joined, signedIn } from "../http/signed-in.ts";
import { textOf } from "../support/forms.ts";
import { openCredentials, SECRET } from "./rig.ts";
import { shared } from "../support/shared.ts";

const rig = await shared(openCredentials());
const ann = await signedIn(rig.app);

const ask = async (more: object, key: string = KEYS.agent) => {
  const body = { reason: "To refund order 4711.", ...more };
  return (await rig.call("POST", "/v1/credential-requests", body, key)).json.id;
};

const pathOf = (id: string) => `/approvals/credentials/${id}`;

async function send(path: string, page: string, fields: Readonly<Record<string, string>>) {
  const answer = await ann.send(path, { ...(await ann.hiddenOf(page)), ...fields });
  return { status: answer.status, html: await answer.text(), location: answer.headers.get("location") };
}

describe("the page of a request for a credential", () => {
  test("has the suggestions filled in, takes the secret, and shows it to nobody", async () => {
    const id = await ask({ host: rig.host, name: "stripe-live", paths: ["/v1"], methods: ["POST"] });
    const inbox = await ann.pageOf("/approvals");
    expect(inbox).toContain(`href="${pathOf(id)}"`);
    expect(textOf(inbox)).toContain("1 awaiting approval");
    expect(inbox).toMatch(/<title>\(1\) Approvals/);
    expect(textOf(await ann.pageOf("/settings"))).toMatch(/Approvals 1 /);
    const html = await ann.pageOf(pathOf(id));
    for (const shown of ["To refund order 4711.", "agent", "stripe-live"]) expect(textOf(html)).toContain(shown);
    expect(html).toMatch(/name="method_POST" value="yes" checked/);
    expect(html).toContain(`${rig.host}</textarea>`);
    // The key that asks gets it in any case.
    expect(html).not.toContain(`key_${rig.agentId}`);
    const fields = { name: "stripe-live", kind: "bearer", secret: SECRET, hosts: rig.host, method_POST: "yes" };
    const wrong = await send(`${pathOf(id)}/grant`, pathOf(id), { ...fields, hosts: "*.com" });
    expect([wrong.status, wrong.html.includes(SECRET), textOf(wrong.html).includes("Is too wide")]).toEqual([
      400,
      false,
      true,
    ]);
    const granted = await send(`${pathOf(id)}/grant`, pathOf(id), fields);
    expect([granted.status, granted.location]).toEqual([303, pathOf(id)]);
    expect((await rig.call("GET", "/v1/credentials/stripe-live")).json).toMatchObject({
      keys: [rig.agentId],
      hosts: [rig.host],
      methods: ["POST"],
    });
    await rig.ended(await rig.create());
    expect(rig.target.received.at(-1)?.headers.get("authorization")).toBe(`Bearer ${SECRET}`);
    const after = await ann.pageOf(pathOf(id));
    expect(textOf(after)).toContain("Granted");
    expect(after).toContain('href="/settings/credentials/stripe-live"');
    expect(after).not.toContain('action="/approvals');
    expect(textOf(await ann.pageOf("/approvals"))).toContain("0 awaiting approval");
    const late = await send(`${pathOf(id)}/decline`, "/approvals", {});
    expect(late.status).toBe(409);
    expect(textOf(late.html)).toMatch(/This request is granted and can no longer be answered/);
    expect(textOf(await ann.pageOf("/audit"))).toContain("granted the request for a credential for");
  });

  test("keeps a suggested path with a comma in one piece: what is behind the comma is no path of its own", async () => {
    const [name, path] = ["in-one-piece", "/v1/charges,/"];
    const id = await ask({ host: rig.host, name, paths: [path] });
    expect(await ann.pageOf(pathOf(id))).toContain(`${path}</textarea>`);
    const fields = { name, kind: "bearer", secret: SECRET, hosts: rig.host, paths: path };
    expect((await send(`${pathOf(id)}/grant`, pathOf(id), fields)).status).toBe(303);
    const credential = `/v1/credentials/${name}`;
    expect((await rig.call("GET", credential)).json["paths"]).toEqual([path]);
    const page = `/settings/credentials/${name}`;
    expect((await send(page, page, { hosts: rig.host, paths: path, [`key_${rig.agentId}`]: "yes" })).status).toBe(303);
    expect((await rig.call("GET", credential)).json["paths"]).toEqual([path]);
    await rig.call("DELETE", credential);
  });

  test("declines with a reason, and tells of a credential for the same host", async () => {
    const id = await ask({ host: rig.host });
    expect(textOf(await ann.pageOf(pathOf(id)))).toContain("There is a credential for this host: stripe-live");
    const { status } = await send(`${pathOf(id)}/decline`, pathOf(id), { reason: "Use stripe-live." });
    expect(status).toBe(303);
    const { json } = await rig.call("GET", `/v1/credential-requests/${id}`, undefined, KEYS.agent);
    expect(json).toMatchObject({ status: "declined", decision_reason: "Use stripe-live." });
    expect(textOf(await ann.pageOf(pathOf(id)))).toContain("Use stripe-live.");
  });

  test("shows the words of an agent as words: no markup, nothing unseen, no secret", async () => {
    const reason = `<img src=x onerror=alert(1)> \u202egnp.exe \u200b ${SECRET} https://evil.example/`;
    const id = await ask({ host: "аpple.example", reason, paths: ["/<b>"] });
    for (const html of [await ann.pageOf(pathOf(id)), await ann.pageOf("/approvals")]) {
      expect(html).not.toMatch(/<img|<b>\/|\u202e|\u200b|href="https:\/\/evil/);
      expect(html).not.toContain(SECRET);
      expect(html).toContain("xn--pple-43d.example");
    }
    const text = textOf(await ann.pageOf(pathOf(id)));
    expect(text).toContain("The host contains letters that look like others");
    expect(text).toContain("U+202E");
  });

  test("is found by the filters of the inbox, on its first page", async () => {
    await ask({ host: "c.example" });
    const has = async (query: string) => (await ann.pageOf(`/approvals${query}`)).includes("c.example");
    expect(await Promise.all(["", "?host=c.example", `?by=${rig.agentId}`].map(has))).toEqual([true, true, true]);
    expect(await Promise.all(["?host=d.example", "?by=key_other", "?age=hour"].map(has))).toEqual([
      false,
      false,
      false,
    ]);
  });

  test("can't be answered by approvers, who see it", async () => {
    const id = await ask({ host: "e.example" });
    const bob = await joined(rig.app, "approver");
    const html = await bob.pageOf(pathOf(id));
    expect(textOf(html)).toContain("Only an owner of the account can answer it.");
    expect(html).not.toContain("/grant");
    const fields = { name: "x", kind: "bearer", secret: SECRET, hosts: "a.b" };
    for (const answer of ["grant", "decline"]) {
      expect((await bob.press(`${pathOf(id)}/${answer}`, fields)).status, answer).toBe(403);
    }
    expect((await rig.call("GET", `/v1/credential-requests/${id}`)).json.status).toBe("pending");
  });
});
