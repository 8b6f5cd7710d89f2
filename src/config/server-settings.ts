import type { Config } from "./config.ts";
import { type SettingName, settingNames, SETTINGS } from "./settings.ts";
import { databasePlace } from "./values.ts";

export interface ServerSetting {
  readonly name: SettingName;
  /** What is in force, in words or as it was given; null: nothing, or a secret. */
  readonly value: string | null;
  /** The environment has it; otherwise it is the default. */
  readonly isSet: boolean;
  readonly isSecret: boolean;
  /** One sentence: what it is, and what it means to leave it unset. */
  readonly description: string;
}

/** The value in force of each setting; a new one must say whether it is a secret. */
const VALUES: Readonly<Record<SettingName, ((config: Config) => string | number | null) | "secret">> = {
  PORT: ({ port }) => port,
  HOST: ({ host }) => host,
  BASE_URL: ({ baseUrl }) => baseUrl,
  // The password of a database is part of its URL, also as a parameter.
  DATABASE_URL: ({ database }) => (database.kind === "file" ? database.url : databasePlace(database)),
  DATABASE_AUTH_TOKEN: "secret",
  SECRET_KEY: "secret",
  BOOTSTRAP_API_KEY: "secret",
  SIGNUPS: ({ signUps }) => signUpsText(signUps),
  TRUSTED_PROXIES: ({ trustedProxies }) => listText(trustedProxies),
  RATE_LIMIT_PER_SECOND: ({ rateLimitPerSecond }) => rateLimitPerSecond ?? 0,
  MCP_SESSIONS_PER_ACCOUNT: ({ mcpSessionsPerAccount }) => mcpSessionsPerAccount,
  ATTEMPT_TIMEOUT_MS: ({ attemptTimeoutMs }) => attemptTimeoutMs,
  RETRY_BASE_MS: ({ retryBaseMs }) => retryBaseMs,
  RETRY_CAP_MS: ({ retryCapMs }) => retryCapMs,
  DISPATCH_CONCURRENCY: ({ dispatchConcurrency }) => dispatchConcurrency,
  DISPATCH_PER_HOST: ({ dispatchPerHost }) => dispatchPerHost,
  KEEP_CONNECTIONS: ({ keepsConnections }) => (keepsConnections ? "on" : "off"),
  RETENTION_DAYS: ({ retentionDays }) => retentionDays,
  ALLOWED_PRIVATE_TARGETS: ({ allowedPrivateTargets }) => listText(allowedPrivateTargets),
  APPROVAL_LINKS: ({ approvalLinks }) => approvalLinks,
  APPROVERS: ({ approvers }) => listText(approvers),
  APPROVAL_TTL_HOURS: ({ approvalTtlHours }) => approvalTtlHours,
  AGENT_APPROVAL: ({ agentApproval }) => agentApproval,
  MAILGUN_API_KEY: "secret",
  MAILGUN_DOMAIN: ({ mail }) => mail?.domain ?? null,
  MAILGUN_FROM: ({ mail }) => mail?.from ?? null,
  MAILGUN_URL: ({ mail }) => mail?.url ?? null,
  OIDC_ISSUER: ({ oidc }) => oidc?.issuer ?? null,
  OIDC_CLIENT_ID: ({ oidc }) => oidc?.clientId ?? null,
  OIDC_CLIENT_SECRET: "secret",
  OIDC_ALLOWED_DOMAINS: ({ oidc }) => listText(oidc?.allowedDomains ?? []),
  OAUTH: ({ oauth }) => (oauth === null ? "off" : "on"),
  OAUTH_REGISTRATION: ({ oauth }) => (oauth?.registration === true ? "on" : "off"),
  METRICS_TOKEN: "secret",
  METRICS_PORT: ({ metricsPort }) => metricsPort,
  LOG_LEVEL: ({ logLevel }) => logLevel,
  LOG_FORMAT: ({ logFormat }) => logFormat,
};

export function isSecretSetting(name: SettingName): boolean {
  return VALUES[name] === "secret";
}

/** Every setting in the order of `.env.example`, without secrets. */
export function serverSettings(config: Config): readonly ServerSetting[] {
  return settingNames().map((name) => {
    const read = VALUES[name];
    const value = read === "secret" ? null : read(config);
    return {
      name,
      value: value === null ? null : String(value),
      isSet: config.given.has(name),
      isSecret: read === "secret",
      description: SETTINGS[name].description,
    };
  });
}

function listText(entries: readonly string[]): string | null {
  return entries.length === 0 ? null : entries.join(", ");
}

function signUpsText(signUps: Config["signUps"]): string {
  if (typeof signUps !== "string") return `closed (by ${signUps.closedBy})`;
  return signUps === "open" ? "open" : "open until a key of the first account has a hold";
}
