import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import Value from "typebox/value";
import { DRAIN_MS_MAX, WAIT_SECONDS_MAX } from "../../src/core/limits.ts";
import { readSettings, settingNames, settingTexts } from "../../src/config/settings.ts";
import { readConfig } from "../../src/config/config.ts";
import { outgate } from "../cli/outgate.ts";
import { FOR_CADDY_26 } from "./balancers.ts";
import manifest from "../../package.json" with { type: "json" };

const ROOT = join(import.meta.dir, "../..");
const textOf = (name: string) => Bun.file(join(ROOT, "deploy", name)).text();

/** Environment variables that are no settings of ours: Bun's and Node's. */
const FOREIGN = new Set(["NODE_ENV", "BUN_CONFIG_MAX_HTTP_REQUESTS"]);

/** What a start of these variables would be refused for, beside a variable that is no setting at all. */
function problemsOf(env: Readonly<Record<string, string>>): readonly string[] {
  const known = new Set<string>([...settingNames(), ...FOREIGN]);
  const unknown = Object.keys(env).filter((name) => !known.has(name));
  const read = readSettings(settingTexts(env));
  return [...unknown, ...("problems" in read ? read.problems : [])];
}

/** Lines of `NAME=value`, without comments. */
function assignmentsIn(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").filter((line) => /^[A-Z_]+=/.test(line));
  return Object.fromEntries(lines.map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]));
}

/** The instructions of a Dockerfile, each on one line. */
function instructionsOf(text: string): readonly (readonly [name: string, rest: string])[] {
  const lines = text
    .split("\n")
    .filter((line) => !line.startsWith("#"))
    .join("\n")
    .replaceAll(/\\\n\s*/g, "")
    .split("\n")
    .filter((line) => line !== "");
  return lines.map((line) => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]);
}

const dockerfile = instructionsOf(await textOf("Dockerfile"));

describe("deploy/Dockerfile", () => {
  const all = (name: string) => dockerfile.filter(([found]) => found === name).map(([, rest]) => rest);
  const env = Object.fromEntries(
    all("ENV").flatMap((rest) => rest.split(" ").map((pair) => pair.split("=", 2) as [string, string])),
  );

  test("builds with scripts of the repository, from files that its context has", async () => {
    const scripts: readonly string[] = Object.keys(manifest.scripts);
    const runs = all("RUN").join(" ");
    for (const [, name = ""] of runs.matchAll(/npm run (\S+)/g)) expect(scripts).toContain(name);
    for (const [, file = ""] of runs.matchAll(/node (\S+)/g)) expect(existsSync(join(ROOT, file))).toBe(true);
    const context = (await textOf("Dockerfile.dockerignore")).split("\n");
    const allowed = context.filter((line) => line.startsWith("!")).map((line) => line.slice(1));
    expect(context.indexOf("*")).toBeLessThan(context.findIndex((line) => line.startsWith("!")));
    for (const path of allowed)
      expect({ path, isThere: existsSync(join(ROOT, path)) }).toMatchObject({ isThere: true });
    const [copied = ""] = all("COPY");
    for (const file of copied.split(" ").slice(0, -1)) expect(allowed).toContain(file);
    // What the program is built from; it imports docs and package.json too.
    expect(allowed).toEqual(expect.arrayContaining(["src", "db", "mcp", "docs", "scripts", "tsconfig.json"]));
    for (const secret of ["**/.env*", "**/*.db*"]) expect(context).toContain(secret);
  });

  test("starts a service by settings that it has, as a user that is not root", () => {
    expect(problemsOf(env)).toEqual([]);
    expect(readConfig(env)).toMatchObject({ host: "0.0.0.0", port: Number(all("EXPOSE")[0]) });
    expect(readConfig(env).database).toMatchObject({ kind: "file", path: "/data/outgate.db" });
    expect([all("VOLUME"), all("WORKDIR").at(-1)]).toEqual([["/data"], "/data"]);
    expect(Number(all("USER").at(-1)?.split(":")[0])).toBeGreaterThan(0);
    expect(env["NODE_ENV"]).toBe("production");
  });

  test("runs commands of the command line, without a shell", async () => {
    const [health = ""] = all("HEALTHCHECK");
    const probe = JSON.parse(health.slice(health.indexOf("["))) as readonly string[];
    const start = [
      ...(JSON.parse(all("ENTRYPOINT")[0] ?? "") as string[]),
      ...(JSON.parse(all("CMD")[0] ?? "") as string[]),
    ];
    for (const command of [probe, start]) {
      expect(command[0]).toBe("/usr/local/bin/outgate");
      const { code, out } = await outgate([...command.slice(1), "--help"]);
      expect(code, JSON.stringify(command)).toBe(0);
      expect(out).toContain(`outgate ${command.slice(1).join(" ")}`);
    }
  });

  test("names the version of every base, and never latest", () => {
    for (const base of all("FROM")) expect(base).toMatch(/^\S+:(\d+\.\d+\.\d+\S*|nonroot)( AS \w+)?$/);
  });
});

const Service = Type.Object({
  image: Type.String(),
  build: Type.Optional(Type.Object({ context: Type.String(), dockerfile: Type.String() })),
  depends_on: Type.Optional(Type.Record(Type.String(), Type.Object({ condition: Type.Literal("service_healthy") }))),
  environment: Type.Optional(Type.Record(Type.String(), Type.String())),
  networks: Type.Optional(Type.Array(Type.String())),
  volumes: Type.Optional(Type.Array(Type.String())),
  ports: Type.Optional(Type.Array(Type.String())),
  tmpfs: Type.Optional(Type.Array(Type.String())),
  read_only: Type.Optional(Type.Boolean()),
  cap_drop: Type.Optional(Type.Array(Type.String())),
  stop_grace_period: Type.Optional(Type.String()),
  restart: Type.Literal("unless-stopped"),
});

const Compose = Type.Object({
  services: Type.Record(Type.String(), Service),
  networks: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  volumes: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
});

async function composeIn(name: string) {
  return Value.Parse(Compose, Bun.YAML.parse(await textOf(name)));
}

/** A text of compose.yaml with the variables in it: `${NAME:-default}` or `${NAME:?message}`. */
function interpolated(text: string, values: Readonly<Record<string, string>>): string {
  return text.replaceAll(/\$\{(\w+):([-?])([^}]*)\}/g, (_all, name: string, kind: string, rest: string) => {
    const value = values[name] || (kind === "-" ? rest : "");
    if (value === "") throw new Error(`${name} has no value.`);
    return value;
  });
}

const VALUES = { BASE_URL: "https://outgate.example.com", SECRET_KEY: "ab".repeat(32), POSTGRES_PASSWORD: "secret" };

describe.each(["compose.yaml", "compose.single.yaml"])("deploy/%s", (name) => {
  test("names only what it has: services, networks, volumes, files and variables", async () => {
    const { services, networks = {}, volumes = {} } = await composeIn(name);
    const example = Object.keys(assignmentsIn(await textOf(".env.example")));
    for (const [, variable = ""] of (await textOf(name)).matchAll(/\$\{(\w+)/g)) expect(example).toContain(variable);
    for (const service of Object.values(services)) {
      for (const other of Object.keys(service.depends_on ?? {})) expect(Object.keys(services)).toContain(other);
      for (const network of service.networks ?? []) expect(Object.keys(networks)).toContain(network);
      for (const volume of service.volumes ?? []) {
        const [source = ""] = volume.split(":");
        if (source.startsWith("./")) expect(existsSync(join(ROOT, "deploy", source))).toBe(true);
        else expect(Object.keys(volumes)).toContain(source);
      }
      if (service.build !== undefined) {
        expect(existsSync(join(ROOT, "deploy", service.build.context, service.build.dockerfile))).toBe(true);
      }
      if (service.image !== "outgate") expect(service.image).toMatch(/:\d+\.\d+/);
    }
  });

  test("gives its nodes settings that they have, a read-only root, no capability and time to stop", async () => {
    const { services } = await composeIn(name);
    const nodes = Object.values(services).filter(({ image }) => image === "outgate");
    for (const { environment = {}, ...node } of nodes) {
      const texts = Object.entries(environment).map(([key, text]) => [key, interpolated(text, VALUES)] as const);
      expect(problemsOf(Object.fromEntries(texts))).toEqual([]);
      expect(node).toMatchObject({ read_only: true, cap_drop: ["ALL"] });
      expect(Number.parseInt(node.stop_grace_period ?? "", 10) * 1_000).toBeGreaterThan(DRAIN_MS_MAX + 1_000);
      // The driver of libsql:// is unpacked there, and Docker mounts a tmpfs noexec.
      expect(node.tmpfs?.find((mount) => mount.startsWith("/tmp:"))).toContain("exec");
    }
    expect(nodes.length).toBe(name === "compose.yaml" ? 3 : 1);
  });
});

test("deploy/compose.yaml has the nodes of the load balancer trust it, on one database with one key", async () => {
  const { services, networks = {} } = await composeIn("compose.yaml");
  const nodes = Object.entries(services).filter(([, { image }]) => image === "outgate");
  const addresses = services["lb"]?.environment?.["OUTGATE_NODES"]?.split(" ") ?? [];
  expect(addresses).toEqual(nodes.map(([name]) => `${name}:3000`));
  expect(new Set(nodes.map(([, { environment }]) => JSON.stringify(environment))).size).toBe(1);
  const [{ environment = {} } = {}] = nodes.map(([, node]) => node);
  expect(JSON.stringify(networks["front"])).toContain(`"${environment["TRUSTED_PROXIES"]}"`);
  const { username, hostname, pathname } = new URL(interpolated(environment["DATABASE_URL"] ?? "", VALUES));
  expect([username, hostname, pathname.slice(1)]).toEqual([
    services["db"]?.environment?.["POSTGRES_USER"] ?? "",
    "db",
    services["db"]?.environment?.["POSTGRES_DB"] ?? "",
  ]);
  expect(environment["SECRET_KEY"]).toContain("SECRET_KEY:?");
});

const unitLines = (await textOf("outgate.service")).split("\n").filter((line) => /^\w+=/.test(line));

describe("deploy/outgate.service", () => {
  const valueOf = (key: string) => unitLines.find((line) => line.startsWith(`${key}=`))?.slice(key.length + 1) ?? "";

  test("starts the service in a folder of its own and lets it stop in order", async () => {
    expect(valueOf("ExecStart")).toBe("/usr/local/bin/outgate serve");
    expect(valueOf("WorkingDirectory")).toBe(`/var/lib/${valueOf("StateDirectory")}`);
    expect(Number.parseInt(valueOf("TimeoutStopSec"), 10) * 1_000).toBeGreaterThan(DRAIN_MS_MAX + 1_000);
    const own = Object.fromEntries(
      valueOf("Environment")
        .split(" ")
        .map((pair) => pair.split("=", 2) as [string, string]),
    );
    const env = { ...own, ...assignmentsIn(await textOf("outgate.env")) };
    expect(problemsOf(env)).toEqual([]);
    expect(readConfig(env)).toMatchObject({ warnings: [] });
    expect(env).toMatchObject({ DATABASE_URL: `file:${valueOf("WorkingDirectory")}/outgate.db` });
  });

  test.skipIf(Bun.which("systemd-analyze") === null)("is a unit that systemd accepts (where it is installed)", () => {
    const unit = join(ROOT, "deploy/outgate.service");
    const { stderr } = Bun.spawnSync(["systemd-analyze", "verify", unit], { stderr: "pipe" });
    const complaints = stderr
      .toString()
      .split("\n")
      .filter((line) => line.includes("outgate.service"));
    // The program is installed by whoever installs the unit.
    expect(complaints.filter((line) => !line.includes("/usr/local/bin/outgate is not executable"))).toEqual([]);
  });
});

test("the guide tells what to change in deploy/Caddyfile for the Caddy of Debian 12", async () => {
  const [from, to] = FOR_CADDY_26;
  expect((await textOf("Caddyfile")).split(`\t${from}\n`)).toHaveLength(2);
  expect(await Bun.file(join(ROOT, "docs/deploy.md")).text()).toContain(
    `sudo sed -i 's/${from}/${to}/' /etc/caddy/Caddyfile`,
  );
});

test.each(["nginx.conf", "Caddyfile"])("deploy/%s waits longer than a request may wait", async (name) => {
  const text = await textOf(name);
  const [, seconds = ""] = /(?:proxy_read_timeout|response_header_timeout) (\d+)s/.exec(text) ?? [];
  expect(Number(seconds)).toBeGreaterThanOrEqual(WAIT_SECONDS_MAX + 10);
});
