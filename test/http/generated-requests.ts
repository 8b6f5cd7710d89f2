import * as fc from "fast-check";
import { fitting, nearlyFitting, printable } from "../support/arbitrary.ts";
import { at, type Node, type Operation, OPERATIONS } from "../support/openapi.ts";
import { type Draft, JSON_TYPE, known, OWNER, searchOf, someKey } from "./draft.ts";
import { hostile } from "./hostile-requests.ts";
import { SOMEBODY } from "./real-server.ts";
import { OWN_ORIGIN } from "./stub-server.ts";

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
  const headers = key ? fc.record({ "idempotency-key": printable(1, 20) }, { requiredKeys: [] }) : fc.constant({});
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

/** Nobody logs in with what was made up. */
function maybeKnown({ id }: Operation, fits: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  // What was made up is no host and no time ahead.
  if (id === "createKey") {
    return fc.oneof(fits, fc.constant(PLAIN_KEY)).map((body) => ({ ...at(body), ...KEY_LIMITS, credentials: [] }));
  }
  // A job that changes nothing: changes are counted by their own operations.
  if (id === "startBulk") return fits.map((body) => ({ ...at(body), filter: { title: "no action has this title" } }));
  // What was made up is no expression, path or zone, and a rule that holds or refuses would decide on the other requests.
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
