import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildPackage } from "../../scripts/build/package.ts";
import { RELEASE, releaseText } from "../../src/config/config.ts";
import { connect } from "../mcp/clients.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";

// npm and Node are processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const SOURCES = join(import.meta.dir, "../../src");

/** Everything below is installed here as by somebody who has the file only. */
const place = mkdtempSync(join(tmpdir(), "outgate-package-"));
const home = join(place, "home");
const app = join(place, "app");

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string }[];
}

let packed: Packed;
beforeAll(async () => {
  for (const folder of [home, app]) mkdirSync(folder);
  const source = await buildPackage(join(place, "dist"));
  const { out } = await ran(["npm", "pack", "--json", "--pack-destination", place, source]);
  [packed] = JSON.parse(out) as [Packed];
  writeFileSync(join(app, "package.json"), '{ "private": true, "type": "module" }');
  const install = ["npm", "install", "--offline", "--no-audit", "--no-fund", join(place, packed.filename)];
  expect(await ran(install)).toMatchObject({ code: 0, err: "" });
});
afterAll(() => rmSync(place, { recursive: true, force: true }));

/** Runs a command in the folder of the application, with nothing of this machine's settings. */
async function ran(command: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const { PATH } = process.env;
  const child = Bun.spawn([...command], {
    cwd: app,
    env: { PATH, HOME: home, npm_config_update_notifier: "false", ...env },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [out, err] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { code: await child.exited, out, err };
}

test("the package holds the client, its types and the command line, and needs no other package", () => {
  const files = packed.files.map(({ path }) => path.replace(/-[a-z0-9]{8}\.js$/, ".js")).toSorted();
  expect(files).toEqual([
    "README.md",
    "chunks/node-main.js",
    "chunks/relay.js",
    "client.d.ts",
    "client.js",
    "outgate.js",
    "package.json",
  ]);
  expect(packed.size).toBeLessThan(200_000);
  const installed = JSON.parse(readFileSync(join(app, "node_modules/outgate/package.json"), "utf8")) as object;
  expect(installed).toMatchObject({
    version: RELEASE.version,
    ...(RELEASE.commit !== null && { gitHead: RELEASE.commit }),
  });
  expect(Object.keys(installed)).not.toContain("dependencies");
  expect(Object.keys(installed)).not.toContain("scripts");
  expect(statSync(join(app, "node_modules/.bin/outgate")).mode & 0o111).not.toBe(0);
});

test("Node imports it and calls a service, and the command line does", async () => {
  await using target = new Target(() => Response.json({ done: true }));
  await using service = new Service();
  const env = { OUTGATE_URL: await service.ready(), OUTGATE_API_KEY: OWNER_KEY };
  writeFileSync(
    join(app, "program.js"),
    `import { createClient, OutgateError } from "outgate";
     import * as client from "outgate/client";
     const outgate = createClient({ url: process.env.OUTGATE_URL, apiKey: process.env.OUTGATE_API_KEY });
     const { status } = await outgate.createAction({ url: ${JSON.stringify(target.url)}, sync: true });
     const refused = await outgate.getAction("act_nobody").catch((error) => error);
     console.log(JSON.stringify([status, refused instanceof OutgateError, refused.code, Object.keys(client)]));`,
  );
  const program = await ran(["node", "program.js"], env);
  expect(program.err).toBe("");
  expect(JSON.parse(program.out)).toEqual(["completed", true, "not_found", ["OutgateError", "createClient", "verify"]]);

  const version = await ran(["npx", "--offline", "outgate", "--version"]);
  expect(version.out).toBe(`${releaseText(RELEASE)}\n`);
  const help = await ran(["npx", "--offline", "outgate", "--help"]);
  expect(help.code).toBe(0);
  expect(help.out).toContain("\n  send ");
  expect(help.out).not.toContain("\n  serve ");
  const sent = await ran(["npx", "--offline", "outgate", "send", target.url, "--sync"], env);
  expect(JSON.parse(sent.out)).toMatchObject({ status: "completed" });
  // Node before 22 can't print them by itself, and people approve what they are shown.
  const body =
    '{"account":9007199254740993,"amount":12345678901234567890,"rate":1.0,"n":-0,"of":[1e400,{"7":0.10}],"text":"1e5"}';
  const held = await fetch(`${env.OUTGATE_URL}/v1/actions`, {
    method: "POST",
    headers: { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json" },
    body: `{"url":${JSON.stringify(target.url)},"approve":true,"body":${body}}`,
  });
  const { id } = (await held.json()) as { readonly id: string };
  const shown = await ran(["npx", "--offline", "outgate", "show", id], env);
  expect(shown.out.replaceAll(/\s/g, "")).toContain(`"body":${body}`);
  await ran(["npx", "--offline", "outgate", "send", target.url, "--sync", "-d", body], env);
  expect(target.received.at(-1)?.body).toBe(body);

  const launch = { command: "node", args: ["node_modules/outgate/outgate.js", "mcp"], cwd: app };
  await using agent = await connect("modern", { ...launch, env: { ...env, PATH: process.env["PATH"] ?? "" } });
  const created = await agent.call("create", { url: target.url, sync: true });
  expect(created.structuredContent?.["status"]).toBe("completed");
  const alone = await ran([launch.command, ...launch.args]);
  expect(alone).toMatchObject({ code: 1, out: "", err: expect.stringContaining("Set OUTGATE_URL") });
});

/** As strict as a program may be, and the declarations of packages are checked too. */
const STRICT = {
  strict: true,
  noEmit: true,
  skipLibCheck: false,
  noUncheckedIndexedAccess: true,
  target: "ES2022",
  module: "nodenext",
  moduleResolution: "nodenext",
  lib: ["ES2022", "DOM"],
  types: [],
};

async function checked(name: string, text: string, options: object) {
  writeFileSync(join(app, `${name}.ts`), text);
  const config = { compilerOptions: options, files: [`${name}.ts`] };
  writeFileSync(join(app, `${name}.json`), JSON.stringify(config));
  return ran([process.execPath, "check", "--no-pretty", "-p", `${name}.json`]);
}

test("a strict program is checked against its types", async () => {
  const program = `
    import { createClient, OutgateError, type Action, type OutgateClient } from "outgate";
    import type { CreateAction } from "outgate/client";
    const outgate: OutgateClient = createClient({ url: "http://127.0.0.1:3000", apiKey: null });
    const order: CreateAction = { url: "https://api.example.com/orders", body: { n: 7 }, retries: 3 };
    export async function send(): Promise<Action["status"] | number | null> {
      try {
        const { status } = await outgate.createAction(order, { idempotencyKey: "order-7", waitSeconds: 10 });
        for await (const event of outgate.streamEvents()) if (event.data.status === status) break;
        return status;
      } catch (error) {
        return error instanceof OutgateError && error.code === "rate_limited" ? error.retryAfterMs : null;
      }
    }
    // @ts-expect-error -- a create without an address
    await outgate.createAction({ method: "POST" });
    // @ts-expect-error -- no status of an action
    if ((await outgate.getAction("act_1")).status === "done") throw new Error();
  `;
  expect(await checked("strict", program, STRICT)).toMatchObject({ code: 0 });
  const wrong = await checked("wrong", program.replaceAll("// @ts-expect-error", "//"), STRICT);
  expect(wrong.code).toBe(1);
  expect(wrong.err + wrong.out).toContain("error TS");
});

test("its types are those of the sources", async () => {
  const named = ["api", "types"].flatMap((file) => {
    const text = readFileSync(join(SOURCES, `client/${file}.ts`), "utf8");
    return [...text.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name = ""]) => ({ name, file }));
  });
  expect(named.length).toBeGreaterThan(100);
  const ambient = [...new Bun.Glob("{src,db}/**/*.d.ts").scanSync(join(SOURCES, ".."))];
  const program = `
    ${ambient.map((path) => `/// <reference path="${join(SOURCES, "..", path)}" />`).join("\n")}
    import type * as packaged from "outgate";
    import { createClient, OutgateError } from "outgate";
    import { createClient as sourceClient } from "${SOURCES}/client/client.ts";
    import { OutgateError as SourceError } from "${SOURCES}/client/transport.ts";
    ${named.map(({ name, file }) => `import type { ${name} } from "${SOURCES}/client/${file}.ts";`).join("\n")}
    type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
    ${named.map(({ name }) => `export const is${name}: Same<${name}, packaged.${name}> = true;`).join("\n")}
    export const isClient: Same<typeof createClient, typeof sourceClient> = true;
    export const isError: Same<InstanceType<typeof OutgateError>, SourceError> = true;
    export const isMade: Same<ConstructorParameters<typeof OutgateError>, ConstructorParameters<typeof SourceError>> = true;
    // @ts-expect-error -- another type
    export const isOther: Same<Action, packaged.Health> = true;
  `;
  const config = JSON.parse(readFileSync(join(SOURCES, "../tsconfig.json"), "utf8")) as { compilerOptions: object };
  const options = { ...config.compilerOptions, typeRoots: [join(SOURCES, "../node_modules")] };
  expect(await checked("same", program, options)).toMatchObject({ code: 0, out: "" });
});
