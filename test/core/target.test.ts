import { describe, expect, test } from "bun:test";
import { checkTarget, reachedTarget } from "../../src/config/target-policy.ts";
import { parseTarget } from "../../src/core/target.ts";
import { accepts, CLOSED, refuses, verdict } from "../outbound/checking.ts";
import { policyWith } from "../outbound/policies.ts";
import { words } from "../support/words.ts";

const OPEN = policyWith({
  allowedPrivateTargets: ["10.0.0.0/8", "100.64.0.0/10", "fd12::/16", "billing.internal", "192.168.7.7"],
  loopbackAllowed: true,
  ownOrigins: ["http://127.0.0.1:3000", "https://outgate.example.com"],
});

describe("where it leads", () => {
  test("metadata and link-local addresses are refused in every spelling", () => {
    const urls = words(`
      http://169.254.169.254/latest/meta-data http://2852039166/ http://0xA9FEA9FE/ http://0xa9.0xfe.0xa9.0xfe/
      http://0251.0376.0251.0376/ http://169.254.43518/ http://１６９.254.169.254/ http://%31%36%39.254.169.254/
      http://169.254.169.254./ http://169。254。169。254/ http://[::ffff:a9fe:a9fe]/
      http://[::ffff:169.254.169.254]/ http://[::a9fe:a9fe]/ http://[64:ff9b::a9fe:a9fe]/
      http://[2002:a9fe:a9fe::]/ http://[2001:0:a9fe:a9fe::]/ http://[fe80::1]/ http://[ff02::1]/
    `);
    refuses(urls, "never allowed", CLOSED);
    refuses(urls, "never allowed", OPEN);
  });

  test("this-network, the other metadata services and multicast are refused, listed or not", () => {
    const urls = ["http://0/", "http://0.0.0.0/", "http://[::]/", "http://[fd00:ec2::254]/", "http://168.63.129.16/"];
    const more = [
      "http://100.100.100.200/",
      "http://[fd20:ce::254]/",
      "http://224.0.0.1/",
      "http://255.255.255.255/",
      "http://192.0.0.192/",
    ];
    const wide = policyWith({ allowedPrivateTargets: ["0.0.0.0/0", "::/0"], loopbackAllowed: true });
    refuses([...urls, ...more], "never allowed", CLOSED);
    refuses([...urls, ...more], "never allowed", wide);
    accepts({ "http://10.1.2.3/": "10.1.2.3", "http://[fd12::1]/": "[fd12::1]" }, wide);
  });

  test("private addresses pass only where they are listed, and the refusal names the setting", () => {
    const urls = ["http://10.1.2.3/", "http://100.64.0.1/", "http://[fd12::1]/", "http://192.168.7.7:8080/"];
    refuses(urls, "ALLOWED_PRIVATE_TARGETS", CLOSED);
    refuses(
      ["http://192.168.7.8/", "http://[fd13::1]/", "http://172.16.0.1/", "http://192.0.2.1/"],
      "ALLOWED_PRIVATE_TARGETS",
      OPEN,
    );
    accepts(
      {
        "http://10.1.2.3/": "10.1.2.3",
        "http://0xa010203/": "10.1.2.3",
        "http://100.64.0.1/": "100.64.0.1",
        "http://[FD12::0:1]/": "[fd12::1]",
        "http://192.168.7.7:8080/": "192.168.7.7:8080",
      },
      OPEN,
    );
  });

  test("loopback passes only while it is allowed, as literal and as localhost", () => {
    const urls = {
      "http://127.0.0.1:9/": "127.0.0.1:9",
      "http://127.1/": "127.0.0.1",
      "http://2130706433/": "127.0.0.1",
      "http://127.255.255.254/": "127.255.255.254",
      "http://[::1]/": "[::1]",
      "http://localhost/": "localhost",
      "http://LOCALHOST./": "localhost",
      "http://foo.localhost/": "foo.localhost",
    };
    refuses(Object.keys(urls), "ALLOWED_PRIVATE_TARGETS", CLOSED);
    refuses(["http://localhost/"], "ALLOWED_PRIVATE_TARGETS", policyWith({ allowedPrivateTargets: ["10.0.0.0/8"] }));
    accepts(urls, OPEN);
    accepts({ "http://localhost/": "localhost" }, policyWith({ allowedPrivateTargets: ["127.0.0.1"] }));
    accepts({ "http://localhost/": "localhost" }, policyWith({ allowedPrivateTargets: ["localhost"] }));
  });

  test("metadata and onion names are never allowed", () => {
    refuses(
      ["http://metadata.google.internal/", "http://METADATA.google.internal./", "http://abc.onion/"],
      "never allowed",
      OPEN,
    );
  });

  test("private names pass when they, or any range, are listed", () => {
    const urls = ["http://billing.internal/", "http://printer.local/", "http://nas.home.arpa/", "http://intranet/"];
    refuses(urls, "ALLOWED_PRIVATE_TARGETS", CLOSED);
    const named = policyWith({ allowedPrivateTargets: ["billing.internal"] });
    refuses(urls.slice(1), "ALLOWED_PRIVATE_TARGETS", named);
    accepts({ "http://Billing.Internal./": "billing.internal" }, named);
    expect(urls.map((url) => "refused" in checkTarget(OPEN, url))).toEqual(urls.map(() => false));
  });

  test("public addresses and names pass", () => {
    accepts({
      "https://api.example.com/v1/actions": "api.example.com",
      "http://8.8.8.8/": "8.8.8.8",
      "http://[2606:4700:4700::1111]:8443/": "[2606:4700:4700::1111]:8443",
      "http://internal.example.com/": "internal.example.com",
      "http://localhost.example.com/": "localhost.example.com",
    });
  });

  test("our own origin is refused at every name of ours, but for the test path", () => {
    const own = words(`
      http://127.0.0.1:3000/v1/actions http://127.0.0.1:3000/v1 http://localhost:3000/auth/login
      http://x.localhost:3000/mcp http://[::1]:3000/a/token http://127.9.9.9:3000/v1/ http://2130706433:3000/v1/
      http://127.0.0.1:3000/x/../v1/actions http://127.0.0.1:3000/%761/actions http://127.0.0.1:3000/V1/actions
      https://outgate.example.com/v1/actions https://OUTGATE.example.com.:443/mcp?x
      http://outgate.example.com/v1/actions http://127.0.0.1:3000/ http://127.0.0.1:3000/v10
      http://127.0.0.1:3000/r/token http://localhost:3000/hooks http://127.0.0.1:3000/health/
      http://127.0.0.1:3000/health?x http://127.0.0.1:3000/healt%68 https://outgate.example.com/keys
      http://outgate.example.com:3000/keys
    `);
    refuses(own, "Leads back to this service", OPEN);
    accepts(
      {
        "http://127.0.0.1:3000/health": "127.0.0.1:3000",
        "http://127.0.0.1:3000/x/../health#part": "127.0.0.1:3000",
        "https://outgate.example.com/health": "outgate.example.com",
        "http://127.0.0.1:3001/v1/actions": "127.0.0.1:3001",
        "https://outgate.example.com:8443/v1": "outgate.example.com:8443",
        "https://other.example.com/v1/actions": "other.example.com",
        "http://127.0.0.1:3001/%": "127.0.0.1:3001",
      },
      OPEN,
    );
  });

  test("our own test path is allowed where we listen and at BASE_URL, and nothing else of a private address", () => {
    const own = ["http://127.0.0.1:3000", "http://[::1]:80", "http://localhost:8080", "https://gate.internal"];
    const testOrigins = new Map(own.map((origin) => [origin, "http://127.0.0.1:3000"]));
    const container = policyWith({ ownOrigins: own, testOrigins });
    accepts(
      {
        "http://127.0.0.1:3000/health": "127.0.0.1:3000",
        "http://[::1]/health#x": "[::1]",
        "http://localhost:8080/health": "localhost:8080",
        "https://gate.internal/health": "gate.internal",
      },
      container,
    );
    const elsewhere = ["http://127.0.0.1:3001/health", "https://127.0.0.1:3000/health", "http://gate.internal/health"];
    refuses(elsewhere, "ALLOWED_PRIVATE_TARGETS", container);
    refuses(["http://localhost:3000/health"], "ALLOWED_PRIVATE_TARGETS", container);
    const at = (url: string) => {
      const target = parseTarget(url);
      return "refused" in target ? null : reachedTarget(container, target).host;
    };
    expect(at("http://localhost:8080/health")).toBe("127.0.0.1:3000");
    expect(at("http://localhost:8080/healt")).toBe("localhost:8080");
    refuses(["http://127.0.0.1:3000/health?x", "http://127.0.0.1:3000/v1/actions"], "Leads back", container);
  });

  describe("behind a proxy, on a machine with addresses of its own", () => {
    const addresses = ["127.0.0.1", "::1", "10.20.30.40", "203.0.113.9", "2606:4700::9", "fe80::1"];
    let machineAddresses = addresses;
    const targets = policyWith({
      allowedPrivateTargets: ["10.0.0.0/8", "203.0.113.0/24", "127.0.0.0/8", "::1"],
      ownOrigins: ["https://outgate.example.com.", "http://127.0.0.1:3000", "http://0.0.0.0:3000"],
      machineAddresses: () => machineAddresses,
    });

    test("our own routes are refused at every address of its interfaces, at our port and at that of BASE_URL", () => {
      const hosts = ["10.20.30.40", "203.0.113.9", "[2606:4700:0::9]", "127.0.0.1", "localhost", "outgate.example.com"];
      const urls = hosts.flatMap((host) => [`http://${host}:3000`, `https://${host}`, `http://${host}`]);
      refuses(
        urls.map((url) => `${url}/v1/actions`),
        "Leads back to this service",
        targets,
      );
      const elsewhere = ["http://10.20.30.41:3000/v1/actions", "http://203.0.113.9:3001/v1/actions"];
      expect(
        [...elsewhere, "http://10.20.30.40:3000/health"].map((url) => "refused" in checkTarget(targets, url)),
      ).toEqual([false, false, false]);
    });

    test("what else is at our port is refused; at the port of a proxy another site may answer", () => {
      refuses(
        ["http://10.20.30.40:3000/hooks", "https://outgate.example.com/hooks", "http://outgate.example.com/hooks"],
        "Leads back to this service",
        targets,
      );
      accepts({ "https://10.20.30.40/hooks": "10.20.30.40", "http://localhost/hooks": "localhost" }, targets);
    });

    test("an address that an interface has got meanwhile counts from then on", () => {
      const url = "http://10.20.30.50:3000/v1/actions";
      expect(verdict(url, targets)).toBe("10.20.30.50:3000");
      machineAddresses = [...addresses, "10.20.30.50"];
      expect(verdict(url, targets)).toContain("Leads back to this service");
    });
  });

  test("a host keeps the brackets of an IPv6 address, and a refusal repeats nothing of the URL", () => {
    expect(checkTarget(OPEN, "http://[FD12:0:0::1]:80/")).toEqual({ hostname: "[fd12::1]", host: "[fd12::1]" });
    expect(verdict("http://10.1.2.3/secret?token=x")).not.toMatch(/10\.1|secret|token/);
  });
});
