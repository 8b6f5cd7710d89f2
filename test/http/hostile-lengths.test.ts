import { expect, test } from "bun:test";
import { slowness } from "../support/core.ts";
import { IS_LONG } from "../support/long.ts";
import { ProbedService } from "../support/probed.ts";
import { Target } from "../support/target.ts";
import { shared } from "../support/shared.ts";
import { words } from "../support/words.ts";

/** Nothing that anybody sends may hold the event loop longer, in milliseconds of an ordinary core. */
const GAP_MS_MAX = 50;
/** Twice the length may take at most so many times as long. */
const GROWTH_MAX = 3;
/** What takes no longer tells nothing of its growth. */
const FLOOR_MS = 10;
/** The shortest of several, since the collector and other work on the machine make one longer but not each. */
const TRIES_MIN = 2;
const TRIES_MAX = 10;
/** What is slow may be so in many places, and each is tried often. */
const FAULTS_MAX = 2;
/** On a machine that has much other work. */
const TEST_MS_MAX = 180_000;
/** Requests that are under way together. */
const AT_ONCE = 8;

/** The engine refuses longer heads. */
const HEAD_CHARS = 14_000;
const BODY_CHARS = 1_040_000;
/** What takes more than linear time shows at a part of it. */
const FIELD_CHARS = 300_000;
/** More is refused. */
const FORM_CHARS = 60_000;
/** The beginning of an answer that is read. */
const ANSWER_CHARS = 262_144;

/** What patterns and loops go back over, between a beginning and an end that fit nothing. */
const UNITS = [...Array.from(' a"=;,%\\/-.'), "a=", "a;", "q=1,", ' ;charset="', "%41"];

/** What the target answers, by the first part of the path. */
const answers: ((chars: number) => Response)[] = [];
const JSON_TYPE = { "content-type": "application/json" };

const target = await shared(
  new Target(({ path }) => {
    const [, number, chars] = path.split("/");
    return answers[Number(number)]?.(Number(chars)) ?? new Response();
  }),
);
const service = await shared(new ProbedService());
const base = await service.ready();
const { key, cookie } = await service.signedUp();
const settings = await (await fetch(`${base}/settings`, { headers: { cookie } })).text();
const formToken = /name="form_token" value="(\w{64})"/.exec(settings)?.[1] ?? "";
const owner = `Bearer ${key}`;
const made = await post("/v1/actions", JSON.stringify({ url: target.url, approve: true }));
const receipt = ((await made.json()) as { receipt_url: string }).receipt_url;
const FORM_TYPE = { "content-type": "application/x-www-form-urlencoded" };

function post(path: string, body: string, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const init = { method: "POST", redirect: "manual", body } as const;
  return fetch(base + path, { ...init, headers: { authorization: owner, ...JSON_TYPE, ...headers } });
}

/** Something to be sent in any length. */
interface Hostile {
  readonly name: string;
  readonly chars: number;
  readonly send: (chars: number) => Promise<Response>;
}

const long = (unit: string, chars: number) => unit.repeat(Math.max(1, Math.floor(chars / unit.length)));

async function sendAll(cases: readonly Hostile[], share: number): Promise<void> {
  await Promise.all(
    cases.map(async ({ name, chars, send }) => {
      const response = await send(chars * share);
      await response.arrayBuffer();
      if (response.status >= 500) throw new Error(`${name}: answered with ${response.status}`);
    }),
  );
}

async function faultsOf(cases: readonly Hostile[]): Promise<readonly string[]> {
  const faults: string[] = [];
  for (let at = 0; at < cases.length; at += AT_ONCE) {
    const some = cases.slice(at, at + AT_ONCE);
    // Most are done with in one request, beside others.
    if (await isShort(some)) continue;
    for (const hostile of some) {
      if (faults.length >= FAULTS_MAX) return faults;
      if (!(await isShort([hostile]))) faults.push(...(await faultsOfOne(hostile)));
    }
  }
  return faults;
}

async function isShort(some: readonly Hostile[]): Promise<boolean> {
  return (await service.gapOf(() => sendAll(some, 1))) <= FLOOR_MS;
}

async function faultsOfOne(hostile: Hostile): Promise<readonly string[]> {
  let [wholeMs, halfMs] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  const growth = () => wholeMs / Math.max(halfMs, FLOOR_MS);
  const isLong = () => wholeMs > GAP_MS_MAX && wholeMs / slowness() > GAP_MS_MAX;
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    wholeMs = Math.min(wholeMs, await service.gapOf(() => sendAll([hostile], 1)));
    halfMs = Math.min(halfMs, await service.gapOf(() => sendAll([hostile], 0.5)));
    if (tries >= TRIES_MIN && growth() <= GROWTH_MAX && !isLong()) return [];
  }
  return [
    ...(isLong() ? [`${hostile.name}: the event loop stands still for ${wholeMs.toFixed()} ms`] : []),
    ...(growth() > GROWTH_MAX ? [`${hostile.name}: twice the length takes ${growth().toFixed(1)} times as long`] : []),
  ];
}

/** Every header that is read, where it is read, and how its value begins. */
const HEADERS: readonly (readonly [name: string, method: "GET" | "HEAD" | "POST", path: string, start: string])[] = [
  ["content-type", "POST", "/v1/actions", "application/json; charset="],
  ["content-type", "POST", "/auth/login", "application/x-www-form-urlencoded"],
  ["content-type", "POST", "/mcp", "application/json"],
  ["content-encoding", "POST", "/v1/actions", "identity"],
  ["accept", "GET", "/r/{receipt}", "application/json;q=0."],
  ["accept", "POST", "/mcp", "application/json, text/event-stream"],
  ["accept-encoding", "GET", "/docs/errors", "gzip;q=0."],
  ["cookie", "GET", "/approvals", "outgate_session="],
  ["authorization", "GET", "/v1/account", "Bearer "],
  ["idempotency-key", "POST", "/v1/actions", '"'],
  ["x-request-id", "GET", "/health", "req_"],
  ["last-event-id", "HEAD", "/v1/events", "N"],
  ["origin", "POST", "/auth/login", "http://a"],
  ["referer", "POST", "/auth/login", "http://a"],
  ["host", "POST", "/mcp", "a."],
  ["host", "GET", "/login", "a."],
  ["forwarded", "POST", "/auth/login", "for=1.2.3.4"],
  ["x-forwarded-for", "POST", "/auth/login", "1.2.3.4, "],
  ["if-none-match", "GET", "/docs", 'W/"'],
  ["if-modified-since", "GET", "/docs", "Sun, 06 Nov"],
  ["range", "GET", "/docs", "bytes=0-"],
  ["sec-fetch-site", "POST", "/auth/login", "same-origin"],
  ["sec-purpose", "GET", "/approvals", "prefetch"],
  ["mcp-session-id", "POST", "/mcp", "a"],
  ["mcp-protocol-version", "POST", "/mcp", "2026-07-28"],
  ["mcp-method", "POST", "/mcp", "tools/call"],
  ["mcp-name", "POST", "/mcp", "get"],
  ["user-agent", "GET", "/health", "a/1 ("],
  ["user-agent", "POST", "/auth/login", "a/1 ("],
];

function headerCases(): readonly Hostile[] {
  return HEADERS.flatMap(([name, method, path, start]) =>
    UNITS.map((unit) => ({
      name: `${name}: ${start} and ${JSON.stringify(unit)} again and again, to ${path}`,
      chars: HEAD_CHARS,
      send: (chars: number) => {
        const headers = { ...JSON_TYPE, authorization: owner, cookie, [name]: `${start}${long(unit, chars)}"x!` };
        const at = base + path.replace("/r/{receipt}", receipt);
        return fetch(at, { method, headers, redirect: "manual", ...(method === "POST" ? { body: "{}" } : {}) });
      },
    })),
  );
}

/** Every field of a body, as the JSON text before and behind its value. */
const FIELDS: readonly (readonly [path: string, start: string, end: string])[] = [
  ["/v1/actions", '{"url":"http', '"}'],
  ["/v1/actions", '{"url":"https://a.example/', '"}'],
  ["/v1/actions", '{"url":"https://', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","callback":"https://a.example/', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","method":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","dedupe":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","headers":{"X-', '":"1"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","headers":{"Content-Type":"application/json', '"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","notify":{"email":"a@', '"},"approve":true}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","on_unknown":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","', '":1}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"body":{"x":"', '"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"reason":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"title":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"metadata":{"', '":"x"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"metadata":{"x":"', '"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"json":["', '"]}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"form":{"', '":"x"}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"form":{"x":["', '"]}}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"text":"<', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","approve":true,"base64":"', '"}'],
  ["/v1/actions", '{"url":"http://127.0.0.1:9/","text":"x","headers":{"Content-Type":"text/plain', '"}}'],
  ["/v1/actions/act_1/cancel", '{"reason":"', '"}'],
  ["/v1/actions/act_1/cancel", '{"run":"', '"}'],
  ["/v1/actions/act_1/retry", '{"reason":"', '"}'],
  ["/v1/keys", '{"role":"agent","name":"', '"}'],
  ["/v1/keys", '{"name":"a","role":"', '"}'],
  ["/v1/keys", '{"name":"a","role":"agent","scope":"', '"}'],
  ["/v1/keys", '{"name":"a","role":"agent","replaces":"key_', '"}'],
  ["/v1/keys", '{"name":"a","role":"agent","hosts":["*.', '"]}'],
  ["/v1/keys", '{"name":"a","role":"agent","expires_at":"2030-01-01T', '"}'],
  ["/v1/invitations", '{"role":"reader","email":"a@', '"}'],
  ["/auth/login", '{"password":"correct horse","email":"a@', '"}'],
  ["/auth/login", '{"email":"ann@example.com","password":"', '"}'],
  ["/mcp", '{"jsonrpc":"2.0","id":1,"method":"', '"}'],
  ["/mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"', '"}}'],
  ["/mcp", '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{"id":"act_', '"}}}'],
  ["/mcp", '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"outgate://actions/', '"}}'],
];
const FIELD_UNITS = ["a", ".", "@", "%41"] as const;

function fieldCases(): readonly Hostile[] {
  return FIELDS.flatMap(([path, start, end]) =>
    FIELD_UNITS.map((unit) => ({
      name: `${start}${JSON.stringify(unit)} again and again, to ${path}`,
      chars: FIELD_CHARS,
      send: (chars: number) =>
        post(path, start + long(unit, chars) + end, { accept: "application/json, text/event-stream" }),
    })),
  );
}

/** Whole bodies of JSON, right and wrong. */
const JSON_UNITS = [...words(`[ { {"a": [], 1, 1 9.0, "", "a":1, - 1e tru`), '"\\\\",', '"\\u0041",', " ", "\n"];

function bodyCases(): readonly Hostile[] {
  const accept = "application/json, text/event-stream";
  const start = '{"url":"http://127.0.0.1:9/","approve":true,"body":{"x":[';
  const bodies = JSON_UNITS.flatMap((unit) => [
    { path: "/v1/actions", unit, start, end: "0]}}" },
    { path: "/v1/actions", unit, start: "", end: "" },
    { path: "/mcp", unit, start: '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[', end: "0]}}" },
  ]);
  return bodies.map((body) => ({
    name: `a body of ${body.start} and ${JSON.stringify(body.unit)} again and again, to ${body.path}`,
    chars: BODY_CHARS,
    send: (chars: number) => post(body.path, body.start + long(body.unit, chars) + body.end, { accept }),
  }));
}

/** Of a form that is asked for the password, and echoes what was sent. */
const CONFIRMED = ["reason", "session_secret", "confirm_password", "x"] as const;

function formCases(): readonly Hostile[] {
  const echoed = ["<", "&", '"', "%0A", "a"].flatMap((unit) =>
    CONFIRMED.map((name) => ({
      name: `a form with a field ${name} of ${JSON.stringify(unit)} again and again`,
      chars: FORM_CHARS,
      send: (chars: number) => {
        const body = `form_token=${formToken}&${name}=${unit.startsWith("%") ? long(unit, chars) : encodeURIComponent(long(unit, chars / 3))}`;
        return post("/settings/callback-hosts", body, { ...FORM_TYPE, cookie, origin: base });
      },
    })),
  );
  return [...echoed, ...tokenlessCases()];
}

function tokenlessCases(): readonly Hostile[] {
  return ["/auth/login", "/auth/signup", "/actions", "/keys", "/approvals/act_1", "/settings/signing-secret"].flatMap(
    (path) =>
      ["a=b&", "&", "=", "%41", "%", "+", "email=a&", "a"].map((unit) => ({
        name: `a form of ${JSON.stringify(unit)} again and again, to ${path}`,
        chars: FIELD_CHARS,
        send: (chars: number) => post(path, long(unit, chars), { ...FORM_TYPE, cookie, origin: base }),
      })),
  );
}

/** Every query parameter, and what stands in a path. */
const PATHS = [
  ..."q id status method host path dedupe created_by created_after created_before response_code outcome error title reason metadata limit cursor wait x"
    .split(" ")
    .map((name) => `/v1/actions?${name}=`),
  "/v1/actions/act_1?wait=",
  "/v1/signing-secret?origin=https://",
  "/v1/actions/export?format=",
  "/v1/bulk?cursor=",
  "/v1/notifications?cursor=",
  "/bulk?cursor=",
  "/v1/actions?",
  ..."q status host path dedupe created_by created_after response_code metadata cursor"
    .split(" ")
    .map((name) => `/actions?${name}=`),
  "/approvals?after=act_",
  "/approvals?decided=",
  "/settings/notifications?before=",
  "/login?next=/",
  "/v1/actions/act_",
  "/v1/keys/key_",
  "/v1/accounts/acc_",
  "/r/",
  "/a/",
  "/welcome/",
  "/actions/act_",
  "/keys/",
  "/docs/",
  "/assets/",
  "/",
] as const;

function pathCases(): readonly Hostile[] {
  const all = ["a", "%41", "%", "/", "=&", "-", "+"];
  // Two of them for each, in turn: the pages that answer take longer than what is tried here.
  const units = (at: number) =>
    IS_LONG ? all : all.filter((_, n) => n === at % all.length || n === (at + 3) % all.length);
  return PATHS.flatMap((path, at) =>
    units(at).map((unit) => ({
      name: `${path} and ${JSON.stringify(unit)} again and again`,
      chars: HEAD_CHARS,
      send: (chars: number) => {
        const headers = { authorization: owner, cookie };
        return fetch(base + path + long(unit, chars), { headers, redirect: "manual" });
      },
    })),
  );
}

/** An answer of a target to one attempt, and the create that waits for it. */
function answerCase(name: string, chars: number, answerOf: (chars: number) => Response): Hostile {
  const number = answers.push(answerOf) - 1;
  return {
    name,
    chars,
    send: (length) =>
      post("/v1/actions", JSON.stringify({ url: `${target.url}${number}/${length}`, retries: 1, sync: true })),
  };
}

function answerCases(): readonly Hostile[] {
  const names = ["retry-after", "location", "content-type", "set-cookie", "content-encoding", "etag", "x-any"];
  const headers = names.flatMap((name) =>
    [" ", ";", ",", "=", '"', "1", "/"].map((unit) =>
      answerCase(`the target's ${name} of ${JSON.stringify(unit)} again and again`, HEAD_CHARS / 2, (chars) => {
        return new Response("{}", { status: 302, headers: { [name]: `a;${long(unit, chars)}"x!` } });
      }),
    ),
  );
  const bodies = [...JSON_UNITS, "\u00ff", "\u202e", "\\", "a"].flatMap((unit) =>
    ["application/json", "application/octet-stream"].map((type) =>
      answerCase(`a target's ${type} of ${JSON.stringify(unit)} again and again`, ANSWER_CHARS, (chars) => {
        return new Response(long(unit, chars), { status: 500, headers: { "content-type": type } });
      }),
    ),
  );
  return [...headers, ...bodies];
}

test.each([
  ["every header", headerCases],
  ["every field", fieldCases],
  ["every body of JSON", bodyCases],
  ["every form", formCases],
  ["every parameter and path", pathCases],
  ["whatever a target answers", answerCases],
])(
  "twice the length takes at most three times as long, and the longest under 50 ms %s",
  async (_what, cases) => {
    expect(await faultsOf(cases())).toEqual([]);
  },
  TEST_MS_MAX,
);
