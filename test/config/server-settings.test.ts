import { expect, test } from "bun:test";
import { effectiveSettings, readConfig, serverSettings, targetPolicy } from "../../src/config/config.ts";
import { settingNames } from "../../src/config/settings.ts";

const SECRETS = {
  SECRET_KEY: "5".repeat(64),
  BOOTSTRAP_API_KEY: "og_bootstrap_0123456789",
  MAILGUN_API_KEY: "mail-key-0123456789",
  OIDC_CLIENT_SECRET: "client-secret-0123",
  METRICS_TOKEN: "metrics-token-0123",
  DATABASE_AUTH_TOKEN: "database-token-0123",
};

const OTHERS = {
  DATABASE_URL: "postgres://outgate:db-password@db.internal:5432/outgate?sslmode=require",
  MAILGUN_DOMAIN: "mg.example.com",
  OIDC_ISSUER: "https://id.example.com",
  OIDC_CLIENT_ID: "outgate",
  OIDC_ALLOWED_DOMAINS: "example.com",
  RETENTION_DAYS: "30",
};

const settingsOf = (env: Readonly<Record<string, string>>) =>
  new Map(serverSettings(readConfig(env)).map((setting) => [setting.name, setting]));

test("every setting is listed with what it does, and which of them are set", () => {
  const settings = settingsOf({ RETENTION_DAYS: "30" });
  expect([...settings.keys()]).toEqual([...settingNames()]);
  for (const { description } of settings.values()) expect(description).toEndWith(".");
  expect(settings.get("RETENTION_DAYS")).toMatchObject({ value: "30", isSet: true, isSecret: false });
  expect(settings.get("PORT")).toMatchObject({ value: "3000", isSet: false });
  expect(settings.get("APPROVAL_TTL_HOURS")).toMatchObject({ value: null, isSet: false });
});

test("no secret is among the values, nor the password of the database", () => {
  const settings = settingsOf({ ...SECRETS, ...OTHERS });
  for (const name of Object.keys(SECRETS)) {
    const setting = [...settings.values()].find((one) => one.name === name);
    expect(setting).toMatchObject({ value: null, isSet: true, isSecret: true });
  }
  const text = JSON.stringify([...settings.values()]);
  for (const secret of [...Object.values(SECRETS), "db-password", "sslmode"]) expect(text).not.toContain(secret);
  expect(settings.get("DATABASE_URL")?.value).toBe("postgres://db.internal:5432/outgate");
});

test("values are those in force, and not the words of the environment", () => {
  const settings = settingsOf({ DISPATCH_CONCURRENCY: "16" });
  expect(settings.get("DISPATCH_CONCURRENCY")?.value).toBe("16");
  expect(settings.get("SIGNUPS")?.value).toBe("open until a key of the first account has a hold");
  expect(settings.get("BASE_URL")?.value).toBe("http://127.0.0.1:3000");
  expect(settings.get("AGENT_APPROVAL")?.value).toBe("elicit");
  expect(settingsOf({ APPROVERS: "@example.com" }).get("SIGNUPS")?.value).toBe("closed (by APPROVERS)");
});

const EFFECTIVE = {
  HOST: "0.0.0.0",
  ALLOWED_PRIVATE_TARGETS: "10.7.0.0/16,billing.internal",
  APPROVERS: "boss@example.com",
  SECRET_KEY: "5".repeat(64),
  BOOTSTRAP_API_KEY: "og_bootstrap_0123456789",
  MAILGUN_API_KEY: "mail-key-0123456789",
  MAILGUN_DOMAIN: "mg.example.com",
};

test("the operator's account reads what is in force; another's reads no inside name, and nobody a secret", () => {
  const config = readConfig(EFFECTIVE);
  const own = effectiveSettings(config, targetPolicy(config), true);
  expect(own.targets).toBe("Calls may go to public addresses and to 10.7.0.0/16, billing.internal.");
  expect(own).toMatchObject({ approvers: ["boss@example.com"], sendsMail: true, rateLimitPerSecond: 100 });
  const strangers = effectiveSettings(config, targetPolicy(config), false);
  expect(strangers.targets).toBe("Calls may go to public addresses and to 2 private targets that the server lists.");
  expect(strangers.approvers).toEqual(["Those that the server lists (1)."]);
  for (const inside of ["10.7", "internal", "boss"]) expect(JSON.stringify(strangers)).not.toContain(inside);
  for (const secret of ["55555", "og_bootstrap", "mail-key"]) expect(JSON.stringify(own)).not.toContain(secret);
});

test("where nothing is listed there is nothing to count", () => {
  const config = readConfig({});
  expect(effectiveSettings(config, targetPolicy(config), false)).toMatchObject({
    targets: "Calls may go to public addresses and to loopback (this server listens only there).",
    approvers: [],
    approvalTtlHours: null,
    sendsMail: false,
  });
});
