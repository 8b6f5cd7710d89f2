import {
  ATTEMPT_TIMEOUT_MS_DEFAULT,
  MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
  RETRY_BASE_MS_DEFAULT,
  RETRY_BASE_MS_MAX,
  RETRY_CAP_MS_DEFAULT,
  RETRY_CAP_MS_MAX,
  APPROVAL_TTL_SETTING_HOURS_MAX,
  ATTEMPT_TIMEOUT_SETTING_MS_MAX,
  DISPATCH_SETTING_MAX,
  MCP_SESSIONS_SETTING_MAX,
  PORT_MAX,
  RATE_LIMIT_SETTING_MAX,
  RETENTION_SETTING_DAYS_MAX,
} from "../core/limits.ts";
import { privateTargetFault } from "./target-policy.ts";
import {
  databaseFault,
  type FindFault,
  hostFault,
  issuerFault,
  originFault,
  proxyFault,
  KEY_FORMS,
  readKey,
  LOG_LEVELS,
  LOG_FORMATS,
} from "./values.ts";

const NO_ENTRY = "has an entry of the wrong form";

/** Every setting by the name of its environment variable, in the order of `.env.example`. */
export const SETTINGS = {
  PORT: wholeNumber(0, PORT_MAX, { default: 3_000, description: "Port to listen on. 0 takes any free port." }),
  HOST: text(hostFault, {
    default: "127.0.0.1",
    description: "Address to listen on.",
    allowed: "an IP address (IPv6 without brackets) or a host name",
  }),
  BASE_URL: text(originFault, {
    description:
      "Public address of the service. Links and receipt_url begin with it. Unset: HOST and PORT, and receipt_url is a path.",
    allowed: "http:// or https:// and a host, without a path, like https://outgate.example.com",
  }),
  DATABASE_URL: text(databaseFault, {
    default: "file:./data/outgate.db",
    description: "The database.",
    allowed:
      "file:<path>, postgres://<user>:<password>@<host>/<database>, or libsql://<host> (https:// and http:// too)",
  }),
  DATABASE_AUTH_TOKEN: visibleText({ isSecret: true, description: "Token for a libsql:// database." }),
  SECRET_KEY: text((value) => (readKey(value) === null ? "has the wrong form" : null), {
    isSecret: true,
    description:
      "Master key that encrypts secrets. All nodes need the same one. Unset: generated once and stored next to the database file.",
    allowed: KEY_FORMS,
  }),
  BOOTSTRAP_API_KEY: text(matching(/^[!-~]{20,200}$/), {
    isSecret: true,
    description: "Owner key of the first account, for scripts. Unset: generated and shown at the first start.",
    allowed: "20 to 200 visible ASCII characters",
  }),
  SIGNUPS: oneOf(["open", "closed"], {
    description:
      "Whether anyone can sign up. Unset: closed, but open on loopback until a key of the first account has a hold, or APPROVERS or AGENT_APPROVAL=off is set.",
  }),
  TRUSTED_PROXIES: list(proxyFault, {
    description: "Proxies whose X-Forwarded-For header is trusted. Unset: none.",
    allowed: "addresses and address ranges, separated by commas, like 127.0.0.1,10.0.0.0/8",
  }),
  RATE_LIMIT_PER_SECOND: wholeNumber(0, RATE_LIMIT_SETTING_MAX, {
    default: 100,
    description: "Requests per second of an account, shared by its keys. 0: no limit.",
  }),
  MCP_SESSIONS_PER_ACCOUNT: wholeNumber(1, MCP_SESSIONS_SETTING_MAX, {
    default: MCP_SESSIONS_PER_ACCOUNT_DEFAULT,
    description: "Open sessions per account of MCP clients with a protocol revision of 2025.",
  }),
  ATTEMPT_TIMEOUT_MS: wholeNumber(1, ATTEMPT_TIMEOUT_SETTING_MS_MAX, {
    default: ATTEMPT_TIMEOUT_MS_DEFAULT,
    description: "Deadline of one attempt, in milliseconds.",
  }),
  RETRY_BASE_MS: wholeNumber(1, RETRY_BASE_MS_MAX, {
    default: RETRY_BASE_MS_DEFAULT,
    description: "Delay after the first failed attempt, in milliseconds. It doubles after each further one.",
  }),
  RETRY_CAP_MS: wholeNumber(1, RETRY_CAP_MS_MAX, {
    default: RETRY_CAP_MS_DEFAULT,
    description: "Longest delay between two attempts, in milliseconds.",
  }),
  DISPATCH_CONCURRENCY: wholeNumber(1, DISPATCH_SETTING_MAX, {
    default: 256,
    description: "Attempts in progress at a time. At least two fewer than BUN_CONFIG_MAX_HTTP_REQUESTS.",
  }),
  DISPATCH_PER_HOST: wholeNumber(1, DISPATCH_SETTING_MAX, {
    default: 64,
    description: "Attempts in progress at a time from one account to one host, over all its keys.",
  }),
  KEEP_CONNECTIONS: oneOf(["on", "off"], {
    default: "on",
    description: "Whether connections to targets stay open for 2 seconds, for further POST and PATCH calls.",
  }),
  RETENTION_DAYS: wholeNumber(1, RETENTION_SETTING_DAYS_MAX, {
    description: "Days after which finished actions are deleted. Unset: never.",
  }),
  ALLOWED_PRIVATE_TARGETS: list((entry) => matching(/^\S+$/, NO_ENTRY)(entry) ?? privateTargetFault(entry), {
    description: "Private addresses and names that calls can go to. Unset: none.",
    allowed: "address ranges and host names, separated by commas, like 10.0.0.0/8,billing.internal",
  }),
  APPROVAL_LINKS: oneOf(["confirm", "one_click"], {
    default: "confirm",
    description: "Whether a link in an approval email asks for confirmation, or decides when it is opened.",
  }),
  APPROVERS: list(matching(/^[!-?A-~]*@[!-?A-~]+$/, NO_ENTRY), {
    description:
      "Who can be asked for approval by email, in addition to people of the account. Unset: an owner key without a hold can name anyone, other keys only those people.",
    allowed: "addresses and @domains, separated by commas, like ann@example.com,@example.org",
  }),
  APPROVAL_TTL_HOURS: wholeNumber(1, APPROVAL_TTL_SETTING_HOURS_MAX, {
    description: "Hours after which an action that still awaits approval is cancelled. Unset: never.",
  }),
  AGENT_APPROVAL: oneOf(["elicit", "off"], {
    description:
      "Whether an agent's MCP client can ask its user for approval. Unset: elicit on loopback, otherwise off.",
  }),
  MAILGUN_API_KEY: visibleText({
    isSecret: true,
    description: "API key of Mailgun. Unset: no email is sent, and people approve on the pages.",
  }),
  MAILGUN_DOMAIN: text(matching(/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/), {
    description: "Domain at Mailgun that sends the emails.",
    allowed: "a domain name, like mg.example.com",
  }),
  MAILGUN_FROM: text(matching(/^[^\p{Cc}@]*[^\p{Cc}\s@<>]@[^\p{Cc}\s@<>]+>?$/u), {
    description: "Sender of the emails. Unset: Outgate <outgate@MAILGUN_DOMAIN>.",
    allowed: "an address, or a name and an address, like Outgate <outgate@example.com>",
  }),
  MAILGUN_URL: text(originFault, {
    default: "https://api.mailgun.net",
    description: "Address of Mailgun's API. In the EU region: https://api.eu.mailgun.net.",
    allowed: "http:// or https:// and a host, without a path",
  }),
  OIDC_ISSUER: text(issuerFault, {
    description: "Issuer of the OpenID Connect provider with which people can log in. Unset: passwords only.",
    allowed: "https:// and a host, with the path that the provider names, like https://accounts.google.com",
  }),
  OIDC_CLIENT_ID: visibleText({
    description: "Client ID of this service at that provider. Its redirect URI is BASE_URL/auth/oidc/callback.",
  }),
  OIDC_CLIENT_SECRET: visibleText({ isSecret: true, description: "Secret of that client." }),
  OIDC_ALLOWED_DOMAINS: list(matching(/^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$/, NO_ENTRY), {
    description: "Domains of the addresses that can log in with that provider.",
    allowed: "domain names, separated by commas, like example.com,example.org",
  }),
  OAUTH: oneOf(["on", "off"], {
    description:
      "Whether MCP clients can log a person in instead of sending a key, as claude.ai does. Unset: on if BASE_URL is https, otherwise off.",
  }),
  OAUTH_REGISTRATION: oneOf(["on", "off"], {
    default: "off",
    description: "Whether clients without a metadata document can register themselves.",
  }),
  METRICS_TOKEN: text(matching(/^[!-~]{16,200}$/), {
    isSecret: true,
    description: "Bearer token that /metrics requires. Unset: none.",
    allowed: "16 to 200 visible ASCII characters",
  }),
  METRICS_PORT: wholeNumber(1, PORT_MAX, {
    description: "Port on HOST that serves only /metrics. Unset: PORT serves it.",
  }),
  LOG_LEVEL: oneOf(LOG_LEVELS, { default: "info", description: "The lowest level that is logged." }),
  LOG_FORMAT: oneOf(LOG_FORMATS, {
    default: "auto",
    description: "Format of the log. auto: text on a terminal, otherwise JSON, one object a line.",
  }),
};

export type SettingName = keyof typeof SETTINGS;

/** The values of the settings; undefined if one is unset and has no default. */
export type EnvironmentSettings = { readonly [Name in SettingName]: ValueOf<(typeof SETTINGS)[Name]> };

type ValueOf<One> = One extends Setting<infer Value, infer Default> ? Value | Default : never;

export type Texts = Readonly<Partial<Record<SettingName, string>>>;

/** The settings in the environment, trimmed; empty texts count as unset. */
export function settingTexts(env: Readonly<Record<string, string | undefined>>): Texts {
  const given = settingNames().map((name) => [name, env[name]?.trim() ?? ""] as const);
  return Object.fromEntries(given.filter(([, one]) => one !== ""));
}

/** Names of variables that have no effect and look like a setting, with its name. */
export function misspeltIn(
  env: Readonly<Record<string, string | undefined>>,
): readonly (readonly [string, SettingName])[] {
  const names = new Set<string>(settingNames());
  const settings = settingNames().filter(({ length }) => length >= NAME_CHARS_MIN);
  const others = Object.keys(env).filter((name) => name.length <= NAME_CHARS_MAX && !names.has(name));
  return others.flatMap((other) => {
    const given = other.toUpperCase().replace(/^OUTGATE_/, "");
    const meant = settings.find((name) => isNear(given, name));
    return meant === undefined ? [] : [[other, meant] as const];
  });
}

/** Shorter names, such as HOST and PORT, have neighbours that other programs use. */
const NAME_CHARS_MIN = 7;
/** Longer than any setting with a prefix. */
const NAME_CHARS_MAX = 50;

/** Whether at most two characters (one in a short name) were added, left out or replaced. */
function isNear(given: string, name: string): boolean {
  const most = name.length <= NAME_CHARS_MIN ? 1 : 2;
  if (Math.abs(given.length - name.length) > most) return false;
  /** For each beginning of `name`, how many changes make it of the beginning of `given` so far. */
  let edits = Array.from({ length: name.length + 1 }, (_, at) => at);
  for (const character of given) {
    const next = [(edits[0] ?? 0) + 1];
    for (const [at, wanted] of Array.from(name).entries()) {
      const [left = 0, above = 0, diagonal = 0] = [next[at], edits[at + 1], edits[at]];
      next.push(Math.min(left + 1, above + 1, diagonal + (character === wanted ? 0 : 1)));
    }
    edits = next;
    // Some platforms set thousands of variables, most of which differ from the first characters on.
    if (Math.min(...edits) > most) return false;
  }
  return (edits.at(-1) ?? 0) <= most;
}

/** The parsed settings with defaults, or a sentence for each invalid one, without its value, which may be a secret. */
export function readSettings(texts: Texts): { settings: EnvironmentSettings } | { problems: readonly string[] } {
  const problems: string[] = [];
  const values = settingNames().map((name) => {
    const { [name]: given } = texts;
    const { default: value, allowed, findFault, parse } = SETTINGS[name];
    if (given === undefined) return [name, value] as const;
    const fault = findFault(given);
    if (fault !== null) problems.push(`${name} ${fault}. Allowed: ${allowed}.`);
    return [name, parse(given)] as const;
  });
  if (problems.length > 0) return { problems };
  // Safe: each has the value that its own entry of the table has.
  return { settings: Object.fromEntries(values) as EnvironmentSettings };
}

export function settingNames(): readonly SettingName[] {
  // Safe: the keys of an object literal that nothing adds to.
  return Object.keys(SETTINGS) as SettingName[];
}

/** What a setting is, in words and by its default. Without a default, it may be unset. */
interface Words<Default> {
  /** One sentence: what it sets, and what happens if it is unset. */
  readonly description: string;
  readonly default?: Default;
  /** Its value is shown nowhere. */
  readonly isSecret?: true;
}

interface Setting<Value, Default> extends Words<Default> {
  /** The allowed values, in words that follow "Allowed:". */
  readonly allowed: string;
  readonly findFault: FindFault;
  /** Parses a text in which `findFault` found nothing. */
  readonly parse: (text: string) => Value;
}

function wholeNumber<Default extends number | undefined = undefined>(
  minimum: number,
  maximum: number,
  words: Words<Default>,
): Setting<number, Default> {
  const findFault = (digits: string) => {
    if (!/^\d{1,15}$/.test(digits)) return "is not a whole number";
    if (Number(digits) < minimum) return "is too small";
    return Number(digits) > maximum ? "is too large" : null;
  };
  return { ...words, allowed: `a whole number from ${minimum} to ${maximum}`, findFault, parse: Number };
}

function oneOf<const Word extends string, Default extends Word | undefined = undefined>(
  values: readonly Word[],
  words: Words<Default>,
): Setting<Word, Default> {
  return {
    ...words,
    allowed: values.join(", "),
    findFault: (word) => (values.some((one) => one === word) ? null : "is not one of the allowed values"),
    // Safe: it has no fault.
    parse: (word) => word as Word,
  };
}

/** A text that `findFault` checks. */
function text<Default extends string | undefined = undefined>(
  findFault: FindFault,
  words: Words<Default> & { readonly allowed: string },
): Setting<string, Default> {
  return { ...words, findFault, parse: String };
}

function visibleText(words: Words<undefined>): Setting<string, undefined> {
  return text(matching(/^[!-~]+$/), { ...words, allowed: "visible ASCII characters" });
}

/** A comma-separated list of texts; empty by default. */
function list(
  findFault: FindFault,
  words: Words<readonly string[]> & { readonly allowed: string },
): Setting<readonly string[], readonly string[]> {
  const parse = (entries: string) => entries.split(",").map((entry) => entry.trim());
  const faults = (entries: string) => parse(entries).map(findFault);
  return {
    ...words,
    default: [],
    findFault: (entries) => faults(entries).find((fault) => fault !== null) ?? null,
    parse,
  };
}

function matching(pattern: RegExp, fault = "has the wrong form"): FindFault {
  return (value) => (pattern.test(value) ? null : fault);
}
