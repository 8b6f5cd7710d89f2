import {
  databasePlace,
  isLoopbackAddress,
  isLoopbackUrl,
  isPostgresUrl,
  isRemote,
  listenAddress,
  localUrl,
  readDatabase,
  readKey,
  type SignUps,
} from "./values.ts";
import { urlOrigin } from "../core/target.ts";
import { describeTargetPolicy, parseTargetPolicy, type TargetPolicy } from "./target-policy.ts";
import { COMMIT } from "./commit.ts";
import {
  type EnvironmentSettings,
  misspeltIn,
  readSettings,
  type SettingName,
  settingNames,
  SETTINGS,
  type Texts,
  settingTexts,
} from "./settings.ts";
import manifest from "../../package.json" with { type: "json" };
import { CALLBACKS_IN_FLIGHT_MAX, MAILS_IN_FLIGHT_MAX } from "../core/limits.ts";

/** The validated settings. They contain secrets: never log them as a whole. */
export type Config = Readonly<ReturnType<typeof toConfig>>;

/** Invalid settings. The message names each on a line of its own and never contains secrets. */
export class InvalidSettings extends Error {
  override readonly name = "InvalidSettings";
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(["The settings can't be used:", ...problems].join("\n- "));
    this.problems = problems;
  }
}

export type Env = Readonly<Record<string, string | undefined>>;

/** Reads the settings from the environment, and warns of variables that look like one. Throws `InvalidSettings`. */
export function readConfig(env: Env): Config {
  const texts = settingTexts(env);
  const fetchesMax = readFetchesMax(env["BUN_CONFIG_MAX_HTTP_REQUESTS"]);
  const read = readSettings(texts);
  const problems = [
    ...("problems" in read ? read.problems : []),
    ...problemsBetween(texts, env["NODE_TLS_REJECT_UNAUTHORIZED"], fetchesMax),
  ];
  if ("problems" in read || problems.length > 0) throw new InvalidSettings(problems);
  const config = toConfig(read.settings, texts, fetchesMax);
  const misspelt = misspeltIn(env).map(([name, meant]) => `${name} is no setting and has no effect. ${meant} is one.`);
  return { ...config, warnings: [...config.warnings, ...misspelt] };
}

/** The settings with the actual port, for `PORT=0`. Changes the local base URL too. */
export function listeningOn(config: Config, port: number): Config {
  return { ...config, port, baseUrl: config.isBaseUrlSet ? config.baseUrl : localUrl(config.host, port) };
}

function toConfig(settings: EnvironmentSettings, texts: Texts, fetchesMax: number) {
  const host = listenAddress(settings.HOST);
  const baseUrl = settings.BASE_URL === undefined ? null : new URL(urlOrigin(settings.BASE_URL));
  const isOnLoopback = isLoopbackAddress(host) && (baseUrl === null || isLoopbackUrl(baseUrl));
  const dispatchConcurrency = attemptConcurrency(settings, texts, fetchesMax);
  return {
    /** 0: any free port, which `listeningOn` fills in. */
    port: settings.PORT,
    /** An address without brackets, or a name; never `localhost`. */
    host,
    /** The public URL, without a trailing slash: BASE_URL, or an address that works on this machine. */
    baseUrl: baseUrl?.origin ?? localUrl(host, settings.PORT),
    isBaseUrlSet: baseUrl !== null,
    /** HOST is loopback and BASE_URL is unset or loopback. */
    isOnLoopback,
    database: readDatabase(settings.DATABASE_URL, settings.DATABASE_AUTH_TOKEN ?? null),
    /** 32 bytes; null: the key file next to the database. */
    secretKey: settings.SECRET_KEY === undefined ? null : readKey(settings.SECRET_KEY),
    bootstrapApiKey: settings.BOOTSTRAP_API_KEY ?? null,
    signUps: signUpsSetting(settings, isOnLoopback),
    trustedProxies: settings.TRUSTED_PROXIES,
    /** Per account; 0: no limit. */
    rateLimitPerSecond: settings.RATE_LIMIT_PER_SECOND,
    mcpSessionsPerAccount: settings.MCP_SESSIONS_PER_ACCOUNT,
    attemptTimeoutMs: settings.ATTEMPT_TIMEOUT_MS,
    retryBaseMs: settings.RETRY_BASE_MS,
    retryCapMs: settings.RETRY_CAP_MS,
    /** Concurrent attempts. With callbacks and mails, at most as many as Bun allows fetches. */
    dispatchConcurrency,
    dispatchPerHost: settings.DISPATCH_PER_HOST,
    keepsConnections: settings.KEEP_CONNECTIONS === "on",
    ...notificationConcurrency(dispatchConcurrency, fetchesMax),
    /** null: finished actions are kept for ever. */
    retentionDays: settings.RETENTION_DAYS ?? null,
    allowedPrivateTargets: settings.ALLOWED_PRIVATE_TARGETS,
    approvalLinks: settings.APPROVAL_LINKS,
    /** Addresses and `@domain`s in lower case; empty: anyone. */
    approvers: settings.APPROVERS.map((approver) => approver.toLowerCase()),
    /** null: held actions never expire. */
    approvalTtlHours: settings.APPROVAL_TTL_HOURS ?? null,
    agentApproval: settings.AGENT_APPROVAL ?? (isOnLoopback ? "elicit" : "off"),
    /** null: no mail is sent. */
    mail: mailSettings(settings),
    /** null: people log in by password only. */
    oidc: oidcSettings(settings),
    /** null: clients of /mcp need a key. */
    oauth: oauthSetting(settings, baseUrl),
    /** null: /metrics needs no token. */
    metricsToken: settings.METRICS_TOKEN ?? null,
    /** null: /metrics is served at `port`. */
    metricsPort: settings.METRICS_PORT ?? null,
    logLevel: settings.LOG_LEVEL,
    logFormat: settings.LOG_FORMAT,
    /** All of them, as they are given. */
    settings,
    given: new Set(Object.keys(texts)),
    /** Notices for the operator about settings that are valid but probably not intended. */
    warnings: configWarnings(settings, { host, baseUrl, dispatchConcurrency, fetchesMax }),
  };
}

/** Trying Outgate out needs no setting; with approvers set, no new account may send without them. */
function signUpsSetting({ SIGNUPS, APPROVERS, AGENT_APPROVAL }: EnvironmentSettings, isOnLoopback: boolean): SignUps {
  if (SIGNUPS === "open") return "open";
  if (SIGNUPS === "closed") return { closedBy: "SIGNUPS" };
  if (!isOnLoopback) return { closedBy: "HOST" };
  if (APPROVERS.length > 0) return { closedBy: "APPROVERS" };
  return AGENT_APPROVAL === "off" ? { closedBy: "AGENT_APPROVAL" } : "until_hold";
}

/** Problems between two settings, or between a setting and Bun's variables. */
function problemsBetween(texts: Texts, tlsCheck: string | undefined, fetchesMax: number): readonly string[] {
  const { PORT: port = "3000", METRICS_PORT: metricsPort, DATABASE_URL: database = "" } = texts;
  const attemptsMax = fetchesMax - NOTIFICATIONS_MIN;
  return textsWhere([
    [
      // A key file lies beside the database file.
      isRemote(database) && !isPostgresUrl(database) && texts.SECRET_KEY === undefined,
      "SECRET_KEY is not set, and a database on another machine needs it. Make one: openssl rand -base64 32.",
    ],
    [
      isPostgresUrl(database) && texts.SECRET_KEY === undefined,
      "SECRET_KEY is not set, and a PostgreSQL database needs it, the same on every node. Make one: openssl rand -base64 32.",
    ],
    [
      // A key without a domain can't send, though the operator expects mail to work.
      texts.MAILGUN_API_KEY !== undefined && texts.MAILGUN_DOMAIN === undefined,
      "MAILGUN_DOMAIN is not set, and MAILGUN_API_KEY needs it. Set both or neither.",
    ],
    ...OIDC_SETTINGS.map((name): readonly [boolean, string] => [
      texts[name] === undefined && OIDC_SETTINGS.some((other) => texts[other] !== undefined),
      `${name} is not set. Set all of ${OIDC_SETTINGS.join(", ")}, or none.`,
    ]),
    [
      texts.OAUTH === "on" && !mayUseOAuth(texts),
      "OAUTH is on, and BASE_URL is neither https:// nor loopback: tokens could be read on the way. Put TLS in front and set BASE_URL, or unset OAUTH.",
    ],
    [
      texts.OAUTH_REGISTRATION === "on" && texts.OAUTH === "off",
      "OAUTH_REGISTRATION is on, and OAUTH is off. Unset one of them.",
    ],
    [metricsPort === port && /^\d+$/.test(port), "METRICS_PORT is the same as PORT. Choose another, or unset it."],
    [
      // False for a text that is no number, which is reported separately.
      Number(texts.DISPATCH_CONCURRENCY) > attemptsMax,
      `DISPATCH_CONCURRENCY is above ${attemptsMax}: of the ${fetchesMax} calls that Bun makes at a time, callbacks and mails need ${NOTIFICATIONS_MIN}. Lower it, or start with a higher BUN_CONFIG_MAX_HTTP_REQUESTS in the environment (npm start sets 1024).`,
    ],
    [
      // Only "0" disables the check in Bun; "false", "no" and "00" do not.
      tlsCheck === "0",
      "NODE_TLS_REJECT_UNAUTHORIZED=0 switches the check of certificates off for every call. Unset it.",
    ],
  ]);
}

interface Derived {
  readonly host: string;
  readonly baseUrl: URL | null;
  readonly dispatchConcurrency: number;
  readonly fetchesMax: number;
}

function configWarnings(settings: EnvironmentSettings, { host, baseUrl, dispatchConcurrency, fetchesMax }: Derived) {
  const { DISPATCH_CONCURRENCY: wanted, MAILGUN_API_KEY, MAILGUN_DOMAIN, MAILGUN_FROM } = settings;
  return textsWhere([
    [
      baseUrl === null && !isLoopbackAddress(host),
      "HOST is public and BASE_URL is not set: links in mails and answers work on this machine only. Set BASE_URL.",
    ],
    [
      baseUrl !== null && baseUrl.protocol !== "https:" && !isLoopbackUrl(baseUrl),
      "BASE_URL is http://: keys, sessions and approval links can be read on the way. Put TLS in front.",
    ],
    [
      // Outgate serves no TLS itself, so an https BASE_URL means a proxy.
      baseUrl?.protocol === "https:" && settings.TRUSTED_PROXIES.length === 0,
      "BASE_URL is https:// and TRUSTED_PROXIES is not set: all clients behind the proxy count as one at login. Set it to the proxy's address.",
    ],
    [
      MAILGUN_API_KEY === undefined && (MAILGUN_DOMAIN ?? MAILGUN_FROM) !== undefined,
      "MAILGUN_API_KEY is not set: no mail is sent, whatever the other MAILGUN settings say.",
    ],
    [
      dispatchConcurrency !== wanted,
      `Bun makes ${fetchesMax} calls at a time, so DISPATCH_CONCURRENCY is ${dispatchConcurrency} instead of ${wanted}. Start with a higher BUN_CONFIG_MAX_HTTP_REQUESTS (npm start sets 1024).`,
    ],
  ]);
}

function textsWhere(rules: readonly (readonly [applies: boolean, text: string])[]): readonly string[] {
  return rules.flatMap(([applies, text]) => (applies ? [text] : []));
}

export const VERSION: string = manifest.version;

/** Version and commit, the same everywhere. */
export const RELEASE = { version: VERSION, commit: COMMIT } as const;

export type Release = typeof RELEASE;

/** The `User-Agent` of every call. */
export const USER_AGENT = `Outgate/${VERSION}`;

/** "0.2.0 (1a2b3c4d5e6f)", or without the commit if it is unknown. */
export function releaseText({ version, commit }: Release): string {
  return commit === null ? version : `${version} (${commit.slice(0, COMMIT_CHARS_SHOWN)})`;
}

const COMMIT_CHARS_SHOWN = 12;

/** null: no key is set, so no mail is sent. */
function mailSettings(settings: EnvironmentSettings) {
  const { MAILGUN_API_KEY: apiKey, MAILGUN_DOMAIN: domain, MAILGUN_FROM: from, MAILGUN_URL: url } = settings;
  if (apiKey === undefined || domain === undefined) return null;
  return { apiKey, domain, from: from ?? `Outgate <outgate@${domain}>`, url: new URL(url).origin };
}

/** Whether tokens travel encrypted or on this machine only. True for a text that is no URL, which is reported separately. */
function mayUseOAuth({ BASE_URL: baseUrl, HOST: host = "127.0.0.1" }: Texts): boolean {
  if (baseUrl === undefined) return isLoopbackAddress(listenAddress(host));
  const url = URL.parse(baseUrl);
  return url === null || url.protocol === "https:" || isLoopbackUrl(url);
}

/** On by default only if hosted clients can reach it, because some clients ignore a configured key once OAuth is announced. */
function oauthSetting({ OAUTH, OAUTH_REGISTRATION }: EnvironmentSettings, baseUrl: URL | null) {
  const isOn = OAUTH === undefined ? baseUrl?.protocol === "https:" : OAUTH === "on";
  return isOn ? { registration: OAUTH_REGISTRATION === "on" } : null;
}

/** null: not set. `problemsBetween` refuses a part of the settings. */
function oidcSettings(settings: EnvironmentSettings) {
  const { OIDC_ISSUER: issuer, OIDC_CLIENT_ID: clientId, OIDC_CLIENT_SECRET: clientSecret } = settings;
  if (issuer === undefined || clientId === undefined || clientSecret === undefined) return null;
  const allowedDomains = settings.OIDC_ALLOWED_DOMAINS.map((domain) => domain.toLowerCase());
  return { issuer, clientId, clientSecret, allowedDomains };
}

const OIDC_SETTINGS = ["OIDC_ISSUER", "OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_ALLOWED_DOMAINS"] as const;

/** Bun's own limit if BUN_CONFIG_MAX_HTTP_REQUESTS is unset or invalid. */
const BUN_FETCHES_DEFAULT = 256;

const BUN_FETCHES_MAX = 65_535;

/** Fetches kept free: one for callbacks and one for mails. */
const NOTIFICATIONS_MIN = 2;

/**
 * How many fetches Bun makes at once. Further ones wait inside Bun while their deadline runs, so slow targets would make
 * healthy ones time out (measured: 2.4 s behind 256 slow ones). Bun reads the variable only when it starts.
 */
function readFetchesMax(text: string | undefined): number {
  const count = /^\d{1,5}$/.test(text ?? "") ? Number(text) : 0;
  return count >= 1 && count <= BUN_FETCHES_MAX ? count : BUN_FETCHES_DEFAULT;
}

/** Concurrent attempts. The default leaves a quarter of Bun's fetches to mails and callbacks. */
function attemptConcurrency(settings: EnvironmentSettings, texts: Texts, fetchesMax: number): number {
  if (texts.DISPATCH_CONCURRENCY !== undefined) return settings.DISPATCH_CONCURRENCY;
  return Math.min(settings.DISPATCH_CONCURRENCY, Math.max(1, Math.floor(fetchesMax * 0.75)));
}

/** Concurrent callbacks and mails: the fetches that attempts leave free, at least one of each. */
function notificationConcurrency(dispatchConcurrency: number, fetchesMax: number) {
  const left = fetchesMax - dispatchConcurrency;
  const mailConcurrency = Math.max(1, Math.min(MAILS_IN_FLIGHT_MAX, Math.floor(left / 8)));
  const callbackConcurrency = Math.max(1, Math.min(CALLBACKS_IN_FLIGHT_MAX, left - mailConcurrency));
  return { callbackConcurrency, mailConcurrency };
}

/** The target policy of the settings. Throws an error for the operator that names invalid entries. */
export function targetPolicy(config: Config): TargetPolicy {
  const policy = parseTargetPolicy({
    allowedPrivateTargets: config.allowedPrivateTargets,
    loopbackAllowed: config.isOnLoopback,
    ownOrigins: [config.baseUrl, ...listeningOrigins(config)],
    testOrigins: testOrigins(config),
  });
  if ("problems" in policy) throw new InvalidSettings(policy.problems);
  return policy;
}

/** A loopback BASE_URL is the host machine's: in a container, its port may differ from ours, and its name may not resolve. */
function testOrigins(config: Config): ReadonlyMap<string, string> {
  const here = localUrl(config.host, config.port);
  const baseUrlFromHere = isLoopbackUrl(new URL(config.baseUrl)) ? here : config.baseUrl;
  return new Map([
    ...listeningOrigins(config).map((origin) => [origin, here] as const),
    [config.baseUrl, baseUrlFromHere],
  ]);
}

/** The origins at which this machine reaches the service. */
function listeningOrigins({ host, port }: Config): readonly string[] {
  const hosts = ["127.0.0.1", "[::1]", "localhost", host.includes(":") ? `[${host}]` : host];
  return hosts.map((name) => `http://${name}:${port}`);
}

export type EffectiveSettings = ReturnType<typeof effectiveSettings>;

/**
 * The settings in force, as a caller may see them. The first account is the operator's and sees everything; for others, who may
 * be strangers, internal names and addresses are only counted.
 */
export function effectiveSettings(config: Config, policy: TargetPolicy, isOperator: boolean) {
  const { attemptTimeoutMs, retryBaseMs, retryCapMs, approvalTtlHours, approvalLinks, agentApproval } = config;
  const { approvers, retentionDays, rateLimitPerSecond } = config;
  return {
    attemptTimeoutMs,
    retryBaseMs,
    retryCapMs,
    approvalTtlHours,
    approvalLinks,
    agentApproval,
    retentionDays,
    rateLimitPerSecond,
    sendsMail: config.mail !== null,
    /** Every setting by its name; null for people who can't see them. */
    all: isOperator ? serverSettings(config) : null,
    /** A sentence: where calls may go. */
    targets: describeTargetPolicy(isOperator ? policy : { ...policy, listed: countOnly(policy.listed) }),
    /** A count instead of the names for people who may not see them; empty: anyone. */
    approvers:
      isOperator || approvers.length === 0 ? approvers : [`Those that the server lists (${approvers.length}).`],
  };
}

function countOnly({ length }: readonly string[]): readonly string[] {
  return length === 0 ? [] : [`${length} private ${length === 1 ? "target" : "targets"} that the server lists`];
}

export interface ServerSetting {
  readonly name: SettingName;
  /** The value in force, in words or as given; null if there is none or it is a secret. */
  readonly value: string | null;
  /** Whether the environment sets it; otherwise it is the default. */
  readonly isSet: boolean;
  readonly isSecret: boolean;
  /** One sentence: what it sets, and what happens if it is unset. */
  readonly description: string;
}

/** Reads the settings of which another value than the given one may be in force. */
const IN_FORCE: Readonly<Partial<Record<SettingName, (config: Config) => SettingValue>>> = {
  PORT: ({ port }) => port,
  HOST: ({ host }) => host,
  BASE_URL: ({ baseUrl }) => baseUrl,
  // A database URL contains its password, perhaps as a parameter.
  DATABASE_URL: ({ database }) => (database.kind === "file" ? database.url : databasePlace(database)),
  SIGNUPS: ({ signUps }) => signUpsText(signUps),
  DISPATCH_CONCURRENCY: ({ dispatchConcurrency }) => dispatchConcurrency,
  APPROVERS: ({ approvers }) => approvers,
  AGENT_APPROVAL: ({ agentApproval }) => agentApproval,
  MAILGUN_DOMAIN: ({ mail }) => mail?.domain,
  MAILGUN_FROM: ({ mail }) => mail?.from,
  MAILGUN_URL: ({ mail }) => mail?.url,
  OIDC_ALLOWED_DOMAINS: ({ oidc }) => oidc?.allowedDomains,
  OAUTH: ({ oauth }) => (oauth === null ? "off" : "on"),
  OAUTH_REGISTRATION: ({ oauth }) => (oauth?.registration === true ? "on" : "off"),
};

type SettingValue = EnvironmentSettings[SettingName];

/** Every setting in the order of `.env.example`, without secrets. */
export function serverSettings(config: Config): readonly ServerSetting[] {
  return settingNames().map((name) => {
    const { description, isSecret = false } = SETTINGS[name];
    const read = isSecret ? () => undefined : (IN_FORCE[name] ?? (({ settings }) => settings[name]));
    const value = [read(config) ?? []].flat().join(", ");
    return { name, value: value === "" ? null : value, isSet: config.given.has(name), isSecret, description };
  });
}

function signUpsText(signUps: Config["signUps"]): string {
  if (typeof signUps !== "string") return `closed (by ${signUps.closedBy})`;
  return signUps === "open" ? "open" : "open until a key of the first account has a hold";
}
