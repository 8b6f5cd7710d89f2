import { CreateActionBody } from "../../src/api/action-schemas.ts";
import { SECRET_FORMATS } from "../../src/receipts/secret-formats.ts";
import { exampleOf } from "../support/secret-examples.ts";

/** The members that a body may be given as; each has secrets of its own. */
export const BODY_PARTS = ["body", "json", "form", "text", "base64"] as const;

export type BodyPart = (typeof BODY_PARTS)[number];

/** By which ways a secret comes into the service. */
export const PARTS = [
  "header",
  "url",
  "callback",
  ...BODY_PARTS,
  "title",
  "metadata",
  "actor",
  "reason",
  "asked",
  "field",
  "answer",
  "location",
  "credential",
  "dropped",
] as const;

export type Part = (typeof PARTS)[number];

/** A secret that is planted, and looked for wherever something is shown. */
export interface Canary {
  readonly name: string;
  readonly part: Part;
  /** As it was written. */
  readonly secret: string;
  /** What gives it away: all of it but the last four characters, which a mask may show. */
  readonly core: string;
  /** It has the name of a secret and not the look of one: whoever decides sees it. */
  readonly isShownToDecider: boolean;
}

let planted = 0;

const all: Canary[] = [];

/** A secret that no other text holds, as a program would draw it; `wrap` gives it the look of its kind. */
function plant(
  part: Part,
  name: string,
  wrap: (unique: string) => string = (unique) => unique,
  isShownToDecider = false,
): string {
  planted += 1;
  const digits = String(Bun.hash(name)).padEnd(14, "7");
  const mixed = Array.from("kQxZbRwYvMtLsN", (email, at) => email + (digits[at] ?? "")).join("");
  const unique = `cAnary${String(planted).padStart(2, "0")}${mixed}`;
  const secret = wrap(unique);
  all.push({ name: `${part}: ${name}`, part, secret, core: secret.slice(0, -4), isShownToDecider });
  return secret;
}

/** One secret of each format whose texts fit in so many characters, in the order of the table; `seed` makes them others. */
function plantFormats(part: Part, seed: number, chars: number, formats = SECRET_FORMATS): readonly string[] {
  let left = chars;
  return formats.flatMap((format) => {
    const { whole, secret } = exampleOf(format, seed);
    left -= whole.length + 3;
    if (left < 0) return [];
    all.push({
      name: `${part}: ${format.name}, ${format.prefix}`,
      part,
      secret,
      core: secret.slice(0, -4),
      isShownToDecider: false,
    });
    return [whole];
  });
}

const base64url = (text: string) => Buffer.from(text).toString("base64url");

/** Header values: all of them are secrets but a few, and of these what looks like one. */
const HEADERS = {
  Authorization: `Bearer ${plant("header", "Authorization")}`,
  Cookie: `theme=dark; session=${plant("header", "Cookie")}`,
  "X-Api-Key": plant("header", "X-Api-Key"),
  "X-Plan": plant("header", "a header of any name"),
  "X-Proxy-Login": `Basic ${plant("header", "Basic credentials", (unique) => Buffer.from(`ann:${unique}`).toString("base64"))}`,
  "X-Long": `${"x".repeat(3_000)} ${plant("header", "the end of a long value")}`,
  "User-Agent": `bot Bearer ${plant("header", "User-Agent, which may be seen")} ${plantFormats("header", 5, 2_400).join(" ")}`,
  "X-Formats": plantFormats("header", 8, 2_400, SECRET_FORMATS.slice(110)).join(" "),
  Accept: `application/json; token=${plant("header", "Accept, which may be seen")}`,
} as const;

/** PKCS #8 of an Ed25519 key whose bytes are the text. */
const PEM = (unique: string) => {
  const der = Buffer.concat([
    Buffer.from("302e020100300506032b657004220420", "hex"),
    Buffer.from(unique.padEnd(32, "x").slice(0, 32)),
  ]);
  return `-----BEGIN PRIVATE KEY-----\\n${der.toString("base64")}\\n-----END PRIVATE KEY-----`;
};

const JWT = (unique: string) => `${base64url('{"alg":"HS256"}')}.${base64url(unique)}.${unique}`;

/** Members with a secret's name, and secrets by their looks in ordinary ones. JSON text, so that it is sent as it stands. */
const BODY = `{
  "password":"${plant("body", "password")}",
  "apiKey":"${plant("body", "apiKey")}",
  "db_credentials":[{"host":"db","n":"${plant("body", "a list of credentials")}"}],
  "session":{"id":"${plant("body", "a value in an object under a secret's name")}"},
  "pin":${plant("body", "a number", () => "827364519021358", true)},
  "json":"{\\"access_token\\":\\"${plant("body", "JSON in a string")}\\"}",
  "form":"a=1&client_secret=${plant("body", "a form in a string")}",
  "note":"say Bearer ${plant("body", "Bearer in a text")} to it",
  "jwt_like":"${plant("body", "a JWT", JWT)}",
  "key_file":"${plant("body", "a PEM block", PEM)}",
  "stripe":"${plant("body", "sk_live_", (unique) => `sk_live_${unique}`)}",
  "github":"${plant("body", "ghp_", (unique) => `ghp_${unique}`.slice(0, 40))}",
  "slack":"${plant("body", "xoxb-", (unique) => `xoxb-${unique}`)}",
  "aws":"${plant("body", "AKIA", () => "AKIAC4N4RYC4N4RY77QX")}",
  "formats":${JSON.stringify(plantFormats("body", 3, 14_000))},
  "short_password":{"pwd":"${plant("body", "a short password", () => "hunter2canary", true)}"},
  "google":"${plant("body", "AIza", (unique) => `AIza${unique}`)}",
  "env":[{"name":"DB_PASSWORD","value":"${plant("body", "a value that is named beside it")}"}],
  "config":"a: b\\n  seed_phrase: ${plant("body", "YAML in a string")}\\n",
  "webhook":"${plant("body", "whsec_", (unique) => `whsec_${unique}`)}",
  "ours":"${plant("body", "a key of ours", (unique) => `og_${unique.slice(0, 36)}`)}",
  "dsn":"postgres://ann:${plant("body", "user and password in a URL")}@db.example/x",
  "max_tokens":12345678901234567890
}`;

const FORM: readonly (readonly [name: string, value: string])[] = [
  ["password", plant("form", "password")],
  ["client_secret", plant("form", "client_secret")],
  ["code", plant("form", "code")],
  ["card[number]", plant("form", "a name in brackets", () => "4242424242424242", true)],
  ["auth[user]", plant("form", "an object under a secret's name", () => "ann-of-canaries", true)],
  ["note", `say Bearer ${plant("form", "Bearer in a text")} to it`],
  ["json", `{"access_token":"${plant("form", "JSON in a field")}"}`],
  ["next", `https://ann:${plant("form", "a login in a URL")}@x.example/?token=${plant("form", "a URL in a field")}`],
  [plant("form", "a name", (unique) => `ghp_${unique}`), "x"],
  ...plantFormats("form", 9, 14_000).map((whole, at) => [`f${at}`, whole] as const),
];

const TEXT =
  `db:\n  api_key: ${plant("text", "YAML")}\n  pass: '${plant("text", "YAML in single quotes")}'\n` +
  `secret = ${plant("text", "INI")}\nX-Api-Key: ${plant("text", "a header of any kind")}\n` +
  `machine x.example login ann password ${plant("text", ".netrc")}\ncurl -u ann:${plant("text", "curl -u")} https://x.example\n` +
  `login(user: ann, token: '${plant("text", "an argument")}')\n` +
  `password=${plant("text", "a form in a text")}\nAuthorization: Bearer ${plant("text", "a header in a text")}\n` +
  `{"apiKey":"${plant("text", "JSON in a text")}"} ${plantFormats("text", 10, 14_000).join(" ")}`;

const BYTES =
  `say Bearer ${plant("base64", "Bearer in bytes")} to it, password=${plant("base64", "a form in bytes")} ` +
  `${plantFormats("base64", 12, 3_500).join(" ")} ${plant("base64", "behind what is shown", (unique) => `${".".repeat(1_000)} ghp_${unique}`)}`;

const JSON_VALUE = JSON.stringify([
  { secret: plant("json", "a secret in a list"), note: `Bearer ${plant("json", "Bearer in a text")}` },
  ...plantFormats("json", 13, 14_000),
]);

const BODIES: Readonly<Record<BodyPart, string>> = {
  body: BODY,
  json: JSON_VALUE,
  form: JSON.stringify(Object.fromEntries(FORM)),
  text: JSON.stringify(TEXT),
  base64: JSON.stringify(Buffer.from(BYTES).toString("base64")),
};

/** The body as the target receives it, decoded. */
export function sentText(part: BodyPart, sent: string): string {
  return part === "form" ? [...new URLSearchParams(sent)].flat().join("\n") : sent;
}

/** A text, and what is encoded in it: a secret is shown too where anybody can decode it. */
export function decodedIn(part: BodyPart, text: string): string {
  if (part !== "base64") return text;
  const encoded = text.match(/[A-Za-z0-9+/]{200,}={0,2}/g) ?? [];
  return [text, ...encoded.map((bytes) => Buffer.from(bytes, "base64").toString())].join("\n");
}

/** In the path, and as values of the query; those that stand there as they are, the shorter ones. */
const URL_FORMATS = SECRET_FORMATS.filter((format) => {
  const { whole } = exampleOf(format, 6);
  return format.isPlace !== true && encodeURIComponent(whole) === whole && whole.length < 56;
});

const PLACES = SECRET_FORMATS.filter(({ isPlace, min }) => isPlace === true && min < 40);

const HALF = URL_FORMATS.length / 2;

const URL_PATH = plantFormats("url", 6, 3_000, [...PLACES, ...URL_FORMATS.slice(0, HALF)]).join("/");

const URL_VALUES = plantFormats("url", 7, 2_600, URL_FORMATS.slice(HALF)).map((whole, at) => `&f${at}=${whole}`);

const URL_QUERY =
  `?page=2&token=${plant("url", "token")}&key=${plant("url", "key")}` +
  `&code=${plant("url", "code")}&access=${plant("url", "access")}${URL_VALUES.join("")}`;

const CALLBACK_QUERY = `?team=7&sig=${plant("callback", "sig")}&api_key=${plant("callback", "api_key")}`;

/** What comes from outside beside the request: a person's reason, and the target's answer. */
export const REASON =
  `as Bearer ${plant("reason", "a reason")} said: {"password":"${plant("reason", "JSON in a reason")}"} ` +
  `or secret=${plant("reason", "a form in a reason")} or token: ${plant("reason", "a line in a reason")}`;

/** Why it is asked for, as the create says it. */
const ASKED =
  `as Bearer ${plant("asked", "a create's reason")} said: {"password":"${plant("asked", "JSON in a create's reason")}"} ` +
  `or secret=${plant("asked", "a form in a create's reason")}`;

const TITLE = `Refund as Bearer ${plant("title", "a title")}`;

const METADATA = {
  token: plant("metadata", "a name"),
  note: `password=${plant("metadata", "a form in a value")}`,
  format: plant("metadata", "a format", (unique) => `sk_live_${unique}`),
};

/** The name of the key that decides, which whoever made the key chose. */
export const DECIDER = `ops ${plant("actor", "the name of a key", (unique) => `ghp_${unique}`)}`;

const ANSWER =
  `{"formats":${JSON.stringify(plantFormats("answer", 4, 14_000))},"session_token":"${plant("answer", "session_token")}","text":"password=${plant("answer", "a form in a text")}",` +
  `"auth":{"n":"${plant("answer", "an object under a secret's name")}"},"one":1.0}`;

const LOCATION =
  `https://ann:${plant("location", "a password in it")}@sso.example/login/` +
  `${plant("location", "a key in its path", (unique) => `sk_live_${unique}`)}/` +
  plant("location", "a JWT in its path", JWT) +
  `?page=2&code=${plant("location", "code")}&next=%2Fin%3Ftoken%3D${plant("location", "a URL in its query")}` +
  `&state={"password":"${plant("location", "JSON in its query")}"}#access_token=${plant("location", "its fragment")}`;

const SET_COOKIE = `session=${plant("dropped", "Set-Cookie")}; HttpOnly`;

/** A credential that the call is made with: nobody sees it, also where the target sends it back. */
export const VAULTED = plant("credential", "the secret of a credential");

/** The members of a create that have values of their own in `requestTo`. */
const OWN: ReadonlySet<string> = new Set([
  "url",
  "method",
  "headers",
  "retries",
  "give_up_on",
  "approve",
  "notify",
  "callback",
  "title",
  "metadata",
  "reason",
  "credential",
  ...BODY_PARTS,
]);

interface FieldSchema {
  readonly type?: unknown;
  readonly enum?: unknown;
  readonly format?: unknown;
  readonly properties?: Readonly<Record<string, FieldSchema>>;
}

/** A secret for each text of a field, as its schema has them; undefined: it has none. */
function plantedIn(name: string, { type, enum: words, format, properties }: FieldSchema): unknown {
  if (words !== undefined || format === "date-time" || type === "boolean" || type === "integer") return undefined;
  if (type === "string") return plant("field", name, (unique) => `sk_live_${unique}`);
  if (properties === undefined)
    throw new Error(`What is planted in ${name}? Its schema does not say: give it a value.`);
  const members = Object.entries(properties).map(([inner, schema]) => [inner, plantedIn(`${name}.${inner}`, schema)]);
  return members.some(([, member]) => member !== undefined) ? Object.fromEntries(members) : undefined;
}

/** All others, with a secret in each that takes text: nobody has to think of a new one. */
const FIELDS = Object.entries(CreateActionBody.properties).flatMap(([name, schema]) => {
  const value = OWN.has(name) ? undefined : plantedIn(name, schema as FieldSchema);
  return value === undefined ? [] : [`,"${name}":${JSON.stringify(value)}`];
});

export const CANARIES: readonly Canary[] = all;

/** A create with everything in it. JSON text. */
export function requestTo(target: string, hooks: string, part: BodyPart): string {
  return (
    `{"url":"${target}orders/${URL_PATH}${URL_QUERY}","method":"PUT","credential":"vault","retries":1,"approve":true,"reason":${JSON.stringify(ASKED)}` +
    `,"notify":{"email":"boss@example.com"},"callback":"${hooks}done${CALLBACK_QUERY}","headers":${JSON.stringify(HEADERS)}` +
    `,"title":${JSON.stringify(TITLE)},"metadata":${JSON.stringify(METADATA)},"${part}":${BODIES[part]}${FIELDS.join("")}}`
  );
}

/** What the target answers. It sends the credential back. */
export function answerOfTarget({ headers: sent }: { readonly headers: Headers }): Response {
  const secret = sent.get("x-vault") ?? "";
  const headers = { location: LOCATION, "set-cookie": SET_COOKIE, "content-type": "application/json", etag: secret };
  const echo = JSON.stringify({ plain: secret, base64: Buffer.from(secret).toString("base64") }).slice(1);
  return new Response(`${ANSWER.slice(0, -1)},${echo}`, { status: 302, headers });
}
