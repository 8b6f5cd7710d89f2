import { expect, test } from "bun:test";
import { effectiveSettings, targetPolicyOf, readConfig } from "../../src/config/config.ts";

const ENV = {
  HOST: "0.0.0.0",
  ALLOWED_PRIVATE_TARGETS: "10.7.0.0/16,billing.internal",
  APPROVERS: "boss@example.com",
  SECRET_KEY: "5".repeat(64),
  BOOTSTRAP_API_KEY: "og_bootstrap_0123456789",
  MAILGUN_API_KEY: "mail-key-0123456789",
  MAILGUN_DOMAIN: "mg.example.com",
};

test("the operator's account reads what is in force; another's reads no inside name, and nobody a secret", () => {
  const config = readConfig(ENV);
  const own = effectiveSettings(config, targetPolicyOf(config), true);
  expect(own.targets).toBe("Calls may go to public addresses and to 10.7.0.0/16, billing.internal.");
  expect(own).toMatchObject({ approvers: ["boss@example.com"], sendsMail: true, rateLimitPerSecond: 100 });
  const strangers = effectiveSettings(config, targetPolicyOf(config), false);
  expect(strangers.targets).toBe("Calls may go to public addresses and to 2 private targets that the server lists.");
  expect(strangers.approvers).toEqual(["Those that the server lists (1)."]);
  for (const inside of ["10.7", "internal", "boss"]) expect(JSON.stringify(strangers)).not.toContain(inside);
  for (const secret of ["55555", "og_bootstrap", "mail-key"]) expect(JSON.stringify(own)).not.toContain(secret);
});

test("where nothing is listed there is nothing to count", () => {
  const config = readConfig({});
  expect(effectiveSettings(config, targetPolicyOf(config), false)).toMatchObject({
    targets: "Calls may go to public addresses and to loopback (this server listens only there).",
    approvers: [],
    approvalTtlHours: null,
    sendsMail: false,
  });
});
