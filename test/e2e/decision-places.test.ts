import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { openFile } from "../../db/libsql/file.ts";
import { FACTS } from "../../src/approvals/facts.ts";
import { RISKS } from "../../src/approvals/risks.ts";
import { REQUESTER_TEXTS } from "../../src/core/action.ts";
import { CreateActionBody } from "../../src/api/action-schemas.ts";
import { URL_CHARS_MAX } from "../../src/core/limits.ts";
import { outgate } from "../cli/outgate.ts";
import { ANN, signedIn } from "../http/signed-in.ts";
import { KEYS } from "../http/stub-server.ts";
import { connect } from "../mcp/clients.ts";
import { openServer } from "../mcp/test-server.ts";
import { eventually } from "../support/eventually.ts";
import { type KeptMail, Mailbox } from "../support/mailbox.ts";
import { shared } from "../support/shared.ts";
import { runStatements } from "../../db/commands/command.ts";

// Programs of their own, on a machine that may be busy.
setDefaultTimeout(60_000);

const mailbox = await shared(new Mailbox());
const server = await shared(openServer({ env: { ...mailbox.env, APPROVERS: ANN } }));
const ann = await signedIn(server);

/** The text of a page, as people read it. */
function textOf(html: string): string {
  return html
    .replaceAll(/<style>.*?<\/style>|<head>.*?<\/head>|<[^>]+>/gs, "")
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll(/&#x27;|&#39;/g, "'")
    .replaceAll("&amp;", "&");
}

/** Those that ask: others tell how it was decided. */
async function mailOf(id: string, which: number): Promise<KeptMail> {
  const asks = ({ fields }: KeptMail) => fields["v:action_id"] === id && !(fields["subject"] ?? "").startsWith("Re:");
  return eventually(() => mailbox.mails.filter(asks)[which] ?? null, "the mail");
}

/** Approves in a terminal, and answers so. */
async function commandLine(id: string, answer: string, args: readonly string[] = []): Promise<string> {
  const env = { OUTGATE_URL: server.url, OUTGATE_API_KEY: KEYS.approver };
  const { out } = await outgate(["approve", id, ...args], { env, terminal: true, input: answer });
  return out;
}

async function question(id: string): Promise<string> {
  await using client = await connect("first", server.mcpUrl, {
    key: KEYS.approver,
    answer: () => ({ action: "decline" }),
  });
  await client.call("approve", { id });
  return client.questions[0] ?? "";
}

/** What every place shows of an action that is held in its `run`. */
async function placesOf(id: string, run = 1): Promise<Readonly<Record<string, string>>> {
  const { fields } = await mailOf(id, run - 1);
  const { approve } = await server.linksOf(id);
  return {
    "mail, text": fields["text"] ?? "",
    "mail, HTML": textOf(fields["html"] ?? ""),
    "link page": textOf(await (await fetch(server.url + approve)).text()),
    review: textOf(await ann.pageOf(`/approvals/review?id=${id}`)),
    "held page": textOf(await ann.pageOf(`/approvals/${id}`)),
    "action's page": textOf(await ann.pageOf(`/actions/${id}`)),
    // Clients may render it as Markdown, where this would be emphasis.
    "MCP question": (await question(id)).replaceAll("%5F", "_"),
    "command line": await commandLine(id, "n\n"),
  };
}

async function held(members: object): Promise<string> {
  server.engine.clock.advance(60_000);
  const { json, text } = await server.call(
    "POST",
    "/v1/actions",
    { approve: true, notify: { email: ANN }, ...members },
    KEYS.agent,
  );
  if (json.id === undefined) throw new Error(text);
  return json.id;
}

/** Every text of a requester, as the API description writes it. */
const EXAMPLES = Object.fromEntries(
  REQUESTER_TEXTS.map((name) => {
    const schema: object = CreateActionBody.properties[name];
    const [example]: readonly unknown[] = "examples" in schema && Array.isArray(schema.examples) ? schema.examples : [];
    return [name, example];
  }),
);

/** Nothing is hidden from an approver here, and what is retried waits for no time. */
const ABSENT = new Set(["hidden", "run_at"]);

/** What the key of the request and other requests bring with them. */
const ABSENT_RISKS = new Set(["already_done", "key_revoked", "key_expired", "hidden_values", "similar_rejected"]);

describe("every place of decision", () => {
  test("shows every fact and every risk, in the same order and in the same words", async () => {
    await server.call("PATCH", "/v1/account", { name: "Acme" });
    const keys = JSON.parse((await server.call("GET", "/v1/keys")).text) as { data: { id: string; name: string }[] };
    const credential = {
      name: "apple",
      kind: "bearer",
      secret: "sk_live_of_nobody",
      hosts: ["xn--pple-43d.example:8443"],
      keys: keys.data.flatMap(({ id, name }) => (name === "agent" ? [id] : [])),
    };
    expect((await server.call("POST", "/v1/credentials", credential)).status).toBe(201);
    const id = await held({
      ...EXAMPLES,
      credential: "apple",
      method: "DELETE",
      url: `https://xn--pple-43d.example:8443/v1/%63ustomers/7%E2%80%AE?page=2&_method=put&${"x".repeat(1_200)}`,
      form: { note: "p\u0430ypal", amount: "1200" },
      title: "Refund 12.00 EUR to customer 4711",
      metadata: { order: "4711", ticket: "T-9" },
      expires_at: "2027-01-01T00:00:00Z",
      callback: "https://hooks.example.com/news",
      on_unknown: "stop",
    });
    await server.call("PATCH", "/v1/credentials/apple", { paths: ["/v1/customers"] });
    const file = openFile(`${server.engine.folder}/outgate.db`, "shared");
    const newer = `UPDATE actions SET extras = json_insert(extras, '$.priority', json('{"level":7}')) WHERE id = ?`;
    await runStatements(file, [{ sql: newer, args: [id] }]);
    await file.close();
    expect((await mailOf(id, 0)).fields["text"]).toContain(" The account is “Acme”.\n");
    await server.engine.actionService.cancel(server.engine.owner, id, "Not without a ticket.");
    const [keyId = null] = credential.keys;
    const agent = { ...server.engine.owner, keyId, role: "agent", scope: "account", actor: "key:agent" } as const;
    await server.engine.actionService.retry(agent, id, "Is there none?");
    await mailOf(id, 1);
    await server.engine.actionService.cancel(server.engine.owner, id, "No.");
    await server.engine.actionService.retry(server.engine.owner, id, "Ticket 4711 allows it.");
    const { facts, risks } = JSON.parse((await server.call("GET", `/v1/actions/${id}/facts`)).text) as {
      facts: { name: string; label: string; value: string }[];
      risks: { name: string; text: string }[];
    };
    expect(risks.map(({ name }) => name)).toEqual(RISKS.filter((name) => !ABSENT_RISKS.has(name)));
    expect([...new Set(facts.map(({ name }) => name))]).toEqual(FACTS.filter((name) => !ABSENT.has(name)));
    const valueOf = (wanted: string) => facts.find(({ name }) => name === wanted)?.value;
    expect(valueOf("requester")).toBe("agent, over the API");
    expect(valueOf("reason")).toBe("Ticket 4711 allows it.");
    expect(valueOf("run")).toBe("3");
    expect(valueOf("title")).toBe("Refund 12.00 EUR to customer 4711");
    expect(valueOf("extras")).toBe('{"priority":{"level":7}}');
    expect(valueOf("body")).toMatch(/^Form, 2 fields, /);
    const told = facts.filter(({ name }) => ["rejections", "rejected", "asked_again"].includes(name));
    expect(told.map(({ label, value }) => `${label}: ${value}`)).toEqual([
      "Earlier rejections: 2",
      expect.stringMatching(/^Rejected: owner, over the API, .* UTC: Not without a ticket\.$/),
      expect.stringMatching(/^Asked again: agent, over the API, .* UTC: Is there none\?$/),
      expect.stringMatching(/^Rejected: owner, over the API, .* UTC: No\.$/),
    ]);
    for (const [place, shown] of Object.entries(await placesOf(id, 3))) {
      for (const { text } of risks) expect(shown, place).toContain(text);
      let from = 0;
      for (const { name, label, value } of facts) {
        // Where the page is depends on where its reader is; the address of the action is its id and a link.
        // Hosts in a text are written so that they become no link, in mails and questions.
        const wanted = { action: id, credential: "apple (Bearer, ••••" }[name] ?? value;
        // A mail shows the call, the body and the requester's words without a label for each; `test/mail` tests its order.
        if (place.startsWith("mail")) {
          expect(shown, `${place} ${name}`).toContain(wanted);
          continue;
        }
        const at = shown.indexOf(label, from);
        const is = { place, name, isThere: at !== -1 && shown.slice(at + label.length).includes(wanted) };
        expect(is).toEqual({ place, name, isThere: true });
        from = at + label.length;
      }
      for (const { value } of told.slice(1)) {
        expect(shown.split(value).length - 1, `${place} ${value}`).toBe(1);
      }
    }
    const links = await Promise.all(["/approvals", `/approvals/${id}`].map((path) => ann.pageOf(path)));
    for (const html of [...links, (await mailOf(id, 2)).fields["html"] ?? ""]) {
      expect(html).toMatch(new RegExp(String.raw`href="[^"]*/actions/${id}"`));
    }
    const { approve } = await server.linksOf(id);
    // The approval link itself stands in the mail alone.
    for (const [place, shown] of Object.entries(await placesOf(id, 3))) {
      const isThere = shown.includes(approve.slice(3));
      expect(isThere, place).toEqual(place.startsWith("mail, text"));
    }
    expect((await mailOf(id, 2)).fields["subject"]).toBe(
      `Approve? xn--pple-43d.example:8443 · DELETE /v1/%63ustomers/7%E2%80%AE · "Refund 12.00 EUR to customer 4711" · ${id.slice(-6)}, run 3`,
    );
    expect((await server.engine.get(id)).status).toBe("awaiting_approval");
  });

  test("shows the longest host and the longest URL whole", async () => {
    const host = `${"api.stripe.com.".repeat(16)}evil.example`.padStart(253, "a");
    expect(host).toHaveLength(253);
    const url = `https://${host}/`.padEnd(URL_CHARS_MAX, "x");
    const id = await held({ url, callback: url });
    for (const [place, shown] of Object.entries(await placesOf(id))) {
      // As the URL and as the callback; the page of the action has it in its head, too.
      const times = shown.split(url).length - 1;
      expect(times === (place === "action's page" ? 4 : 2), place).toBe(true);
    }
    const subject = (await mailOf(id, 0)).fields["subject"];
    expect(subject).toStartWith("Approve? …com.api.stripe.com.evil.example · POST /xxx");
  });
});

describe("the command line", () => {
  test("asks in a terminal before it approves, and takes only yes for it", async () => {
    const id = await held({ url: "https://api.example.com/orders", body: { amount: 5 } });
    const statusOf = async () => (await server.engine.get(id)).status;
    for (const answer of ["\n", "n\n", "yep\n", "\u0004"]) {
      const said = await commandLine(id, answer);
      expect(said).toContain('"amount": 5');
      expect(said).toContain("Approve this request? [y/N]");
      expect(said).toContain("Nothing was decided.");
      expect(await statusOf()).toBe("awaiting_approval");
    }
    expect(await commandLine(id, "y\n")).toContain("pending");
    expect(await statusOf()).not.toBe("awaiting_approval");
    // Then there is nothing to ask.
    const late = await commandLine(id, "");
    expect(late).not.toContain("[y/N]");
    expect(late).toContain("cannot be approved");
  });

  test("asks nothing with --yes, nor where there is no terminal, nor with a key that may not approve", async () => {
    const [one, two] = [await held({ url: "https://a.example/" }), await held({ url: "https://a.example/" })];
    const agents = { OUTGATE_URL: server.url, OUTGATE_API_KEY: KEYS.agent };
    const refused = await outgate(["approve", one], { env: agents, terminal: true, input: "y\n" });
    expect(refused).toMatchObject({ code: 1, out: expect.not.stringContaining("[y/N]") });
    expect(await commandLine(one, "", ["--yes"])).not.toContain("[y/N]");
    const env = { OUTGATE_URL: server.url, OUTGATE_API_KEY: KEYS.approver };
    const said = await outgate(["approve", two], { env });
    expect(said).toMatchObject({ code: 0, err: "" });
    for (const id of [one, two]) {
      expect((await server.engine.get(id)).approvedBy).toBe("key:approver");
    }
  });

  test("shows the facts of a held action with get, and asks before it rejects", async () => {
    const id = await held({ method: "DELETE", url: "https://a.example/x" });
    const env = { OUTGATE_URL: server.url, OUTGATE_API_KEY: KEYS.owner };
    const got = await outgate(["get", id], { env, terminal: true });
    expect(got).toMatchObject({ code: 4 });
    expect(got.out).toContain("Requested by");
    expect(got.out).toContain("! It deletes: the method is DELETE.");
    const said = await outgate(["reject", id], { env, terminal: true, input: "y\n" });
    expect(said.out).toContain("Reject this request? [y/N]");
    expect((await server.engine.get(id)).status).toBe("cancelled");
  });
});
