import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { outgate, type OutgateOptions } from "../cli/outgate.ts";
import { KEYS } from "../http/stub-server.ts";
import { openCredentials, SECRET } from "./rig.ts";
import { shared, sharedFolder } from "../support/shared.ts";

const rig = await shared(openCredentials());
const folder = sharedFolder();

const say = (args: readonly string[], options: OutgateOptions = {}) =>
  outgate(args, { terminal: true, ...options, env: { OUTGATE_URL: rig.app.url, OUTGATE_API_KEY: KEYS.owner } });

const sent = async (name: string) => {
  await rig.ended(await rig.create({ credential: name }, KEYS.owner), KEYS.owner);
  return rig.target.received.at(-1)?.headers;
};

test("adds a credential from a file or standard input, and tells where it may go", async () => {
  const file = join(folder, "stripe.key");
  await writeFile(file, `${SECRET}\n`);
  const at = ["--host", rig.host, "--path", "/v1"];
  const added = await say([
    "credentials",
    "add",
    "stripe",
    "--kind",
    "bearer",
    ...at,
    "--secret-file",
    file,
    "--key-id",
    rig.agentId,
  ]);
  expect(added).toMatchObject({ code: 0, err: "" });
  expect(added.out).toBe(`stripe  bearer ••••4242; to ${rig.host}; /v1; for owners and ${rig.agentId}\n`);
  expect((await sent("stripe"))?.get("authorization")).toBe(`Bearer ${SECRET}`);

  const hmac = ["--kind", "hmac", "--header", "X-Sign", "--signs", "{body}", "--value", "v1={signature}"];
  const piped = await say(["credentials", "add", "internal", ...hmac, "--host", rig.host], { input: `${SECRET}\r\n` });
  expect(piped.code).toBe(0);
  const expected = new Bun.CryptoHasher("sha256", SECRET).update("").digest("hex");
  expect((await sent("internal"))?.get("x-sign")).toBe(`v1=${expected}`);
  expect((await say(["credentials"])).out.split("\n")).toHaveLength(3);
  expect(JSON.parse((await say(["credentials", "--json"], { terminal: false })).out).data).toHaveLength(2);
});

test("replaces, disables, enables and removes one", async () => {
  await say(["credentials", "add", "mine", "--kind", "bearer", "--host", rig.host], { input: SECRET });
  expect((await say(["credentials", "replace", "mine"], { input: "another-secret-0815" })).out).toContain("••••0815");
  expect((await sent("mine"))?.get("authorization")).toBe("Bearer another-secret-0815");
  expect((await say(["credentials", "disable", "mine"])).out).toContain("disabled");
  expect((await rig.create({ credential: "mine" }, KEYS.owner)).status).toBe(403);
  expect((await say(["credentials", "enable", "mine"])).out).not.toContain("disabled");
  expect((await say(["credentials", "remove", "mine"])).out).toBe("mine is deleted.\n");
  expect((await say(["send", rig.target.url, "--credential", "mine"])).out).toContain("no credential of this name");
});

test("takes no secret from the command line, and says what is missing", async () => {
  const add = ["credentials", "add", "x", "--kind", "bearer", "--host", rig.host];
  expect((await say([...add, "--secret", SECRET])).code).not.toBe(0);
  expect((await say(add, { input: "" })).out).toContain("No secret was given");
  expect((await say(["credentials", "add", "x"], { input: SECRET })).out).toContain("takes --kind and --host");
  const wrong = await say([...add, "--secret-file", join(folder, "none")]);
  expect(wrong.out).toContain("can't be read");
});

test("shows what agents ask for, grants and declines it", async () => {
  const ask = async (host: string) => {
    const body = { host, reason: "To refund\u001b[31m 4711.", name: "refunds" };
    return (await rig.call("POST", "/v1/credential-requests", body, KEYS.agent)).json.id;
  };
  const [one, two] = [await ask(rig.host), await ask("b.example")];
  const { out } = await say(["credentials", "requests"]);
  expect(out).toContain(`${one}  ${rig.host} for key:agent: “To refund`);
  expect(out).not.toContain("\u001b[31m");
  const add = ["credentials", "add", "refunds", "--kind", "bearer", "--host", rig.host, "--request", one];
  const granted = await say(add, { input: SECRET });
  expect([granted.code, granted.out]).toEqual([0, `${one} is granted: key:agent may use refunds.\n`]);
  expect((await rig.call("GET", "/v1/credentials/refunds")).json["keys"]).toEqual([rig.agentId]);
  expect((await say(["credentials", "decline", two, "--reason", "No."])).out).toBe(`${two} is declined.\n`);
  expect((await say(["credentials", "decline", two])).out).toContain("can no longer be answered");
  expect((await say(["credentials", "requests"])).out).toContain("No agent waits for a credential.");
});
