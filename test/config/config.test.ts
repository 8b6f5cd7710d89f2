import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidSettings, listeningOn, readConfig } from "../../src/config/config.ts";
import { settingNames, SETTINGS } from "../../src/config/settings.ts";

type Env = Readonly<Record<string, string>>;

/** As `npm start` does it. */
const START: Env = { BUN_CONFIG_MAX_HTTP_REQUESTS: "1024" };

const read = (env: Env = {}) => readConfig({ ...START, ...env });

/** The problems that are told, without the line above them. */
function problemsOf(env: Env): readonly string[] {
  try {
    readConfig({ ...START, ...env });
    return [];
  } catch (error) {
    if (!(error instanceof InvalidSettings)) throw error;
    return error.message.split("\n- ").slice(1);
  }
}

test("BASE_URL is kept in its normal form: links, own origins and the check of a request's host all begin with it", () => {
  expect(read({ BASE_URL: "HTTPS://Outgate.Example.com.:443/" }).baseUrl).toBe("https://outgate.example.com");
  expect(read({ BASE_URL: "http://localhost.:3000" })).toMatchObject({
    baseUrl: "http://localhost:3000",
    isOnLoopback: true,
  });
});

test("everything can be set", () => {
  const secretKey = new Uint8Array(randomBytes(32));
  const config = read({
    PORT: "8080",
    HOST: "0.0.0.0",
    BASE_URL: "https://outgate.example.com/",
    DATABASE_URL: "libsql://db.example.com",
    DATABASE_AUTH_TOKEN: "token",
    SECRET_KEY: Buffer.from(secretKey).toString("base64"),
    BOOTSTRAP_API_KEY: "!bootstrap~key.of-20",
    SIGNUPS: "open",
    TRUSTED_PROXIES: "127.0.0.1, 10.0.0.0/8,fd00::/8",
    RATE_LIMIT_PER_SECOND: "7",
    MCP_SESSIONS_PER_ACCOUNT: "8",
    ATTEMPT_TIMEOUT_MS: "1500",
    RETRY_BASE_MS: "10",
    RETRY_CAP_MS: "20",
    DISPATCH_CONCURRENCY: "500",
    DISPATCH_PER_HOST: "5",
    KEEP_CONNECTIONS: "off",
    RETENTION_DAYS: "30",
    ALLOWED_PRIVATE_TARGETS: "10.0.0.0/8, billing.internal",
    APPROVAL_LINKS: "one_click",
    APPROVERS: "Ann@Example.com,@example.org",
    APPROVAL_TTL_HOURS: "48",
    AGENT_APPROVAL: "elicit",
    MAILGUN_API_KEY: "key-1",
    MAILGUN_DOMAIN: "mg.example.com",
    MAILGUN_FROM: "Gate <gate@example.com>",
    MAILGUN_URL: "https://api.eu.mailgun.net/",
    OIDC_ISSUER: "https://id.example.com/tenant",
    OIDC_CLIENT_ID: "outgate",
    OIDC_CLIENT_SECRET: "client-secret",
    OIDC_ALLOWED_DOMAINS: "Example.com, example.org",
    OAUTH: "on",
    OAUTH_REGISTRATION: "on",
    METRICS_TOKEN: "metrics-token-0123",
    METRICS_PORT: "9464",
    LOG_LEVEL: "debug",
    LOG_FORMAT: "json",
  });
  expect(config).toEqual({
    settings: config.settings,
    given: new Set(settingNames()),
    port: 8_080,
    host: "0.0.0.0",
    baseUrl: "https://outgate.example.com",
    isBaseUrlSet: true,
    isOnLoopback: false,
    database: { kind: "remote", url: "libsql://db.example.com", authToken: "token" },
    secretKey,
    bootstrapApiKey: "!bootstrap~key.of-20",
    signUps: "open",
    trustedProxies: ["127.0.0.1", "10.0.0.0/8", "fd00::/8"],
    rateLimitPerSecond: 7,
    mcpSessionsPerAccount: 8,
    attemptTimeoutMs: 1_500,
    retryBaseMs: 10,
    retryCapMs: 20,
    dispatchConcurrency: 500,
    dispatchPerHost: 5,
    keepsConnections: false,
    callbackConcurrency: 64,
    mailConcurrency: 8,
    retentionDays: 30,
    allowedPrivateTargets: ["10.0.0.0/8", "billing.internal"],
    approvalLinks: "one_click",
    approvers: ["ann@example.com", "@example.org"],
    approvalTtlHours: 48,
    agentApproval: "elicit",
    mail: {
      apiKey: "key-1",
      domain: "mg.example.com",
      from: "Gate <gate@example.com>",
      url: "https://api.eu.mailgun.net",
    },
    oidc: {
      issuer: "https://id.example.com/tenant",
      clientId: "outgate",
      clientSecret: "client-secret",
      allowedDomains: ["example.com", "example.org"],
    },
    oauth: { registration: true },
    metricsToken: "metrics-token-0123",
    metricsPort: 9_464,
    logLevel: "debug",
    logFormat: "json",
    warnings: [],
  });
});

test("an empty text is as good as none, outer blanks do not count, and what is not ours is ignored", () => {
  expect(read({ PORT: "", BASE_URL: "  ", APPROVERS: "", OUTGATE_URL: "x", PORTS: "x", PATH: "/bin" })).toEqual(read());
  expect(read({ PORT: " 80 " }).port).toBe(80);
});

describe("problems", () => {
  test("METRICS_PORT is another port than PORT, set or not", () => {
    const same = ["METRICS_PORT is the same as PORT. Choose another, or unset it."];
    expect(problemsOf({ METRICS_PORT: "3000" })).toEqual(same);
    expect(problemsOf({ PORT: "8080", METRICS_PORT: "8080" })).toEqual(same);
    expect(read({ PORT: "8080", METRICS_PORT: "3000" }).metricsPort).toBe(3_000);
  });

  test("all of them come in one message, each with its setting and what is allowed", () => {
    const problems = problemsOf({
      ...Object.fromEntries(settingNames().map((name) => [name, "\u0001 ,"])),
      NODE_TLS_REJECT_UNAUTHORIZED: "0",
    });
    expect(problems.map((problem) => problem.split(/[ =]/)[0])).toEqual([
      ...settingNames(),
      "NODE_TLS_REJECT_UNAUTHORIZED",
    ]);
    const told = problems.slice(0, -1);
    expect(told.filter((problem) => !/^[A-Z_]+ (is|has|names) .+\. Allowed: .{5,}\.$/.test(problem))).toEqual([]);
  });

  test("say what is wrong", () => {
    expect(problemsOf({ PORT: "65536", RETRY_BASE_MS: "0", SIGNUPS: "yes", HOST: "[::1]" })).toEqual([
      "PORT is too large. Allowed: a whole number from 0 to 65535.",
      "HOST is not an address. Allowed: an IP address (IPv6 without brackets) or a host name.",
      "SIGNUPS is not one of the allowed values. Allowed: open, closed.",
      "RETRY_BASE_MS is too small. Allowed: a whole number from 1 to 86400000.",
    ]);
  });

  test("include entries that may never be allowed, beside those of other settings", () => {
    expect(problemsOf({ PORT: "x", ALLOWED_PRIVATE_TARGETS: "10.0.0.0/8,10.0.0.0/99,169.254.0.0/16" })).toEqual([
      expect.stringContaining("PORT is not a whole number."),
      expect.stringContaining('ALLOWED_PRIVATE_TARGETS has the entry "10.0.0.0/99", which is not an address range'),
    ]);
    expect(problemsOf({ ALLOWED_PRIVATE_TARGETS: "169.254.0.0/16" })[0]).toContain("can never be allowed");
  });

  test("never say what a setting holds", () => {
    const canary = "canary-7f3a canary";
    for (const name of settingNames()) {
      const message = problemsOf({ [name]: canary }).join();
      expect(message).toContain(name);
      expect(message).not.toContain("canary");
    }
    const urls = {
      DATABASE_URL: "postgres://u:canary@h",
      BASE_URL: "https://u:canary@h",
      MAILGUN_URL: "http://canary@h",
    };
    expect(problemsOf(urls).join()).not.toContain("canary");
    expect(problemsOf({ DATABASE_URL: "libsql://h?authToken=canary", SECRET_KEY: "canary" }).join()).not.toContain(
      "canary",
    );
  });
});

describe("numbers", () => {
  test.each(["ATTEMPT_TIMEOUT_MS", "RETRY_BASE_MS", "RETRY_CAP_MS"])("%s is from 1 ms", (name) => {
    expect(problemsOf({ [name]: "1" })).toEqual([]);
    expect(problemsOf({ [name]: "0" })).toHaveLength(1);
  });

  test.each(["0x10", "1e3", "5.0", "-1", "+5", "true", "5 000", "NaN", "Infinity", "٣", "9".repeat(400)])(
    "%s is none",
    (text) => {
      expect(problemsOf({ PORT: text, RETENTION_DAYS: text }).map((problem) => problem.split(" ")[0])).toEqual([
        "PORT",
        "RETENTION_DAYS",
      ]);
    },
  );

  test("port 0 means any, and the rate 0 means no limit", () => {
    expect(read({ PORT: "0" }).port).toBe(0);
    expect(read({ RATE_LIMIT_PER_SECOND: "0" }).rateLimitPerSecond).toBe(0);
  });

  test("retention of no days is not to be had: it would delete everything", () => {
    expect(problemsOf({ RETENTION_DAYS: "0", APPROVAL_TTL_HOURS: "0" })).toHaveLength(2);
  });
});

describe("lists", () => {
  test("have commas between their entries", () => {
    expect(read({ ALLOWED_PRIVATE_TARGETS: "a,b ,\tc" }).allowedPrivateTargets).toEqual(["a", "b", "c"]);
  });

  test.each([",", "a,,b", "a,", ",a", "a b"])("have no empty or divided entries: %j", (text) => {
    expect(problemsOf({ ALLOWED_PRIVATE_TARGETS: text })[0]).toStartWith(
      "ALLOWED_PRIVATE_TARGETS has an entry of the wrong form.",
    );
  });

  test.each(["ann", "ann@", "a@b@c", "ä@b.c", "a b@c.d"])("of approvers hold addresses and domains, not %j", (text) => {
    expect(problemsOf({ APPROVERS: `@example.com,${text}` })[0]).toStartWith(
      "APPROVERS has an entry of the wrong form.",
    );
  });
});

describe("addresses", () => {
  test.each([
    ["127.0.0.1", "127.0.0.1", "http://127.0.0.1:3000"],
    ["localhost", "127.0.0.1", "http://127.0.0.1:3000"],
    ["LOCALHOST", "127.0.0.1", "http://127.0.0.1:3000"],
    ["127.1", "127.0.0.1", "http://127.0.0.1:3000"],
    ["127.0.0.66", "127.0.0.66", "http://127.0.0.66:3000"],
    ["::1", "::1", "http://[::1]:3000"],
    ["0:0:0:0:0:0:0:1", "::1", "http://[::1]:3000"],
  ])("HOST %s is loopback", (given, host, baseUrl) => {
    expect(read({ HOST: given })).toMatchObject({
      host,
      baseUrl,
      isOnLoopback: true,
      signUps: "until_hold",
      agentApproval: "elicit",
    });
  });

  test.each([
    ["0.0.0.0", "0.0.0.0", "http://127.0.0.1:3000"],
    ["0", "0.0.0.0", "http://127.0.0.1:3000"],
    ["::", "::", "http://[::1]:3000"],
    ["::ffff:127.0.0.1", "::ffff:7f00:1", "http://[::ffff:7f00:1]:3000"],
    ["outgate.example.com", "outgate.example.com", "http://outgate.example.com:3000"],
    ["evil.localhost", "evil.localhost", "http://evil.localhost:3000"],
  ])("HOST %s is not", (given, host, baseUrl) => {
    expect(read({ HOST: given })).toMatchObject({
      host,
      baseUrl,
      isOnLoopback: false,
      signUps: { closedBy: "HOST" },
      agentApproval: "off",
    });
  });

  test.each(["http://localhost:8080", "http://a.localhost", "http://127.0.0.9", "https://[::1]"])(
    "BASE_URL %s leaves the service on loopback",
    (url) => {
      expect(read({ BASE_URL: url })).toMatchObject({ baseUrl: url, isOnLoopback: true, signUps: "until_hold" });
      expect(read({ BASE_URL: url, HOST: "0.0.0.0" }).isOnLoopback).toBe(false);
    },
  );

  test.each([
    "https://outgate.example.com",
    "https://localhost.example.com",
    "http://10.0.0.1",
    "http://127.0.0.1.nip.io",
  ])("BASE_URL %s means a proxy in front", (url) => {
    expect(read({ BASE_URL: url })).toMatchObject({
      isOnLoopback: false,
      signUps: { closedBy: "HOST" },
      agentApproval: "off",
    });
  });

  test("who says on loopback how calls are approved has sign-ups closed, unless they are opened by hand", () => {
    expect(read({ APPROVERS: "ann@example.com" }).signUps).toEqual({ closedBy: "APPROVERS" });
    expect(read({ AGENT_APPROVAL: "off" }).signUps).toEqual({ closedBy: "AGENT_APPROVAL" });
    expect(read({ AGENT_APPROVAL: "elicit" }).signUps).toBe("until_hold");
    expect(read({ APPROVERS: "ann@example.com", AGENT_APPROVAL: "off", SIGNUPS: "open" }).signUps).toBe("open");
  });

  test("what is set by hand comes before what follows from loopback", () => {
    expect(read({ SIGNUPS: "closed", AGENT_APPROVAL: "off" })).toMatchObject({
      signUps: { closedBy: "SIGNUPS" },
      agentApproval: "off",
    });
    const open = { HOST: "0.0.0.0", SIGNUPS: "open", AGENT_APPROVAL: "elicit" };
    expect(read(open)).toMatchObject({ signUps: "open", agentApproval: "elicit" });
  });

  test.each([
    ["outgate.example.com", "is not an http:// or https:// address"],
    ["ftp://example.com", "is not an http:// or https:// address"],
    ["https:example.com", "is not an http:// or https:// address"],
    ["https://example.com/path", "has more than a host"],
    ["https://example.com?x", "has more than a host"],
    ["https://example.com/#x", "has more than a host"],
    ["https://user:password@example.com", "holds a user name or a password"],
  ])("BASE_URL can't be %s", (url, fault) => {
    expect(problemsOf({ BASE_URL: url })).toEqual([expect.stringContaining(`BASE_URL ${fault}. Allowed: http`)]);
  });

  test("with any port the local address is the one of the port that was taken", () => {
    expect(listeningOn(read({ PORT: "0" }), 4_321)).toMatchObject({ port: 4_321, baseUrl: "http://127.0.0.1:4321" });
    const behindProxy = read({ PORT: "0", BASE_URL: "https://outgate.example.com" });
    expect(listeningOn(behindProxy, 4_321).baseUrl).toBe("https://outgate.example.com");
  });
});

describe("the store", () => {
  test.each([
    ["file:./data/outgate.db", "./data/outgate.db"],
    ["file:/var/lib/outgate.db", "/var/lib/outgate.db"],
    ["file:///var/lib/outgate.db", "/var/lib/outgate.db"],
    ["file://localhost/var/lib/outgate.db", "/var/lib/outgate.db"],
    ["file:/var/my%20data/outgate.db", "/var/my data/outgate.db"],
  ])("%s is the file %s", (url, path) => {
    expect(read({ DATABASE_URL: url }).database).toEqual({ kind: "file", url, path });
  });

  test.each(["libsql://db.example.com", "https://db.example.com", "http://127.0.0.1:8080"])("%s is remote", (url) => {
    const SECRET_KEY = randomBytes(32).toString("hex");
    expect(read({ DATABASE_URL: url, SECRET_KEY }).database).toEqual({ kind: "remote", url, authToken: null });
  });

  test.each([
    ["postgres://user:pass/word@host/db", "written as %40 and %2F"],
    ["postgres://user:pass,word@a:5432,b:5432/db", "names several hosts"],
    ["postgres://localhost/db?host=a,b", "names several hosts"],
    ["postgres://a/db?client_encoding=LATIN1", "has a client_encoding other than UTF8"],
    ["postgres://user:pass,/word@host/db", "written as %40 and %2F"],
    ["postgres:///db", "names no host"],
    ["postgresql://host", "names no database"],
    ["postgres://host/", "names no database"],
    ["./data/outgate.db", "is not the address of a database"],
    ["mysql://host", "is not the address of a database"],
    ["file:", "names no file"],
    ["file:./data/", "names no file"],
    ["file://data/outgate.db", "names no file"],
    ["file:a.db?mode=ro", "names no file"],
    ["file:%zz", "names no file"],
    ["file::memory:", "forgets everything"],
    ["libsql://", "names no host"],
    ["libsql://host?authToken=x", "put it into DATABASE_AUTH_TOKEN"],
    ["libsql://user:password@host", "put it into DATABASE_AUTH_TOKEN"],
  ])("%s is refused", (url, sentence) => {
    const [problem] = problemsOf({ DATABASE_URL: url, SECRET_KEY: randomBytes(32).toString("hex") });
    expect(problem).toStartWith("DATABASE_URL ");
    expect(problem).toContain(sentence);
  });

  test.each([
    "postgres://user:p%40s,s@db.example.com/outgate",
    "postgresql://db.example.com:6432/outgate?sslmode=require",
    "postgres:///outgate?host=/run/postgresql",
    "postgres://db.example.com/outgate?application_name=ops@a,b",
  ])("%s is PostgreSQL, and needs a key in the settings that all nodes have", (url) => {
    const SECRET_KEY = randomBytes(32).toString("hex");
    expect(read({ DATABASE_URL: url, SECRET_KEY }).database).toEqual({ kind: "remote", url, authToken: null });
    expect(problemsOf({ DATABASE_URL: url })).toEqual([expect.stringContaining("the same on every node")]);
  });

  test("a remote one needs a key in the settings", () => {
    expect(problemsOf({ DATABASE_URL: "libsql://db.example.com" })).toEqual([
      expect.stringContaining("SECRET_KEY is not set"),
    ]);
  });
});

test.each([
  ["19 characters", "a".repeat(19), false],
  ["20 characters", "a".repeat(20), true],
  ["200 characters", "~!".repeat(100), true],
  ["201 characters", "a".repeat(201), false],
  ["a space inside", `${"a".repeat(15)} ${"a".repeat(15)}`, false],
  ["a letter beyond ASCII", `${"a".repeat(30)}é`, false],
])("a bootstrap key with %s", (_, key, isFine) => {
  expect(problemsOf({ BOOTSTRAP_API_KEY: key })).toHaveLength(isFine ? 0 : 1);
});

describe("mail", () => {
  test("a key and a domain are enough", () => {
    expect(read({ MAILGUN_API_KEY: "key-1", MAILGUN_DOMAIN: "mg.example.com" }).mail).toEqual({
      apiKey: "key-1",
      domain: "mg.example.com",
      from: "Outgate <outgate@mg.example.com>",
      url: "https://api.mailgun.net",
    });
  });

  test("a key without a domain is refused", () => {
    expect(problemsOf({ MAILGUN_API_KEY: "key-1" })).toEqual([expect.stringContaining("MAILGUN_DOMAIN is not set")]);
  });

  test("a variable whose name is nearly that of a setting has no effect, and whoever set it is warned", () => {
    const near = ["APPROVER", "RETENTON_DAYS", "retention_days", "OUTGATE_SIGNUPS", "MAILGUN_API_KEYS", "SIGN_UPS"];
    const other = [
      "HOSTNAME",
      "PORTS",
      "SECRET_KEY_BASE",
      "OUTGATE_URL",
      "OUTGATE_API_KEY",
      "NEW_SECRET_KEY",
      "OUTGATE_PORT",
    ];
    const env = Object.fromEntries([...near, ...other, "x".repeat(100_000)].map((name) => [name, "1"]));
    expect(read(env).warnings.map((text) => text.split(" ")[0])).toEqual(near);
    expect(read({ APPROVER: "ann@example.com" }).warnings).toEqual([
      "APPROVER is no setting and has no effect. APPROVERS is one.",
    ]);
  });

  test("without a key no mail is sent, and whoever set the rest is warned", () => {
    const { mail, warnings } = read({ MAILGUN_DOMAIN: "mg.example.com" });
    expect(mail).toBeNull();
    expect(warnings).toEqual([expect.stringContaining("no mail is sent")]);
  });

  test.each(["gate@example.com", "Gate <gate@example.com>", "Grüße von uns <gate@example.com>"])(
    "comes from %s",
    (from) => {
      expect(problemsOf({ MAILGUN_FROM: from })).toEqual([]);
    },
  );

  test.each(["gate", "Gate <gate>", "a@b@c", "Gate\nBcc: x@example.com <gate@example.com>"])(
    "does not come from %j",
    (from) => {
      expect(problemsOf({ MAILGUN_FROM: from })[0]).toStartWith("MAILGUN_FROM has the wrong form.");
    },
  );
});

describe("calls at a time", () => {
  test("an own number has to leave a call to callbacks and one to mails", () => {
    expect(problemsOf({ DISPATCH_CONCURRENCY: "1022" })).toEqual([]);
    expect(problemsOf({ DISPATCH_CONCURRENCY: "1023" })).toEqual([expect.stringContaining("is above 1022")]);
    expect(problemsOf({ DISPATCH_CONCURRENCY: "255", BUN_CONFIG_MAX_HTTP_REQUESTS: "" })).toEqual([
      expect.stringContaining("is above 254"),
    ]);
  });

  test.each([
    [{}, 64, 8],
    [{ BUN_CONFIG_MAX_HTTP_REQUESTS: "256" }, 56, 8],
    [{ DISPATCH_CONCURRENCY: "1000" }, 21, 3],
    [{ DISPATCH_CONCURRENCY: "1022" }, 1, 1],
  ])("%j leaves so many callbacks and mails, and no more calls than Bun makes", (env, callbacks, mails) => {
    const settings = { BUN_CONFIG_MAX_HTTP_REQUESTS: "1024", ...env };
    const { dispatchConcurrency, callbackConcurrency, mailConcurrency } = readConfig(settings);
    expect([callbackConcurrency, mailConcurrency]).toEqual([callbacks, mails]);
    const most = Number(settings.BUN_CONFIG_MAX_HTTP_REQUESTS);
    expect(dispatchConcurrency + callbackConcurrency + mailConcurrency).toBeLessThanOrEqual(most);
  });

  test.each(["", "abc", "0", "70000", "-5"])(
    "with Bun's variable %j the default gives way, and says so",
    (variable) => {
      const { dispatchConcurrency, warnings } = readConfig({ BUN_CONFIG_MAX_HTTP_REQUESTS: variable });
      expect(dispatchConcurrency).toBe(192);
      expect(warnings).toEqual([expect.stringContaining("DISPATCH_CONCURRENCY is 192 instead of 256")]);
    },
  );

  test("even one call at a time leaves one for dispatch", () => {
    expect(readConfig({ BUN_CONFIG_MAX_HTTP_REQUESTS: "1" }).dispatchConcurrency).toBe(1);
  });
});

test("an https BASE_URL without TRUSTED_PROXIES is warned about: all who come through the proxy are one client", () => {
  expect(read({ BASE_URL: "https://outgate.example.com" }).warnings).toEqual([
    expect.stringContaining("TRUSTED_PROXIES is not set"),
  ]);
  expect(read({ BASE_URL: "http://127.0.0.1:3000" }).warnings).toEqual([]);
});

test.each(["10.0.0.0/7", "10.0.0.1/8", "0.0.0.0/0", "::/0", "proxy.internal", "10.0.0.0/8,x", "10.0.0.0/33", "*"])(
  "TRUSTED_PROXIES is addresses and their ranges, and never all of them: %s",
  (entry) => {
    const isSound = entry === "10.0.0.0/7";
    expect(problemsOf({ TRUSTED_PROXIES: entry })).toEqual(
      isSound ? [] : [expect.stringMatching(/^TRUSTED_PROXIES has an entry that .* Allowed: addresses/)],
    );
  },
);

test("a public HOST without BASE_URL is warned about", () => {
  expect(read({ HOST: "0.0.0.0" }).warnings).toEqual([
    expect.stringContaining("HOST is public and BASE_URL is not set"),
  ]);
  const behindProxy = { BASE_URL: "https://outgate.example.com", TRUSTED_PROXIES: "127.0.0.1" };
  expect(read({ HOST: "0.0.0.0", ...behindProxy }).warnings).toEqual([]);
});

test("a public BASE_URL without TLS is warned about", () => {
  expect(read({ BASE_URL: "http://outgate.example.com" }).warnings).toEqual([
    expect.stringContaining("Put TLS in front"),
  ]);
});

test.each([
  [{ OAUTH: "on", BASE_URL: "http://outgate.example.com" }, "tokens could be read on the way"],
  [{ OIDC_ISSUER: "http://id.example.com" }, "is not https://"],
  [{ OIDC_ISSUER: "https://id.example.com/?a=1" }, "has a query or a fragment"],
])("%j is refused", (env, problem) => {
  const oidc = { OIDC_CLIENT_ID: "outgate", OIDC_CLIENT_SECRET: "client-secret", OIDC_ALLOWED_DOMAINS: "example.com" };
  expect(problemsOf("OAUTH" in env ? env : { ...oidc, ...env })).toEqual([expect.stringContaining(problem)]);
});

test("an environment that switches certificate checks off is refused", () => {
  expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: "0" })).toEqual([expect.stringContaining("Unset it.")]);
  expect(problemsOf({ NODE_TLS_REJECT_UNAUTHORIZED: "1" })).toEqual([]);
});

describe(".env", () => {
  test("is read", async () => {
    const folder = mkdtempSync(join(tmpdir(), "outgate-env-"));
    try {
      writeFileSync(join(folder, ".env"), "PORT=4321\nAPPROVERS=ann@example.com,@example.org\n");
      const source = `
        import { readConfig } from ${JSON.stringify(join(import.meta.dir, "../../src/config/config.ts"))};
        const { port, approvers } = readConfig(process.env);
        console.log(JSON.stringify({ port, approvers }));`;
      const child = Bun.spawn([process.execPath, "-e", source], { cwd: folder, env: {}, stderr: "inherit" });
      expect(await child.stdout.json()).toEqual({ port: 4_321, approvers: ["ann@example.com", "@example.org"] });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("has an example with every setting in order, what it is, what it may be, and its default", async () => {
    const [, ...paragraphs] = (await Bun.file(join(import.meta.dir, "../../.env.example")).text())
      .trimEnd()
      .split("\n\n");
    const defaults = readDefaults();
    const expected = settingNames().map((name) => {
      const { description, allowed } = SETTINGS[name];
      return `# ${description} Allowed: ${allowed}.\n#${name}=${defaults[name]}`;
    });
    expect(paragraphs).toEqual(expected);
  });

  test("is nothing but the defaults when the example is copied, and also when every line of it is taken in", async () => {
    const text = await Bun.file(join(import.meta.dir, "../../.env.example")).text();
    const lines = [...text.matchAll(/^#([A-Z_]+)=(.*)$/gm)].map(
      ([, name, value]) => [name ?? "", value ?? ""] as const,
    );
    expect(text.split("\n").filter((line) => line !== "" && !line.startsWith("#"))).toEqual([]);
    expect({ ...read(Object.fromEntries(lines)), given: new Set() }).toEqual(read());
  });
});

function readDefaults(): Readonly<Record<string, string>> {
  return Object.fromEntries(
    settingNames().map((name) => {
      const value: unknown = SETTINGS[name].default;
      return [name, typeof value === "string" || typeof value === "number" ? String(value) : ""];
    }),
  );
}
