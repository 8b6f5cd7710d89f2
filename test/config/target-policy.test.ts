import { describe, expect, test } from "bun:test";
import { parseAddress } from "../../src/core/addresses.ts";
import {
  describeTargetPolicy,
  checkAddress,
  checkName,
  isOwnTarget,
  mayGoPlain,
  parseTargetPolicy,
  providerPolicy,
} from "../../src/config/target-policy.ts";
import { parseTarget } from "../../src/core/target.ts";
import { LOCAL, policyWith } from "../outbound/policies.ts";

function checkTarget(policy: ReturnType<typeof policyWith>, text: string, name: string | null): string {
  const address = parseAddress(text);
  if (address === null) throw new Error(`${text} can't be read.`);
  return checkAddress(policy, address, name);
}

describe("what is listed", () => {
  test("names, ranges and addresses are read, in any case and with brackets or a trailing dot", () => {
    const entries = [
      " 10.0.0.0/8 ",
      "192.168.1.1/32",
      "[fd12::1]",
      "fd13::/16",
      "Billing.Internal.",
      "intranet",
      "localhost",
      "0.0.0.0/0",
    ];
    const policy = policyWith({ allowedPrivateTargets: entries });
    expect([policy.ranges.length, [...policy.names]]).toEqual([5, ["billing.internal", "intranet", "localhost"]]);
  });

  test.each([
    ["10.0.0.5/8", "bits set behind the prefix"],
    ["10.0.0.0/33", "not an address range"],
    ["10.0.0.0/8/8", "not an address range"],
    ["127.1", "not an address range, address or host name"],
    ["0x7f000001", "not an address range, address or host name"],
    ["2130706433", "not an address range, address or host name"],
    ["*.internal", "not an address range, address or host name"],
    ["http://billing.internal", "not an address range, address or host name"],
    ["billing.internal:80", "not an address range, address or host name"],
    ["fe80::1%eth0", "not an address range, address or host name"],
    ["", "not an address range, address or host name"],
    ["169.254.0.0/16", "can never be allowed"],
    ["fd00:ec2::254", "can never be allowed"],
    ["fe80::/10", "can never be allowed"],
    ["::ffff:10.0.0.1", "can never be allowed"],
    ["metadata.google.internal", "can never be allowed"],
    ["x.onion", "can never be allowed"],
  ])("%p is a problem, told by the setting's name", (entry, fragment) => {
    const parsed = parseTargetPolicy({ allowedPrivateTargets: [entry], loopbackAllowed: true, ownOrigins: [] });
    expect(parsed).toEqual({ problems: [expect.stringContaining(fragment)] });
    expect(parsed).toEqual({ problems: [expect.stringContaining("ALLOWED_PRIVATE_TARGETS")] });
  });

  test("all problems come at once", () => {
    const settings = {
      allowedPrivateTargets: ["*", "10.0.0.0/8", "?"],
      loopbackAllowed: true,
      ownOrigins: ["nothing", "file:///"],
    };
    expect(parseTargetPolicy(settings)).toEqual({
      problems: [expect.any(String), expect.any(String), expect.any(String)],
    });
  });

  test("the policy in force is one sentence", () => {
    expect(describeTargetPolicy(policyWith())).toBe("Calls may go to public addresses only.");
    expect(describeTargetPolicy(LOCAL)).toBe(
      "Calls may go to public addresses and to loopback (this server listens only there).",
    );
    expect(describeTargetPolicy(policyWith({ allowedPrivateTargets: ["10.0.0.0/8", "intranet"] }))).toBe(
      "Calls may go to public addresses and to 10.0.0.0/8, intranet.",
    );
  });
});

describe("an address behind a name", () => {
  test("a listed name may stand for any private address, and a listed range may stand behind any name", () => {
    const policy = policyWith({ allowedPrivateTargets: ["billing.internal", "192.168.0.0/16"] });
    expect(checkTarget(policy, "10.1.2.3", "billing.internal")).toBe("allowed");
    expect(checkTarget(policy, "10.1.2.3", "other.internal")).toBe("private");
    expect(checkTarget(policy, "10.1.2.3", "www.billing.internal")).toBe("private");
    expect(checkTarget(policy, "10.1.2.3", null)).toBe("private");
    expect(checkTarget(policy, "192.168.3.4", "www.example.com")).toBe("allowed");
    expect(checkTarget(policy, "169.254.169.254", "billing.internal")).toBe("never");
  });

  test("an address of ours is refused behind any name, also where no interface has it", () => {
    const { own } = policyWith({
      ownOrigins: ["https://203.0.113.9", "http://127.0.0.1:3000"],
      machineAddresses: () => [],
    });
    const isOwn = (url: string, text: string) => {
      const target = parseTarget(url);
      return !("refused" in target) && isOwnTarget(own, target, parseAddress(text));
    };
    for (const path of ["/v1/actions", "/%76%31/actions", "/A/token"]) {
      expect(isOwn(`https://www.example.com${path}`, "203.0.113.9"), path).toBe(true);
      expect(isOwn(`https://www.example.com${path}`, "203.0.113.10"), path).toBe(false);
    }
    expect(isOwn("https://www.example.com/hooks", "203.0.113.9")).toBe(false);
  });

  test("a provider that the operator has set may be private, and so may what is listed", () => {
    const policy = providerPolicy("https://id.internal", "OIDC_ISSUER", ["10.0.0.0/8"]);
    expect(checkTarget(policy, "192.168.0.7", "id.internal")).toBe("allowed");
    expect(checkTarget(policy, "10.0.0.7", "keys.example.com")).toBe("allowed");
    expect(checkTarget(policy, "192.168.0.7", "keys.example.com")).toBe("private");
  });

  test("loopback stands behind localhost names only", () => {
    const verdicts = ["localhost", "a.b.localhost", null, "www.example.com", "localhost.example.com"].map((name) =>
      checkTarget(LOCAL, "127.0.0.1", name),
    );
    expect(verdicts).toEqual(["allowed", "allowed", "allowed", "private", "private"]);
    expect(checkTarget(LOCAL, "10.0.0.1", "localhost")).toBe("private");
  });

  test("names are judged before anybody is asked for them", () => {
    expect(["x.onion", "metadata.google.internal", "www.example.com"].map((name) => checkName(LOCAL, name))).toEqual([
      "never",
      "never",
      "allowed",
    ]);
    expect(["intranet", "a.local", "a.internal", "a.home.arpa"].map((name) => checkName(LOCAL, name))).toEqual(
      Array.from({ length: 4 }, () => "private"),
    );
    expect(checkName(policyWith({ allowedPrivateTargets: ["10.0.0.0/8"] }), "a.internal")).toBe("allowed");
  });

  test("a credential goes without TLS only to private addresses, and to names that may have one", () => {
    const hosts = ["10.0.0.1", "8.8.8.8", "intranet", "api.example.com"];
    const plainFor = (policy: ReturnType<typeof policyWith>) =>
      hosts.filter((host) => {
        const target = parseTarget(`http://${host}/`);
        return !("refused" in target) && mayGoPlain(policy, target);
      });
    expect(plainFor(LOCAL)).toEqual(["10.0.0.1", "intranet"]);
    expect(plainFor(policyWith({ allowedPrivateTargets: ["10.0.0.0/8"] }))).toEqual([
      "10.0.0.1",
      "intranet",
      "api.example.com",
    ]);
  });
});
