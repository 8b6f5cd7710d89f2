import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { outgate } from "../cli/outgate.ts";
import { connect } from "../mcp/clients.ts";
import { openServer as openMcpServer } from "../mcp/test-server.ts";
import { Listener } from "../support/listener.ts";
import { OPERATIONS } from "../support/operations.ts";
import { SECRET_FORMATS } from "../../src/receipts/secret-formats.ts";
import { Target } from "../support/target.ts";
import {
  answerOfTarget,
  BODY_PARTS,
  type BodyPart,
  CANARIES,
  type Canary,
  DECIDER,
  decodedIn,
  type Part,
  PARTS,
  REASON,
  requestTo,
  sentText,
  VAULTED,
} from "./canaries.ts";
import { ANN_PASSWORD, signedIn } from "./signed-in.ts";
import { KEYS } from "./stub-server.ts";

type Role = "owner" | "approver" | "agent" | "reader";

type TestServer = Awaited<ReturnType<typeof openServer>>;

const MAILGUN_KEY = "key-of-mailgun-0123456789abcdef";

const SAID: readonly Part[] = ["title", "asked", "metadata"];

/** `body` stands for whichever member the body was given as. */
const REQUEST: readonly Part[] = ["header", "url", "callback", "body", ...SAID];

const ACTION: readonly Part[] = [...REQUEST, "answer", "actor"];

/** Somewhere that something is shown. What it may hold and need not stands in neither list. */
interface Place {
  readonly name: string;
  /** While the action waits for a person, or when it is over. */
  readonly when: "held" | "over";
  readonly read: (server: TestServer) => Promise<string>;
  /** Whole, as it was written: nothing is lost to whom it belongs. */
  readonly whole: readonly Part[];
  readonly without: readonly Part[];
  /** Somebody who decides may see it: values that are secret by their name alone stand there. */
  readonly isForDecider: boolean;
}

const place = (name: string, when: Place["when"], whole: readonly Part[], read: Place["read"]): Place => ({
  name,
  when,
  whole,
  read,
  // Whoever sees a part of the request whole may see every field of it.
  without: PARTS.filter((part) => !whole.includes(part) && (part !== "field" || whole.length === 0)),
  isForDecider: !/receipt|reader|log|message to/.test(name),
});

type PathOf = (server: Pick<TestServer, "id">) => string;

/** Every path that a place reads. */
const pathsRead = new Set<PathOf>();

function get(role: Role, path: PathOf): Place["read"] {
  pathsRead.add(path);
  return (server) => server.as(role, "GET", path(server));
}

const one: PathOf = ({ id }) => `/v1/actions/${id}`;

const waited: PathOf = ({ id }) => `/v1/actions/${id}?wait=1`;

const list = () => "/v1/actions";

const exported = (format: string) => () => `/v1/actions/export?format=${format}`;

const facts: PathOf = ({ id }) => `/v1/actions/${id}/facts`;

const attempts: PathOf = ({ id }) => `/v1/actions/${id}/attempts`;

const timeline: PathOf = ({ id }) => `/v1/actions/${id}/timeline`;

const REST: readonly Place[] = (["owner", "agent", "approver", "reader"] as const).flatMap((role) => {
  const mayUse = role === "owner" || role === "agent";
  const parts = (seen: readonly Part[]) => (mayUse ? seen : []);
  return [
    place(`${role}: the action while it is held`, "held", parts(REQUEST), get(role, one)),
    place(`${role}: what is told to whoever decides`, "held", [], get(role, facts)),
    place(`${role}: the action`, "over", parts(ACTION), get(role, one)),
    place(`${role}: the action, waited for`, "over", parts(ACTION), get(role, waited)),
    place(`${role}: the list`, "over", parts(ACTION), get(role, list)),
    place(`${role}: the export`, "over", parts(ACTION), get(role, exported("ndjson"))),
    place(`${role}: the export as CSV`, "over", parts(["url", "actor", ...SAID]), get(role, exported("csv"))),
    place(`${role}: the timeline`, "over", parts(["reason", "asked", "location", "actor"]), get(role, timeline)),
    place(`${role}: the attempts`, "over", parts(["answer", "location"]), get(role, attempts)),
    place(`${role}: the stream of events`, "over", parts(ACTION), async ({ streams }) => {
      await streams[role].heard(({ events }) => events.at(-1)?.event === "action.failed");
      return streams[role].events.map(({ data }) => data).join("\n");
    }),
  ];
});

test("every route that shows actions is a place where canaries are looked for", () => {
  const paths = new Set(Array.from(pathsRead, (path) => path({ id: "{id}" }).replace(/\?.*/, "")));
  const routes = OPERATIONS.filter(({ method, path }) => method === "GET" && path.startsWith("/v1/actions"));
  // Counts are numbers alone.
  const shown = routes.filter(({ id }) => id !== "countActions").map(({ path }) => path);
  expect(shown.length).toBeGreaterThan(5);
  expect(shown.filter((path) => !paths.has(path))).toEqual([]);
});

/** What `outgate get` prints. */
const commandLine =
  (role: Role, options: readonly string[]): Place["read"] =>
  async ({ app, id }) => {
    const env = { OUTGATE_URL: app.url, OUTGATE_API_KEY: KEYS[role] };
    const { out, err } = await outgate(["get", id, ...options], { env });
    return out + err;
  };

/** What an agent's client gets at /mcp, as it came over the wire. */
const tool =
  (role: Role, name: string, args: (server: TestServer) => Record<string, unknown>): Place["read"] =>
  async (server) => {
    await using client = await connect("modern", server.app.mcpUrl, { key: KEYS[role] });
    return JSON.stringify(await client.call(name, args(server)));
  };

const resource =
  (role: Role): Place["read"] =>
  async (server) => {
    await using client = await connect("modern", server.app.mcpUrl, { key: KEYS[role] });
    const { contents } = await client.client.readResource({ uri: `outgate://actions/${server.id}` });
    return contents.map((content) => ("text" in content ? content.text : "")).join("\n");
  };

const question: Place["read"] = async ({ app, id }) => {
  await using client = await connect("modern", app.mcpUrl, { key: KEYS.agent, answer: () => ({ action: "cancel" }) });
  await client.call("approve", { id });
  return client.questions.join("\n");
};

/** A place that cuts what is long: it may hold these parts, and need not. */
const cutPlace = (...given: Parameters<typeof place>): Place => ({ ...place(...given), whole: [] });

const MCP: readonly Place[] = (["owner", "agent", "approver", "reader"] as const).flatMap((role) => {
  const mayUse = role === "owner" || role === "agent";
  const parts = (seen: readonly Part[]) => (mayUse ? seen.filter((part) => part !== "header") : []);
  const decided = parts([...ACTION, "reason"]);
  const byId = ({ id }: TestServer) => ({ id });
  return [
    cutPlace(`MCP, ${role}: get`, "over", decided, tool(role, "get", byId)),
    cutPlace(`MCP, ${role}: wait`, "over", decided, tool(role, "wait", byId)),
    cutPlace(
      `MCP, ${role}: list`,
      "over",
      parts(["url", "title"]),
      tool(role, "list", () => ({})),
    ),
    cutPlace(`MCP, ${role}: resource`, "over", decided, resource(role)),
  ];
});

/** Every place where anything is shown or kept: a new one is a row here. */
const PLACES: readonly Place[] = [
  ...REST,
  ...MCP,
  place("MCP: the question to an agent's person", "held", [], question),
  place("agent: the answer to the create", "over", REQUEST, async ({ answers }) => answers.created),
  place("approver: the answer to the approval", "over", [], async ({ answers }) => answers.approved),
  place("agent: the answer to a create that finds it", "held", REQUEST, (server) => server.create()),
  place("receipt of what is held, page", "held", [], (server) => server.context(server.receipt)),
  place("receipt, page", "over", [], (server) => server.context(server.receipt)),
  place("receipt, JSON", "over", [], (server) => server.context(server.receipt, { accept: "application/json" })),
  place("approval page", "held", [], (server) => server.context(server.links.approve)),
  place("rejection page", "held", [], (server) => server.context(server.links.reject)),
  place("inbox", "held", [], ({ ann }) => ann.pageOf("/approvals")),
  place("inbox, the action", "held", [], ({ ann, id }) => ann.pageOf(`/approvals/${id}`)),
  place("page of the body", "held", [], ({ ann, id }) => ann.pageOf(`/actions/${id}/body`)),
  place("page of the body by a link", "held", [], (server) => server.context(`${server.links.approve}/body`)),
  place("inbox, a review", "held", [], ({ ann, id }) => ann.pageOf(`/approvals/review?id=${id}`)),
  place("inbox, the action when it is over", "over", [], ({ ann, id }) => ann.pageOf(`/approvals/${id}`)),
  place("inbox, what was decided", "over", [], ({ ann, id }) => ann.pageOf(`/approvals?decided=${id}`)),
  place("page of the action while it is held", "held", [], ({ ann, id }) => ann.pageOf(`/actions/${id}`)),
  place("page of the action", "over", [], ({ ann, id }) => ann.pageOf(`/actions/${id}`)),
  place("form that sends it again", "over", [], ({ ann, id }) => ann.pageOf(`/actions/${id}/edit`)),
  place("page of the newest actions", "over", [], ({ ann }) => ann.pageOf("/actions")),
  place("overview", "over", [], ({ ann }) => ann.pageOf("/overview")),
  place("page of callbacks and mails", "over", [], ({ ann }) => ann.pageOf("/settings/notifications")),
  place("command line, reader: the action", "over", [], commandLine("reader", [])),
  place("command line, approver: what is decided on", "held", [], async ({ app, id }) => {
    const env = { OUTGATE_URL: app.url, OUTGATE_API_KEY: KEYS.approver };
    return (await outgate(["reject", id], { env, terminal: true, input: "n\n" })).out;
  }),
  place("command line, reader: the timeline", "over", [], commandLine("reader", ["--timeline"])),
  place(
    "command line, owner: the timeline",
    "over",
    ["reason", "asked", "location", "actor"],
    commandLine("owner", ["--timeline", "--json"]),
  ),
  // A callback holds what an agent key would see, but masked header values.
  place("callback of the hold", "held", ["url", "callback", "body", ...SAID], async ({ hooks }) => {
    await hooks.saw(1);
    return hooks.received[0]?.body ?? "";
  }),
  place("callback of the end", "over", ["url", "callback", "body", "answer", "actor", ...SAID], async ({ hooks }) => {
    await hooks.saw(2);
    return hooks.received[1]?.body ?? "";
  }),
  place("mail that asks", "held", [], async ({ mailgun }) => {
    await mailgun.saw(1);
    return mailgun.received[0]?.body ?? "";
  }),
  ...(["slack", "webhook"] as const).map((kind) =>
    place(`message to ${kind}`, "held", [], async ({ chats }) => {
      await chats.saw(2);
      return chats.received.find(({ path }) => path === `/${kind}`)?.body ?? "";
    }),
  ),
  place("mail that tells what was decided", "over", [], async ({ mailgun }) => {
    await mailgun.saw(2);
    return mailgun.received[1]?.body ?? "";
  }),
  place("log", "over", [], async ({ app }) => JSON.stringify([app.lines, app.logged, app.engine.lines])),
  {
    name: "database file",
    when: "over",
    read: async ({ app }) => bytesOf(app.engine.folder),
    whole: [],
    // Bodies, URLs and answers are kept as they are; docs/security.md says so.
    without: ["header", "dropped"],
    isForDecider: false,
  },
];

async function openServer(part: BodyPart) {
  const stack = new AsyncDisposableStack();
  const target = stack.use(new Target(answerOfTarget));
  const hooks = stack.use(new Target(200));
  const chats = stack.use(new Target(200));
  const queued = { id: "<1@mg.example.com>", message: "Queued. Thank you." };
  const mailgun = stack.use(new Target(() => Response.json(queued)));
  const env = {
    MAILGUN_API_KEY: MAILGUN_KEY,
    MAILGUN_DOMAIN: "mg.example.com",
    MAILGUN_URL: mailgun.url,
    APPROVERS: "boss@example.com",
  };
  const app = stack.use(await openMcpServer({ env }));
  const ann = await signedIn(app);
  const as = async (role: Role, method: string, path: string, body?: string) => {
    const { status, text } = await app.call(method, path, body, KEYS[role]);
    expect(status < 300, `${role} ${method} ${path}`).toBe(true);
    return text;
  };
  for (const kind of ["slack", "webhook"])
    await as("owner", "POST", "/v1/channels", JSON.stringify({ name: kind, kind, url: `${chats.url}${kind}` }));
  const { keyId } = await app.authenticate(`Bearer ${KEYS.agent}`);
  const vault = {
    name: "vault",
    kind: "header",
    header: "X-Vault",
    secret: VAULTED,
    hosts: [new URL(target.url).host],
  };
  await as("owner", "POST", "/v1/credentials", JSON.stringify({ ...vault, keys: [keyId] }));
  const listen = async (role: Role) =>
    stack.use(await Listener.open(`${app.url}/v1/events`, { authorization: `Bearer ${KEYS[role]}` }));
  const streams = {
    owner: await listen("owner"),
    approver: await listen("approver"),
    agent: await listen("agent"),
    reader: await listen("reader"),
  };
  // Streams begin with what comes after them.
  for (const stream of Object.values(streams)) await stream.heard(({ others }) => others.length > 0);
  const create = () => as("agent", "POST", "/v1/actions", requestTo(target.url, hooks.url, part));
  const created = await create();
  const { id, receipt_url: receipt }: { id: string; receipt_url: string } = JSON.parse(created);
  const answers = { created, approved: "" };
  return {
    app,
    ann,
    as,
    streams,
    create,
    id,
    receipt,
    answers,
    hooks,
    target,
    mailgun,
    chats,
    links: await app.linksOf(id),
    context: async (path: string, headers: Readonly<Record<string, string>> = { accept: "text/html" }) => {
      const response = await fetch(app.url + path, { headers, redirect: "manual" });
      expect({ path: path.replace(/[^/]{30,}/, "{token}"), status: response.status }).toMatchObject({ status: 200 });
      return response.text();
    },
    /** Approves it, with a reason, and waits for the end. */
    async decide(): Promise<void> {
      const made = await as("owner", "POST", "/v1/keys", JSON.stringify({ name: DECIDER, role: "approver" }));
      const { key }: { key: string } = JSON.parse(made);
      const approval = { reason: REASON };
      const headers = { authorization: `Bearer ${key}` };
      const { status, text } = await app.call("POST", `/v1/actions/${id}/approve`, approval, headers);
      expect(status).toBe(200);
      answers.approved = text;
      await app.engine.saw(id, { status: "failed" });
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

function bytesOf(folder: string): string {
  const files = readdirSync(folder).filter((name) => /\.db(-wal)?$/.test(name));
  return files.map((name) => readFileSync(join(folder, name), "latin1")).join("\n");
}

let server: TestServer;

afterAll(() => server[Symbol.asyncDispose]());

/** What the others show in the same way as of a JSON object. */
const ONLY_WITH_BODY = new RegExp(
  [
    "command line, (reader|owner)|stream of events|timeline|overview|^log$|callbacks and mails",
    "waited for|as CSV|the attempts|MCP, \\w+: (wait|list|resource)|what was decided|newest actions",
    "the (list|export)$|rejection page",
  ].join("|"),
);

/** `npm test` plants them in a JSON body alone, the guards in each kind of one. The tests below need the one of `body`, last. */
const PLANTED = BODY_PARTS.filter((part) => part === "body" || process.env["CANARIES_IN"] !== "body").toReversed();

describe.each(PLANTED)("thirty and more secrets, planted through every field, with %s", (part) => {
  const places = PLACES.filter(({ name }) => part === "body" || !ONLY_WITH_BODY.test(name));

  /** The secrets of this request: of the bodies only those of its own. */
  const canaries = CANARIES.filter(
    (canary) => canary.part === part || !BODY_PARTS.some((one_) => one_ === canary.part),
  );

  const isIn = (parts: readonly Part[], canary: Canary) =>
    canary.part === part ? parts.includes("body") : parts.includes(canary.part);

  beforeAll(async () => {
    server = await openServer(part);
  });

  // The last one is used by the tests below.
  afterAll(() => (part === "body" ? undefined : server[Symbol.asyncDispose]()));

  /** Each place is read by a test of its own: one hook for all of them would take longer than a busy machine lets it. */
  const hold = (when: Place["when"]) =>
    test.each(places.filter((one_) => one_.when === when).map(({ name, ...rest }) => [name, rest] as const))(
      "%s",
      async (name, { read, whole, without, isForDecider }) => {
        const text = decodedIn(part, await read(server));
        expect(text.length).toBeGreaterThan(100);
        const isMail = name.startsWith("mail");
        const mayNot = ({ part: of, isShownToDecider }: Canary) =>
          !(isForDecider && isShownToDecider) || (isMail && of === "header");
        // Hundreds of secrets are looked for in each text: as bytes they are found four times as fast.
        const bytes = Buffer.from(text);
        const seen = canaries.filter((one_) => isIn(without, one_) && mayNot(one_) && bytes.includes(one_.core));
        const lost = canaries.filter((one_) => isIn(whole, one_) && !bytes.includes(writtenIn(one_, part)));
        expect([seen.map((canary) => canary.name), lost.map((canary) => canary.name)]).toEqual([[], []]);
      },
    );

  hold("held");

  test("are approved", () => server.decide());

  hold("over");

  test("hold one of each format: in the body, the headers and the answer all, in the URL those that fit", () => {
    const prefixes = (of: Part) => canaries.filter((one_) => one_.part === of && one_.name.includes(", ")).length;
    expect(prefixes(part)).toBeGreaterThanOrEqual(part === "base64" ? 50 : SECRET_FORMATS.length);
    expect(prefixes("answer")).toBeGreaterThanOrEqual(SECRET_FORMATS.length);
    expect(prefixes("url")).toBeGreaterThanOrEqual(70);
  });

  test("are all different, and reach the target as they were written", () => {
    expect(canaries.length).toBeGreaterThanOrEqual(30);
    // Issuers of one shape are told apart by their beginnings alone.
    const written = canaries.map((canary) => `${canary.part} ${canary.core}`);
    expect(new Set(canaries.map(({ core }) => core)).size).toBe(new Set(written).size);
    const [received] = server.target.received;
    const body = sentText(part, received?.body ?? "");
    const sent = `${received?.path} ${body} ${JSON.stringify([...(received?.headers ?? [])])}`;
    const request = canaries.filter((canary) => ["header", "url", "credential", part].includes(canary.part));
    expect(request.filter(({ secret }) => !sent.includes(secret)).map(({ name }) => name)).toEqual([]);
  });
});

/** A secret as the JSON of an answer has it: a text and a form hold it in a JSON string, `body` was written as JSON. */
function writtenIn({ secret, part: of }: Canary, part: BodyPart): string {
  return of === part && (part === "text" || part === "form") ? JSON.stringify(secret).slice(1, -1) : secret;
}

test("keys, sessions, passwords, links and signing secrets of the service itself are neither logged nor kept in clear", async () => {
  const { app, ann, links, receipt } = server;
  await app.call("POST", "/v1/signing-secret/rotate");
  const { text } = await app.call("GET", "/v1/signing-secret?origin=https://a.example");
  const signing: { secret: string; previous: { secret: string } } = JSON.parse(text);
  const bytesIn = (secret: string) => Buffer.from(secret.slice(6), "base64").toString("latin1");
  const secrets = {
    ...KEYS,
    session: ann.cookie.split("=")[1] ?? "",
    password: ANN_PASSWORD,
    approval: links.approve.slice(3),
    rejection: links.reject.slice(3),
    receipt: receipt.slice(3),
    signing: signing.secret,
    "signing, as bytes": bytesIn(signing.secret),
    "signing before": signing.previous.secret,
    "mail provider's key": MAILGUN_KEY,
    "master key": readFileSync(join(app.engine.folder, "outgate.db.key"), "latin1").trim(),
  };
  const log = JSON.stringify([app.lines, app.engine.lines]);
  const database = bytesOf(app.engine.folder);
  for (const [name, secret] of Object.entries(secrets)) {
    expect(secret.length).toBeGreaterThan(15);
    expect(log.includes(secret), name).toBe(false);
    // The path of the receipt stands in the body of a callback, which waits there until it is delivered.
    if (name !== "receipt") expect(database.includes(secret), name).toBe(false);
  }
});
