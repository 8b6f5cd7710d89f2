import { expect, test } from "bun:test";
import { createEffectiveSettings, targetPolicyOf, readConfig } from "../../src/config/config.ts";
import { anAccount } from "../support/factory.ts";
import { ownerOf } from "../support/owner.ts";

const ENV = {
  HOST: "0.0.0.0",
  ALLOWED_PRIVATE_TARGETS: "10.7.0.0/16,billing.internal",
  APPROVERS: "boss@example.com",
  SECRET_KEY: "5".repeat(64),
  BOOTSTRAP_API_KEY: "og_bootstrap_0123456789",
  MAILGUN_API_KEY: "mail-key-0123456789",
  MAILGUN_DOMAIN: "mg.example.com",
};

test("the operator's account reads what is in force; another's reads no inside name, and nobody a secret", async () => {
  const config = readConfig(ENV);
  const first = anAccount();
  const settingsFor = createEffectiveSettings(config, targetPolicyOf(config), { first: async () => first });
  const own = await settingsFor(ownerOf(first.id));
  expect(own.targets).toBe("Calls may go to public addresses and to 10.7.0.0/16, billing.internal.");
  expect(own).toMatchObject({ approvers: ["boss@example.com"], sendsMail: true, rateLimitPerSecond: 100 });
  const strangers = await settingsFor(ownerOf("acc_stranger"));
  expect(strangers.targets).toBe("Calls may go to public addresses and to 2 private targets that the server lists.");
  expect(strangers.approvers).toEqual(["Those that the server lists (1)."]);
  for (const inside of ["10.7", "internal", "boss"]) expect(JSON.stringify(strangers)).not.toContain(inside);
  for (const secret of ["55555", "og_bootstrap", "mail-key"]) expect(JSON.stringify(own)).not.toContain(secret);
});

test("where nothing is listed there is nothing to count", async () => {
  const config = readConfig({});
  const settingsFor = createEffectiveSettings(config, targetPolicyOf(config), { first: async () => null });
  expect(await settingsFor(ownerOf("acc_any"))).toMatchObject({
    targets: "Calls may go to public addresses and to loopback (this server listens only there).",
    approvers: [],
    approvalTtlHours: null,
    sendsMail: false,
  });
});
