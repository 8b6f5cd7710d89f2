import { expect, test } from "bun:test";
import { readConfig, serverSettings } from "../../src/config/config.ts";
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
  const settings = settingsOf(OTHERS_ONLY);
  expect([...settings.keys()]).toEqual([...settingNames()]);
  for (const { description } of settings.values()) expect(description).toEndWith(".");
  expect(settings.get("RETENTION_DAYS")).toMatchObject({ value: "30", isSet: true, isSecret: false });
  expect(settings.get("PORT")).toMatchObject({ value: "3000", isSet: false });
  expect(settings.get("APPROVAL_TTL_HOURS")).toMatchObject({ value: null, isSet: false });
});

const OTHERS_ONLY = { RETENTION_DAYS: "30" };

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
