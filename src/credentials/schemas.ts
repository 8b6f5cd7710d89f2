import Type, { type Static } from "typebox";
import { CredentialKindName as kind, credentialNameSchema } from "../api/action-schemas.ts";
import { HEADER_NAME_PATTERN, headerIssues, isHeaderName, NO_HEADER_NAME } from "../api/call-headers.ts";
import * as t from "../api/schema-helpers.ts";
import {
  type CredentialKind,
  type CredentialSettings,
  HMAC_ALGORITHMS,
  HMAC_ENCODINGS,
  HMAC_TIMES,
} from "../core/credential.ts";
import type { Issue } from "../core/domain-error.ts";
import {
  CREDENTIAL_HOSTS_MAX,
  CREDENTIAL_KEYS_MAX,
  CREDENTIAL_PATHS_MAX,
  CREDENTIAL_SECRET_CHARS_MAX,
  CREDENTIAL_SECRET_CHARS_MIN,
  CREDENTIAL_TEMPLATE_CHARS_MAX,
  CREDENTIAL_TEST_BODY_CHARS_MAX,
  URL_CHARS_MAX,
} from "../core/limits.ts";
import { plainHeaderName } from "../core/method-overrides.ts";
import { headersOfCredential, secretProblem, SIGNED_PLACES, unknownPlaces, VALUE_PLACES } from "./kinds.ts";
import { HTTP_METHODS } from "../core/target.ts";

const template = (description: string, example: string) =>
  t.shortText(CREDENTIAL_TEMPLATE_CHARS_MAX, description, example);

export const headerName = (description: string, example: string) =>
  Type.Refine(
    Type.String({ ...t.describedOnly({ pattern: HEADER_NAME_PATTERN }), description, examples: [example] }),
    isHeaderName,
    () => NO_HEADER_NAME,
  );

const HmacMembers = t.requestObject(
  "HmacSettings",
  "For hmac: what is signed, and how.",
  {
    algorithm: Type.Optional(t.choice(HMAC_ALGORITHMS, "Default: sha256.", "sha256")),
    encoding: Type.Optional(t.choice(HMAC_ENCODINGS, "How the signature is written. Default: hex.", "hex")),
    signs: Type.Optional(
      template(
        `What is signed. Its places are ${SIGNED_PLACES.map((name) => `{${name}}`).join(" ")}. Default: {timestamp}.{body}`,
        "{timestamp}.{body}",
      ),
    ),
    value: Type.Optional(
      template("The value of the header, with {signature} and {timestamp}. Default: {signature}", "{signature}"),
    ),
    time: Type.Optional(t.choice(HMAC_TIMES, "How {timestamp} is written. Default: seconds.", "seconds")),
    time_header: Type.Optional(headerName("A header that has the time too.", "X-Timestamp")),
  },
  { examples: [{ signs: "{timestamp}.{method}.{path}.{body}", time_header: "X-Timestamp" }] },
);

const secret = Type.String({
  minLength: CREDENTIAL_SECRET_CHARS_MIN,
  maxLength: CREDENTIAL_SECRET_CHARS_MAX,
  description: "The token, key or password. It is stored encrypted, and no one can read it back.",
  examples: ["sk_live_51H…"],
});

/** The members of a credential that can be changed and are shown. */
export const members = {
  hosts: t.shortList(
    t.shortText(URL_CHARS_MAX, "A host.", "api.stripe.com"),
    CREDENTIAL_HOSTS_MAX,
    "Where it may go: host names or addresses, with their port unless it is the default one; *.example.com is every name below, not the name itself.",
    ["api.stripe.com"],
  ),
  paths: t.shortList(
    t.shortText(URL_CHARS_MAX, "A path.", "/v1/charges"),
    CREDENTIAL_PATHS_MAX,
    "Prefixes of the path as it is sent, by whole segments; * stands for one segment. Paths that targets may read in two ways, such as /a/%2e%2e/b, are under none. Left out: any path.",
    ["/v1/charges", "/v1/customers"],
  ),
  methods: t.shortList(
    Type.Enum([...HTTP_METHODS], { type: "string" }),
    HTTP_METHODS.length,
    "Which methods may use it. Left out: any.",
    ["GET", "POST"],
  ),
  keys: Type.Array(t.keyIdSchema, {
    maxItems: CREDENTIAL_KEYS_MAX,
    uniqueItems: true,
    description: "The agents' keys that may use it. Owners may use every credential.",
    examples: [["key_01kjwa5v00e7v8c9x2m4n6p8qr"]],
  }),
  enabled: t.yesNo("False: calls with it fail, and nothing is sent.", true),
  expires_at: t.dateTime("From then on calls with it fail."),
};

export const CreateCredentialBody = t.requestObject(
  "CreateCredential",
  "A secret that calls can be made with, and where it may go.",
  {
    name: credentialNameSchema,
    kind,
    secret,
    hosts: members.hosts,
    paths: Type.Optional(members.paths),
    methods: Type.Optional(members.methods),
    header: Type.Optional(headerName("For header and hmac: the header that it sets.", "X-Api-Key")),
    scheme: Type.Optional(
      Type.String({
        pattern: t.AUTH_SCHEME,
        description: "For header: a word in front of the secret.",
        examples: ["Token"],
      }),
    ),
    username: Type.Optional(
      Type.String({
        maxLength: 255,
        pattern: t.BASIC_USERNAME,
        description: "For basic: the user name.",
        examples: ["ann"],
      }),
    ),
    hmac: Type.Optional(HmacMembers),
    keys: Type.Optional(members.keys),
    enabled: Type.Optional(members.enabled),
    expires_at: Type.Optional(members.expires_at),
  },
  { examples: [{ name: "stripe-live", kind: "bearer", secret: "sk_live_51H…", hosts: ["api.stripe.com"] }] },
);

export type CreateCredentialBody = Static<typeof CreateCredentialBody>;

const UNSET = ["paths", "methods", "expires_at"] as const;

export const ChangeCredentialBody = Type.Partial(
  Type.Object({
    secret,
    ...members,
    unset: t.shortList(Type.Enum([...UNSET], { type: "string" }), UNSET.length, "Bounds that it has no longer.", [
      "paths",
    ]),
  }),
  {
    title: "ChangeCredential",
    additionalProperties: false,
    minProperties: 1,
    description: "What to change; what is left out stays. To change its kind, delete it and add another one.",
    examples: [{ enabled: false }],
  },
);

export type ChangeCredentialBody = Static<typeof ChangeCredentialBody>;

export const TestCredentialBody = t.requestObject(
  "TestCredential",
  "A GET to try a credential with.",
  { url: t.targetUrl("Where the GET goes; it must lie within the bounds.", "https://api.stripe.com/v1/charges") },
  { examples: [{ url: "https://api.stripe.com/v1/charges" }] },
);

export const CredentialTestJson = t.answerObject("CredentialTest", "The answer to a GET with a credential, masked.", {
  status: t.nullable(Type.Integer({ description: "The status of the answer; null: there was none.", examples: [200] })),
  error: t.nullable(
    t.plainText("What went wrong; null: the answer was a 2xx.", "The target answered with status 401."),
  ),
  headers: t.stringMap("Headers of the answer, without secrets. Values of unknown names are masked.", {
    examples: [{ "content-type": "application/json" }],
  }),
  body: t.nullable(
    t.plainText(
      `The beginning of the body, without secrets: at most ${CREDENTIAL_TEST_BODY_CHARS_MAX} characters; null: it was empty.`,
      '{"object":"list"}',
    ),
  ),
  truncated: t.yesNo("Whether the body was longer.", false),
});

export type CredentialTestJson = Static<typeof CredentialTestJson>;

/** The settings of a new credential, and what is wrong with them in the body. */
export function settingsFrom(body: CreateCredentialBody): {
  readonly settings: CredentialSettings;
  readonly issues: readonly Issue[];
} {
  const settings = readSettings(body);
  const { hmac: { signs = "", value = "{signature}" } = {} } = body;
  const issues: Issue[] = OPTIONS.flatMap((name) =>
    body[name] === undefined || USED_BY[name].some((one) => one === body.kind)
      ? []
      : [{ field: name, message: `Is for ${USED_BY[name].join(" and ")}, and not for ${body.kind}.` }],
  );
  for (const name of ["header", "username"] as const) {
    if (USED_BY[name].includes(body.kind) && body[name] === undefined)
      issues.push({ field: name, message: `Is required for ${body.kind}.` });
  }
  const places = [
    ["hmac.signs", signs, SIGNED_PLACES],
    ["hmac.value", value, VALUE_PLACES],
  ] as const;
  for (const [field, text, known] of places) {
    const [unknown] = unknownPlaces(text, known);
    const names = known.map((name) => `{${name}}`).join(", ");
    if (unknown !== undefined) issues.push({ field, message: `Has no place {${unknown}}: use ${names}.` });
    if (!/^[\t\x20-\x7e]*$/.test(text)) issues.push({ field, message: "May hold only printable ASCII." });
  }
  if (!value.includes("{signature}")) issues.push({ field: "hmac.value", message: "Must have the place {signature}." });
  const own = headersOfCredential(settings);
  if (new Set(own.map(plainHeaderName)).size < own.length)
    issues.push({ field: "hmac.time_header", message: "Must be another header than that of the signature." });
  for (const [at, name] of own.entries()) {
    const field = at === 0 ? "header" : "hmac.time_header";
    const isOwn = OWN_HEADERS.has(plainHeaderName(name));
    const [refused] = headerIssues({ [name]: "x" }, null, "owner");
    if (isOwn || refused !== undefined)
      issues.push({ field, message: refused?.message ?? "Can't be set by a credential: requests set it themselves." });
  }
  const problem = secretProblem(body.kind, body.secret);
  if (problem !== null) issues.push({ field: "secret", message: problem });
  return { settings, issues };
}

const OPTIONS = ["header", "scheme", "username", "hmac"] as const;

const USED_BY: Readonly<Record<(typeof OPTIONS)[number], readonly CredentialKind[]>> = {
  header: ["header", "hmac"],
  scheme: ["header"],
  username: ["basic"],
  hmac: ["hmac"],
};

/** Headers that every request has, so that a credential must not add them again. */
const OWN_HEADERS = new Set(["accept", "content-type", "idempotency-key", "user-agent", "cookie"]);

function readSettings(body: CreateCredentialBody): CredentialSettings {
  const { kind: ofKind, header = "X-Unnamed", scheme: word = null, username: user = "", hmac = {} } = body;
  if (ofKind === "bearer") return { kind: ofKind };
  if (ofKind === "header") return { kind: ofKind, header, scheme: word };
  if (ofKind === "basic") return { kind: ofKind, username: user };
  const { algorithm = "sha256", encoding = "hex", time = "seconds", time_header: timeHeader = null } = hmac;
  const { signs = "{timestamp}.{body}", value = "{signature}" } = hmac;
  return { kind: ofKind, header, algorithm, encoding, signs, value, time, timeHeader };
}
