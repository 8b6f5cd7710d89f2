import Type, { type Static } from "typebox";
import { CredentialKindName as kind, credentialNameSchema } from "../api/action-schemas.ts";
import { HEADER_NAME_PATTERN, headerIssues } from "../api/headers.ts";
import {
  choice,
  dateTime,
  idSchema,
  keyIdSchema,
  nullable,
  plainText,
  stringMap,
  targetUrl,
  yesNo,
  requestObject,
  answerObject,
  shortText,
  shortList,
} from "../api/schema-helpers.ts";
import { HTTP_METHODS } from "../core/action.ts";
import {
  type Credential,
  type CredentialBounds,
  type CredentialKind,
  type CredentialSettings,
  HMAC_ALGORITHMS,
  HMAC_ENCODINGS,
  HMAC_TIMES,
} from "../core/credential.ts";
import type { Issue } from "../core/domain-error.ts";
import { readHosts } from "../core/key-limits.ts";
import {
  CREDENTIAL_HOSTS_MAX,
  CREDENTIAL_KEYS_MAX,
  CREDENTIAL_PATHS_MAX,
  CREDENTIAL_SECRET_CHARS_MAX,
  CREDENTIAL_SECRET_CHARS_MIN,
  CREDENTIAL_TEMPLATE_CHARS_MAX,
  CREDENTIAL_TEST_BODY_CHARS_MAX,
  CREDENTIALS_MAX,
  URL_CHARS_MAX,
} from "../core/limits.ts";
import { plainHeaderName } from "../core/method-overrides.ts";
import { normalPrefix } from "../core/sent-target.ts";
import { addressOfHost } from "../core/addresses.ts";
import { headersOfCredential, secretProblem, SIGNED_PLACES, unknownPlaces, VALUE_PLACES } from "./kinds.ts";
import { secretGivers } from "./secret-givers.ts";
import { type CredentialUses, daysOf, sumOf } from "./uses.ts";

const template = (description: string, example: string) =>
  shortText(CREDENTIAL_TEMPLATE_CHARS_MAX, description, example);

const headerName = (description: string, example: string) =>
  Type.String({ pattern: HEADER_NAME_PATTERN, description, examples: [example] });

const HmacMembers = requestObject(
  "HmacSettings",
  "For hmac: what is signed, and how.",
  {
    algorithm: Type.Optional(choice(HMAC_ALGORITHMS, "Default: sha256.", "sha256")),
    encoding: Type.Optional(choice(HMAC_ENCODINGS, "How the signature is written. Default: hex.", "hex")),
    signs: Type.Optional(
      template(
        `What is signed. Its places are ${SIGNED_PLACES.map((name) => `{${name}}`).join(" ")}. Default: {timestamp}.{body}`,
        "{timestamp}.{body}",
      ),
    ),
    value: Type.Optional(
      template("The value of the header, with {signature} and {timestamp}. Default: {signature}", "{signature}"),
    ),
    time: Type.Optional(choice(HMAC_TIMES, "How {timestamp} is written. Default: seconds.", "seconds")),
    time_header: Type.Optional(headerName("A header that has the time too.", "X-Timestamp")),
  },
  { examples: [{ signs: "{timestamp}.{method}.{path}.{body}", time_header: "X-Timestamp" }] },
);

const secret = Type.String({
  minLength: CREDENTIAL_SECRET_CHARS_MIN,
  maxLength: CREDENTIAL_SECRET_CHARS_MAX,
  description: "The token, key or password. It is stored sealed, and nobody reads it back.",
  examples: ["sk_live_51H…"],
});

const bounds = {
  hosts: shortList(
    shortText(URL_CHARS_MAX, "A host.", "api.stripe.com"),
    CREDENTIAL_HOSTS_MAX,
    "Where it may go: host names or addresses, with their port unless it is the default one; *.example.com is every name below, not the name itself.",
    ["api.stripe.com"],
  ),
  paths: shortList(
    shortText(URL_CHARS_MAX, "A path.", "/v1/charges"),
    CREDENTIAL_PATHS_MAX,
    "Prefixes of the path as it is sent, by whole segments; * stands for one segment. Paths that targets may read in two ways, such as /a/%2e%2e/b, are under none. Left out: any path.",
    ["/v1/charges", "/v1/customers"],
  ),
  methods: shortList(
    Type.Enum([...HTTP_METHODS], { type: "string" }),
    HTTP_METHODS.length,
    "Which methods may use it. Left out: any.",
    ["GET", "POST"],
  ),
};

const keys = Type.Array(keyIdSchema, {
  maxItems: CREDENTIAL_KEYS_MAX,
  uniqueItems: true,
  description: "The agents' keys that may use it. Owners may use every credential.",
  examples: [["key_01kjwa5v00e7v8c9x2m4n6p8qr"]],
});

const enabled = yesNo("False: calls with it fail, and nothing is sent.", true);

const expiresAt = dateTime("From then on calls with it fail.");

const username = Type.String({
  maxLength: 255,
  pattern: "^[^:\\x00-\\x1f\\x7f]*$",
  description: "For basic: the user name.",
  examples: ["ann"],
});

const scheme = Type.String({
  pattern: "^[A-Za-z][A-Za-z0-9._-]{0,63}$",
  description: "For header: a word in front of the secret.",
  examples: ["Token"],
});

export const CreateCredential = requestObject(
  "CreateCredential",
  "A secret that calls can be made with, and where it may go.",
  {
    name: credentialNameSchema,
    kind,
    secret,
    hosts: bounds.hosts,
    paths: Type.Optional(bounds.paths),
    methods: Type.Optional(bounds.methods),
    header: Type.Optional(headerName("For header and hmac: the header that it sets.", "X-Api-Key")),
    scheme: Type.Optional(scheme),
    username: Type.Optional(username),
    hmac: Type.Optional(HmacMembers),
    keys: Type.Optional(keys),
    enabled: Type.Optional(enabled),
    expires_at: Type.Optional(expiresAt),
  },
  { examples: [{ name: "stripe-live", kind: "bearer", secret: "sk_live_51H…", hosts: ["api.stripe.com"] }] },
);

export type CreateCredential = Static<typeof CreateCredential>;

const UNSET = ["paths", "methods", "expires_at"] as const;

export const ChangeCredential = Type.Partial(
  Type.Object({
    secret,
    ...bounds,
    keys,
    enabled,
    expires_at: expiresAt,
    unset: shortList(Type.Enum([...UNSET], { type: "string" }), UNSET.length, "Bounds that it has no longer.", [
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

export type ChangeCredential = Static<typeof ChangeCredential>;

export const CredentialJson = answerObject("Credential", "A credential, without its secret.", {
  name: credentialNameSchema,
  kind,
  header: Type.Optional(headerName("The header that it sets.", "Authorization")),
  hosts: bounds.hosts,
  paths: Type.Optional(bounds.paths),
  methods: Type.Optional(bounds.methods),
  enabled,
  expires_at: nullable(expiresAt),
  id: Type.Optional(idSchema("crd", "Id of the credential. For owners, as all below.")),
  scheme: Type.Optional(scheme),
  username: Type.Optional(username),
  hmac: Type.Optional(HmacMembers),
  last4: Type.Optional(nullable(plainText("The last four characters of the secret, if it is long.", "4242"))),
  keys: Type.Optional(keys),
  created_at: Type.Optional(dateTime("When it was added.")),
  created_by: Type.Optional(plainText("Who added it.", "user:ann@example.com")),
  replaced_at: Type.Optional(dateTime("When its secret was set last.")),
  last_used_at: Type.Optional(nullable(dateTime("When it was last sent."))),
  uses_last_week: Type.Optional(
    Type.Integer({
      description:
        "How often it was sent in the last 7 days, with retries and tries. Counted are the newest 10,000 entries of the audit log.",
      examples: [12],
    }),
  ),
  echoed_by: Type.Optional(
    Type.Array(plainText("A host.", "api.example.com"), {
      description: "Hosts that have sent the secret back in an answer, in which it was masked.",
      examples: [["api.example.com"]],
    }),
  ),
  warnings: Type.Optional(
    Type.Array(plainText("A sentence.", "Its bounds include Stripe's /v1/api_keys."), {
      description: "What is risky about its bounds.",
      examples: [["Its bounds include Stripe's /v1/api_keys, where answers hold a new secret."]],
    }),
  ),
});

export type CredentialJson = Static<typeof CredentialJson>;

export const CredentialListJson = answerObject("CredentialList", "The credentials that the caller may know.", {
  data: Type.Array(CredentialJson, { description: `By name; at most ${CREDENTIALS_MAX}.` }),
});

export const TestCredential = requestObject(
  "TestCredential",
  "A GET to try a credential with.",
  { url: targetUrl("Where the GET goes; it must lie within the bounds.", "https://api.stripe.com/v1/charges") },
  { examples: [{ url: "https://api.stripe.com/v1/charges" }] },
);

export const CredentialTest = answerObject("CredentialTest", "The answer to a GET with a credential, masked.", {
  status: nullable(Type.Integer({ description: "The status of the answer; null: there was none.", examples: [200] })),
  error: nullable(plainText("What went wrong; null: the answer was a 2xx.", "The target answered with status 401.")),
  headers: stringMap("Headers of the answer, without secrets. Values of unknown names are masked.", {
    examples: [{ "content-type": "application/json" }],
  }),
  body: nullable(
    plainText(
      `The beginning of the body, without secrets: at most ${CREDENTIAL_TEST_BODY_CHARS_MAX} characters; null: it was empty.`,
      '{"object":"list"}',
    ),
  ),
  truncated: yesNo("Whether the body was longer.", false),
});

export type CredentialTest = Static<typeof CredentialTest>;

/** What owners see of a credential. Null: the less that all others do. */
export function serializeCredential(credential: Credential, uses: CredentialUses | null): CredentialJson {
  const { id, name, settings, hint, hosts, paths, methods } = credential;
  const shown = {
    name,
    kind: settings.kind,
    header: headersOfCredential(settings)[0] ?? "Authorization",
    hosts: [...hosts],
    ...(paths !== null && { paths: [...paths] }),
    ...(methods !== null && { methods: [...methods] }),
    enabled: credential.enabled,
    expires_at: credential.expiresAt?.toISOString() ?? null,
  };
  if (uses === null) return shown;
  return {
    ...shown,
    id,
    ...(settings.kind === "header" && settings.scheme !== null && { scheme: settings.scheme }),
    ...(settings.kind === "basic" && { username: settings.username }),
    ...(settings.kind === "hmac" && { hmac: hmacJson(settings) }),
    last4: hint,
    keys: [...credential.keys],
    created_at: credential.createdAt.toISOString(),
    created_by: credential.createdBy,
    replaced_at: credential.replacedAt.toISOString(),
    last_used_at: credential.lastUsedAt?.toISOString() ?? null,
    uses_last_week: sumOf(daysOf(uses, id)),
    echoed_by: [...credential.echoes],
    warnings: [...warningsOf(credential)],
  };
}

function hmacJson({ algorithm, encoding, signs, value, time, timeHeader }: HmacOf) {
  const members = { algorithm, encoding, signs, value, time };
  return timeHeader === null ? members : { ...members, time_header: timeHeader };
}

type HmacOf = Extract<CredentialSettings, { kind: "hmac" }>;

/** What is risky about its bounds, a sentence each. */
export function warningsOf(bounded: CredentialBounds): readonly string[] {
  const included = secretGivers(bounded);
  if (included.length === 0) return [];
  return [
    `Its bounds include ${LIST.format(included)}, where answers hold a new secret. Name the paths that calls need.`,
  ];
}

const LIST = new Intl.ListFormat("en-GB");

/** How a new credential is put on a request, or what is wrong with what the body says of that. */
export function settingsFrom(body: CreateCredential): {
  readonly settings: CredentialSettings;
  readonly issues: readonly Issue[];
} {
  const settings = readSettings(body);
  const issues: Issue[] = OPTIONS.flatMap((name) =>
    body[name] === undefined || USED_BY[name].some((one) => one === body.kind)
      ? []
      : [{ field: name, message: `Is for ${USED_BY[name].join(" and ")}, and not for ${body.kind}.` }],
  );
  if (USED_BY.header.includes(body.kind) && body.header === undefined)
    issues.push({ field: "header", message: `Is required for ${body.kind}.` });
  if (body.kind === "basic" && body.username === undefined)
    issues.push({ field: "username", message: "Is required for basic." });
  const places = [
    ["hmac.signs", body.hmac?.signs ?? "", SIGNED_PLACES],
    ["hmac.value", body.hmac?.value ?? "{signature}", VALUE_PLACES],
  ] as const;
  for (const [field, text, known] of places) {
    const [unknown] = unknownPlaces(text, known);
    const names = known.map((name) => `{${name}}`).join(", ");
    if (unknown !== undefined) issues.push({ field, message: `Has no place {${unknown}}: use ${names}.` });
    if (!/^[\t\x20-\x7e]*$/.test(text)) issues.push({ field, message: "May hold only printable ASCII." });
  }
  if (!(body.hmac?.value ?? "{signature}").includes("{signature}"))
    issues.push({ field: "hmac.value", message: "Must have the place {signature}." });
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
  return { settings, issues: problem === null ? issues : [...issues, { field: "secret", message: problem }] };
}

const OPTIONS = ["header", "scheme", "username", "hmac"] as const;

const USED_BY: Readonly<Record<(typeof OPTIONS)[number], readonly CredentialKind[]>> = {
  header: ["header", "hmac"],
  scheme: ["header"],
  username: ["basic"],
  hmac: ["hmac"],
};

/** Headers of every request, which a credential would double. */
const OWN_HEADERS = new Set(["accept", "content-type", "idempotency-key", "user-agent", "cookie"]);

function readSettings({
  kind: ofKind,
  header = "X-Unnamed",
  scheme: word,
  username: user = "",
  hmac,
}: CreateCredential) {
  const settings: { readonly [Name in CredentialKind]: Extract<CredentialSettings, { kind: Name }> } = {
    bearer: { kind: "bearer" },
    header: { kind: "header", header, scheme: word ?? null },
    basic: { kind: "basic", username: user },
    hmac: {
      kind: "hmac",
      header,
      algorithm: hmac?.algorithm ?? "sha256",
      encoding: hmac?.encoding ?? "hex",
      signs: hmac?.signs ?? "{timestamp}.{body}",
      value: hmac?.value ?? "{signature}",
      time: hmac?.time ?? "seconds",
      timeHeader: hmac?.time_header ?? null,
    },
  };
  return settings[ofKind];
}

/** Bounds in the form in which requests are compared with them, and what is wrong with them. What is not given is absent. */
export function boundsFrom({ hosts, paths, methods }: Pick<ChangeCredential, "hosts" | "paths" | "methods">): {
  readonly bounds: Partial<CredentialBounds>;
  readonly issues: readonly Issue[];
} {
  const read = hosts === undefined ? null : readHosts(hosts);
  const wide = (hosts ?? []).flatMap((host, at) =>
    isTooWide(readHosts([host]).hosts[0] ?? "")
      ? [
          {
            field: `hosts.${at}`,
            message: "Is too wide: name at least two labels behind the star, as in *.example.com.",
          },
        ]
      : [],
  );
  const prefixes = paths?.map((path) => (DOTS.test(path) ? null : normalPrefix(path)));
  const wrong = (prefixes ?? []).flatMap((prefix, at) =>
    prefix === null
      ? [
          {
            field: `paths.${at}`,
            message: "Must begin with / and have no code, dot segment or query that targets read in two ways.",
          },
        ]
      : [],
  );
  return {
    bounds: {
      ...(read !== null && { hosts: [...new Set(read.hosts.map((host) => host.replace(/:(?:443|80)$/, "")))] }),
      ...(prefixes !== undefined && { paths: [...new Set(prefixes.flatMap((prefix) => prefix ?? []))] }),
      ...(methods !== undefined && { methods: [...new Set(methods)] }),
    },
    issues: [...(read?.issues ?? []), ...wide, ...wrong],
  };
}

/** A whole top-level domain, or what looks like a part of an address. */
function isTooWide(host: string): boolean {
  const below = host.slice(2).replace(PORT, "");
  return host.startsWith("*.") && (!below.includes(".") || addressOfHost(below) !== null);
}

const PORT = /:\d{1,5}$/;

/** A dot segment, which would name another path. */
const DOTS = /\/(?:\.|%2e){1,2}(?:\/|$)/i;
