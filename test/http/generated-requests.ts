import * as fc from "fast-check";
import { fitting, nearlyFitting, oddText, printable } from "../support/arbitrary.ts";
import { at, type Node, type Operation, OPERATIONS } from "../support/openapi.ts";
import { SOMEBODY, STRANGER } from "./real-server.ts";
import { KEYS, OWN_ORIGIN } from "./stub-server.ts";
import { words } from "../support/words.ts";

/** A request before it is made. `{action 3}` and `{key 3}` in its path stand for what was created before. */
export interface Draft {
  readonly kind: "valid" | "nearly valid" | "hostile";
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array<ArrayBuffer> | null;
  /** The field that has to be named in a 400. */
  readonly wrong: string | null;
}

export const OWNER = `Bearer ${KEYS.owner}`;

export const JSON_TYPE = { "content-type": "application/json" } as const;

const someKey = fc.constantFrom(
  ...[OWNER, OWNER, OWNER, OWNER].concat(
    [KEYS.agent, KEYS.approver, KEYS.reader, STRANGER].map((key) => `Bearer ${key}`),
  ),
);

const known = (what: string) => fc.nat({ max: 9_999 }).map((index) => `{${what} ${index}}`);

function searchOf(pairs: readonly (readonly [string, unknown])[]): string {
  const search = new URLSearchParams();
  for (const [name, value] of pairs) for (const one of [value].flat()) search.append(name, wellFormed(String(one)));
  return search.size === 0 ? "" : `?${search.toString()}`;
}

const wellFormed = (text: string) => text.toWellFormed();

const headerNoise = fc.dictionary(
  fc.constantFrom(
    ..."x-request-id authorization idempotency-key content-type content-encoding accept cookie origin range".split(" "),
    ..."x-http-method-override x-forwarded-for forwarded if-none-match expect last-event-id".split(" "),
  ),
  fc.oneof(
    printable(0, 300).map((text) => text.trim()),
    fc.constantFrom(
      "gzip",
      "text/plain",
      "application/json; charset=utf-16",
      "APPLICATION/JSON",
      OWNER,
      "bearer x",
      "\u00ff\u0080",
      '"k"',
    ),
  ),
  { maxKeys: 4 },
);

const oddId = fc.oneof(
  known("action"),
  known("key"),
  fc.stringMatching(/^(act|key)_[A-Za-z0-9_-]{1,70}$/),
  oddText.map((text) => encodeURIComponent(wellFormed(text))),
  fc.constantFrom(...words(".. %2e%2e act_a%2Fb act_a%00 %zz %ED%A0%80 act_%F0%9F%98%80 ;a=b act_x%0a '--")),
);
const oddQuery = fc.oneof(
  fc.constant(""),
  fc.string({ unit: "grapheme-ascii", maxLength: 60 }).map((text) => `?${text}`),
  fc
    .dictionary(fc.constantFrom("wait", "limit", "status", "cursor", "origin", "dedupe", "created_after", "x"), oddText)
    .map((pairs) => searchOf(Object.entries(pairs))),
  fc.constantFrom(
    ...words(`
      ? ?&&& ?status=failed&status=failed ?wait=1&wait=1 ?__proto__=1 ?cursor=%ED%A0%80 ?host=%00
      ?created_after=2026-02-30T00:00:00Z
    `),
  ),
);

const oddJson = fc.oneof(
  { weight: 6, arbitrary: fc.jsonValue({ maxDepth: 5 }).map((value) => JSON.stringify(value)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }) },
  {
    weight: 2,
    arbitrary: fc
      .integer({ min: 1, max: 3_000 })
      .map((depth) => `{"url":"http://127.0.0.1:9/","body":{"a":${"[".repeat(depth)}${"]".repeat(depth)}}}`),
  },
  {
    weight: 2,
    arbitrary: oddText.map((text) =>
      JSON.stringify({
        url: text,
        dedupe: text,
        headers: { [text]: text },
        body: { [text]: text },
        reason: text,
        name: text,
      }),
    ),
  },
  { weight: 2, arbitrary: oddText.map((text) => JSON.stringify({ reason: text })) },
  { weight: 1, arbitrary: fc.constantFrom(...Object.values(hugeBodies())) },
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      '{"url":',
      "",
      " ",
      "null",
      "[]",
      '{"url":"http://127.0.0.1:9/","retries":1e999}',
      '{"__proto__":{"url":1}}',
      '{"url":"http://127.0.0.1:9/","body":{"\\ud800":"\\udfff","n":-0.0e-5}}',
      '\ufeff{"url":"http://127.0.0.1:9/"}',
      '{"url":"http://127.0.0.1:9/","url":5}',
    ),
  },
);

/** What is long, deep or wide; few of them, since each costs what a thousand others do. */
export function hugeBodies(): Readonly<Record<string, string>> {
  const url = "http://127.0.0.1:9/";
  return {
    "100,000 levels": "[".repeat(100_000),
    "62 levels": `{"url":"${url}","body":${`{"a":`.repeat(62)}{}${"}".repeat(62)}}`,
    "a text of a megabyte": `{"url":"${url}","body":{"a":"${"y".repeat(1_000_000)}"}}`,
    "40,000 long numbers": `{"url":"${url}","body":{"n":[${"12345678901234567890,".repeat(40_000)}1]}}`,
    "340,000 empty lists": `{"url":"${url}","body":{"n":[${"[],".repeat(340_000)}1.0]}}`,
    "260,000 spaced objects": `{"url":"${url}","body":{"n":[${"{ },".repeat(260_000)}1.0]}}`,
    "500,000 numbers": `{"url":"${url}","body":{"n":[${"1,".repeat(500_000)}1]}}`,
    "9,900 members": `{"url":"${url}","body":{${Array.from({ length: 9_900 }, (_, index) => `"k${index}":1`).join()}}}`,
    "9,900 unknown members": `{"url":"${url}",${Array.from({ length: 9_900 }, (_, index) => `"k${index}":1`).join()}}`,
    "9,900 bad headers": `{"url":"${url}","headers":{${Array.from({ length: 9_900 }, (_, index) => `"k${index}":"\\n"`).join()}}}`,
    "an address of 800 kB": `{"url":"${url}","notify":{"email":"${"a.".repeat(400_000)}@b"}}`,
    "a URL of 800 kB": `{"url":"${url}${"é".repeat(400_000)}"}`,
    "100,000 NULs": `{"reason":"${"\\u0000".repeat(100_000)}"}`,
    "a name of a megabyte": `{"name":"${"x".repeat(1_048_000)}","role":"owner"}`,
    "a text in place of an object": `"${"z".repeat(1_048_575)}"`,
    "white space over the bound": " ".repeat(1_048_577),
  };
}

/** What nobody means well by: odd methods, paths, ids, queries, headers and bodies of an operation. */
function hostile(operation: Operation): fc.Arbitrary<Draft> {
  const methods = fc.constantFrom(
    ...Array.from({ length: 6 }, () => operation.method),
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "HEAD",
    "OPTIONS",
  );
  const path = fc.oneof(
    { weight: 6, arbitrary: oddId.map((id) => operation.path.replace("{id}", id)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        ...words(`
          / // /v1 /v1/ /v1/nothing /V1/actions /v1//actions /%76%31/actions /v1/actions/x/y/z /v1/actions/
          /r/x /health/
        `),
      ),
    },
    { weight: 1, arbitrary: fc.webPath() },
  );
  const head = fc.tuple(fc.option(someKey, { freq: 12 }), fc.nat({ max: 4 }), headerNoise);
  return fc
    .record({ method: methods, path, query: oddQuery, head, body: fc.option(oddJson, { freq: 3 }) })
    .map((it) => {
      const [key, typed, noise] = it.head;
      const hasBody = it.body !== null && it.method !== "GET" && it.method !== "HEAD";
      return {
        kind: "hostile",
        method: it.method,
        path: it.path + it.query,
        headers: { ...(key === null ? {} : { authorization: key }), ...(typed > 0 ? JSON_TYPE : {}), ...noise },
        body: hasBody ? it.body : null,
        wrong: null,
      };
    });
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly schema: Node;
}

function parametersOf({ node }: Operation, where: string): readonly Parameter[] {
  const { parameters } = node;
  // Safe: what `openapi.test.ts` has found sound.
  return (Array.isArray(parameters) ? (parameters as Parameter[]) : []).filter((one) => one.in === where);
}

function bodySchemaOf({ node }: Operation): Node | null {
  const schema = at(node, "requestBody", "content", "application/json", "schema");
  return Object.keys(schema).length === 0 ? null : schema;
}

function idOf({ path }: Operation): fc.Arbitrary<string> {
  if (path.includes("{host}")) return LISTED_HOST.map((host) => path.replace("{host}", host));
  if (path.includes("{token}")) return known("receipt").map((token) => path.replace("{token}", token));
  const kinds = {
    "/v1/keys": "key",
    "/v1/pauses": "pause",
    "/v1/rules": "rule",
    "/v1/grants": "grant",
    "/v1/credentials": "credential",
    "/v1/oauth-clients": "oauth client",
    "/v1/credential-requests": "request",
    "/v1/channels": "channel",
    "/v1/accounts": "account",
    "/v1/people": "person",
    "/v1/invitations": "invitation",
    "/v1/bulk": "bulk",
  } as const;
  const kind = Object.entries(kinds).find(([start]) => path.startsWith(start))?.[1] ?? "action";
  return known(kind).map((token) => path.replace("{id}", token).replace("{name}", token));
}

/** `isWhole`: with optional parameters, or with the required ones alone. */
function queryOf(operation: Operation, isWhole = true): fc.Arbitrary<string> {
  const parameters = parametersOf(operation, "query").filter(({ required }) => isWhole || required);
  const members = parameters.map(({ name, required, schema }) => {
    const value = NAMED[name === "host" ? `${operation.id} host` : name] ?? fitting(schema);
    return required
      ? value.map((one) => [name, one] as const)
      : fc.option(
          value.map((one) => [name, one] as const),
          { freq: 2 },
        );
  });
  return fc.tuple(...members).map((given) => searchOf(given.filter((one) => one !== null)));
}

/** What the fields of a create must not say together. */
function reconciled(value: unknown): unknown {
  const { approve, run_at: runAt, delay_seconds: delay, expires_at: expiresAt, backoff, ...all } = at(value);
  // A made-up name is that of no credential.
  const { credential: _name, ...others } = all;
  const bodies = Object.entries(others).filter(([name]) => BODIES.has(name));
  const rest = Object.fromEntries(Object.entries(others).filter(([name]) => !BODIES.has(name)));
  const isSync = rest["sync"] === true;
  return {
    ...rest,
    // Times by the clock of the server, whose year is 2026: far enough ahead to be sent now.
    ...(runAt === undefined || isSync ? {} : { run_at: "2026-12-30T00:00:00Z" }),
    ...(delay === undefined || isSync || runAt !== undefined ? {} : { delay_seconds: 20_000_000 }),
    ...(expiresAt === undefined ? {} : { expires_at: "2026-12-31T00:00:00+02:00" }),
    ...(backoff === undefined ? {} : { backoff: { base_ms: 100, cap_ms: 100 } }),
    ...(approve === undefined || isSync ? {} : { approve }),
    ...Object.fromEntries(rest["method"] === "GET" ? [] : bodies.slice(0, 1)),
  };
}

/** A call has one of them. */
const BODIES = new Set(["body", "json", "form", "text", "base64"]);

/** Without the target of a channel in a change: whether it fits depends on the kind that the channel has. */
function kept({ id }: Operation): (value: unknown) => unknown {
  if (id !== "changeChannel") return (value) => value;
  return (value) => Object.fromEntries(Object.entries(at(value)).filter(([name]) => name !== "to" && name !== "url"));
}

function valid(operation: Operation): fc.Arbitrary<Draft> {
  const schema = bodySchemaOf(operation);
  const fits = schema === null ? fc.constant(null) : fitting(schema);
  const body =
    operation.id === "createAction" ? fits.map(reconciled) : maybeKnown(operation, fits.map(kept(operation)));
  const key = parametersOf(operation, "header").some(({ name }) => name === "Idempotency-Key");
  const headers = key
    ? fc.record({ "idempotency-key": printable(1, 20).filter((text) => !text.includes(", ")) }, { requiredKeys: [] })
    : fc.constant({});
  return fc
    .record({ path: idOf(operation), query: queryOf(operation), body, headers, authorization: someKey })
    .map((it) => ({
      kind: "valid",
      method: operation.method,
      path: it.path + it.query,
      headers: {
        ...trimmed(it.headers),
        ...fromOurPage(operation),
        authorization: it.authorization,
        ...(it.body === null ? {} : JSON_TYPE),
      },
      body: it.body === null ? null : JSON.stringify(it.body),
      wrong: null,
    }));
}

/** Few, so that what is removed was listed before. */
const LISTED_HOST = fc.constantFrom("hooks.example", "hooks.example:81");

/** Parameters that a schema alone does not make. */
const NAMED: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  origin: fc.constantFrom("https://a.example", "http://b.example:81"),
  "removeCallbackHost host": LISTED_HOST,
};

/** A body that names what exists, for the operations that would refuse whatever a schema alone makes up. */
function maybeKnown({ id }: Operation, fits: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  // What was made up is no host and no time ahead.
  if (id === "createKey") {
    return fc.oneof(fits, fc.constant(PLAIN_KEY)).map((body) => ({ ...at(body), ...KEY_LIMITS, credentials: [] }));
  }
  // A job that changes nothing: changes are counted by their own operations.
  if (id === "startBulk") return fits.map((body) => ({ ...at(body), filter: { title: "no action has this title" } }));
  // What was made up is neither a host nor a header.
  if (id === "askCredential") {
    const hosts = fc.constantFrom("a.example", "b.example", "c.example", "d.example");
    return fc.tuple(fits, hosts).map(([body, host]) => ({ host, reason: at(body)["reason"] }));
  }
  if (id === "createCredential" || id === "grantCredentialRequest")
    return fits.map((body) => ({ ...KNOWN_CREDENTIAL, name: at(body)["name"] }));
  if (id === "changeCredential") {
    return fc.constantFrom({ enabled: false }, { paths: ["/v1"] }, { unset: ["paths"] }, { secret: "another-secret" });
  }
  if (id === "createOAuthClient") {
    return fits.map((body) => ({ ...at(body), redirect_uris: ["https://client.example/callback"] }));
  }
  if (id === "testCredential") return fc.oneof(fits, fc.constant({ url: "https://api.example.com/v1" }));
  if (id === "putHost") {
    return fits.map((body) =>
      Object.fromEntries(Object.entries(at(body)).filter(([name]) => name !== "default_credential")),
    );
  }
  // What was made up is no expression, path or zone, and a rule that holds or refuses would decide on the other requests.
  if (id === "createRule") return fits.map(aboutNobody);
  if (id === "changeRule") return fits.map((body) => ({ ...aboutNobody(body), unset: ["message"] }));
  if (id === "replaceRules") {
    const some = fits.map((body) => ({ rules: [at(body)["rules"]].flat().map(aboutNobody) }));
    return fc.oneof(some, fc.constant({ rules: [] }));
  }
  if (id === "dryRunRules") {
    return fits.map((body) => ({ ...at(body), rules: [at(body)["rules"] ?? []].flat().map(aboutNobody) }));
  }
  // Right where there are none: which there are depends on the requests before.
  if (id === "reorderRules") return fc.constant({ ids: [] });
  if (id === "addCallbackHost") return fc.oneof(fits, fc.record({ host: LISTED_HOST }));
  if (id === "sendTestMail") return fc.oneof(fits, fc.constant({ to: KNOWN_PERSON }));
  if (id === "testCallback") return fc.oneof(fits, fc.constant({ url: `https://${KNOWN_RECEIVER}/` }));
  // A made-up run is hardly ever the action's.
  if (id === "approveAction" || id === "cancelAction") return fc.oneof(fits, fc.constantFrom({}, { run: 1 }));
  return id === "logIn" ? fc.oneof(fits, fc.constant(SOMEBODY)) : fits;
}

/** A rule that no key's request meets. */
function aboutNobody(rule: unknown): Readonly<Record<string, unknown>> {
  const given = Object.entries(at(rule)).map(([name, value]) => [name, KNOWN_CONDITIONS[name] ?? value] as const);
  return { ...Object.fromEntries(given), keys: ["key_nobody"] };
}

const KNOWN_CONDITIONS: Readonly<Record<string, unknown>> = {
  when: "action.body.amount > 5000",
  methods: ["POST", "DELETE"],
  hosts: ["api.example.com", "*.example.org"],
  path: "/v1/users/*/keys",
  between: { from: "18:00", to: "08:00", timezone: "Europe/Berlin" },
};

const KNOWN_CREDENTIAL = { kind: "bearer", secret: "made-up-secret", hosts: ["api.example.com"] } as const;

/** A person of the account, and a host for callbacks, that no request removes. */
export const KNOWN_PERSON = "known@example.com";

export const KNOWN_RECEIVER = "receiver.example";

const PLAIN_KEY = { name: "plain", role: "agent" } as const;

const KEY_LIMITS = { hosts: ["a.example", "*.b.example:81"], expires_at: "2027-01-01T00:00:00Z" } as const;

/** Where people come in, a request says that our own page sent it. */
function fromOurPage({ path }: Operation): Readonly<Record<string, string>> {
  return path.startsWith("/auth/") ? { origin: OWN_ORIGIN } : {};
}

/** Header values lose the blanks around them on every wire. */
function trimmed(headers: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, (value ?? "").trim() || "x"]));
}

/** What mail programs and chats put behind a link leads to the receipt all the same. */
const isForPrograms = ({ path }: Operation) => !path.startsWith("/r/");

function nearlyValid(operation: Operation): readonly fc.Arbitrary<Draft>[] {
  const base = { kind: "nearly valid", method: operation.method } as const;
  const schema = bodySchemaOf(operation);
  const headers = { ...fromOurPage(operation), authorization: OWNER };
  const bodies =
    schema === null
      ? []
      : [
          fc
            .tuple(idOf(operation), queryOf(operation, false), nearlyFitting(schema))
            .map(([path, query, { value, field }]) => ({
              ...base,
              path: path + query,
              headers: { ...headers, ...JSON_TYPE },
              body: JSON.stringify(value),
              wrong: field,
            })),
        ];
  const wrong = [
    ["surprise", "1"] as const,
    ...parametersOf(operation, "query").flatMap(({ name, schema: { type } }) =>
      type === "integer" ? ["0", "121", "abc", "1.5", "+5", "", "1e1", "٥"].map((text) => [name, text] as const) : [],
    ),
  ];
  const query = fc.tuple(idOf(operation), fc.constantFrom(...wrong)).map(([path, [name, text]]) => ({
    ...base,
    path: path + searchOf([[name, text]]),
    headers,
    body: null,
    wrong: name,
  }));
  return /^\/(v1|auth)\//.test(operation.path) ? [...bodies, query] : [];
}

/** Requests of every kind over every operation of the API description. */
export const drafts: fc.Arbitrary<Draft> = fc.oneof(
  { weight: 3, arbitrary: fc.oneof(...OPERATIONS.map(valid)) },
  { weight: 2, arbitrary: valid(operationOf("createAction")) },
  { weight: 3, arbitrary: fc.oneof(...OPERATIONS.filter(isForPrograms).flatMap(nearlyValid)) },
  { weight: 2, arbitrary: fc.oneof(...nearlyValid(operationOf("createAction"))) },
  { weight: 4, arbitrary: fc.oneof(...OPERATIONS.map(hostile)) },
  { weight: 2, arbitrary: hostile(operationOf("createAction")) },
);

/** Valid requests of these operations alone, each named by method and path. */
export function draftsOf(names: readonly string[]): fc.Arbitrary<Draft> {
  return fc.oneof(...OPERATIONS.filter(({ method, path }) => names.includes(`${method} ${path}`)).map(valid));
}

function operationOf(id: string): Operation {
  const found = OPERATIONS.find((operation) => operation.id === id);
  if (found === undefined) throw new Error(`There is no operation ${id}.`);
  return found;
}
