import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { HiddenLine, type Io } from "../../src/cli/io.ts";
import { loginFile, readLogin, writeLogin } from "../../src/cli/login-file.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { outgate, outgateAlone } from "./outgate.ts";
import { shared, sharedFolder } from "../support/shared.ts";
import { readApiKey } from "../../src/cli/session.ts";

const folder = sharedFolder();
const service = await shared(new Service());
const url = await service.ready();
let count = 0;
/** The environment of somebody whose settings are in a folder of their own, and the file of the login there. */
function somebody() {
  const config = join(folder, `config-${(count += 1)}`);
  return { env: { XDG_CONFIG_HOME: config }, file: join(config, "outgate", "login.json") };
}

test("login keeps address and key for all commands, in a file that only its user can read; logout forgets them", async () => {
  const { env, file } = somebody();
  const said = await outgateAlone(["login", url], { env, input: `${OWNER_KEY}\n` });
  expect({ code: said.code, out: said.out }).toEqual({ code: 0, out: "" });
  expect(said.err).toStartWith(`Logged in to ${url} with the owner key "owner"`);
  expect(said.err).not.toContain(OWNER_KEY);
  expect([statSync(file).mode & 0o777, statSync(join(file, "..")).mode & 0o777]).toEqual([0o600, 0o700]);
  expect((await outgate(["list"], { env })).code).toBe(0);
  const who = await outgate(["whoami"], { env });
  expect(JSON.parse(who.out)).toMatchObject({ url, key_source: "login", key: { name: "owner", role: "owner" } });
  const shown = await outgate(["whoami"], { env, terminal: true });
  expect(shown.out).toMatch(
    /^service +http:\S+\naccount +acc_\S+\nkey +owner +key_\S+\nrole +owner\nfrom +outgate login\n$/,
  );
  const rename = (name: string) => service.request("/v1/account", { method: "PATCH", body: JSON.stringify({ name }) });
  expect((await rename("Acme")).status).toBe(200);
  expect((await outgate(["whoami"], { env, terminal: true })).out).toMatch(/^account +Acme +acc_\S+$/m);
  expect((await rename("")).status).toBe(200);
  expect((await outgate(["doctor"], { env })).out).toMatch(/^ok +login +http/);
  expect(await outgate(["logout"], { env })).toMatchObject({ code: 0, err: expect.stringContaining("Logged out.") });
  expect((await outgate(["list"], { env })).err).toStartWith("There is no API key. Run `outgate login`");
  expect((await outgate(["logout"], { env })).err).toBe("No one was logged in.\n");
});

test("a key that the service refuses is not kept, and a key on the command line is refused without being repeated", async () => {
  const { env, file } = somebody();
  const refused = await outgate(["login", url], { env, input: "og_wrong" });
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("Nothing was kept.") });
  const onTheLine = await outgate(["login", OWNER_KEY], { env });
  expect(onTheLine.code).toBe(2);
  expect(onTheLine.err).toContain("belongs on no command line");
  expect(onTheLine.err).not.toContain(OWNER_KEY);
  expect((await outgate(["login", url], { env, input: "two words" })).err).toContain("must hold one API key");
  expect(() => statSync(file)).toThrow();
});

test("on a terminal the key is asked for, and not shown", async () => {
  const { env, file } = somebody();
  const said = await outgate(["login", url], { env, terminal: "real", input: `${OWNER_KEY}\r` });
  expect(said.out).toContain(`API key for ${url}: `);
  expect(said.out).toContain("Logged in");
  // What arrives before the command reads is shown by the terminal itself.
  expect(said.out.slice(said.out.indexOf("API key for"))).not.toContain(OWNER_KEY);
  expect(readFileSync(file, "utf8")).toContain(OWNER_KEY);
});

test("the key of a login goes to no other address; another key goes before it", async () => {
  const { env } = somebody();
  await outgate(["login", url], { env, input: OWNER_KEY });
  await using other = new Target(() => Response.json({}));
  const elsewhere = await outgate(["list"], { env: { ...env, OUTGATE_URL: other.url } });
  expect(elsewhere).toMatchObject({ code: 2, err: expect.stringContaining(`the login is for ${url}`) });
  expect(other.received).toHaveLength(0);
  expect((await outgate(["list"], { env: { ...env, OUTGATE_URL: `${url}/` } })).code).toBe(0);
  const own = await outgate(["whoami"], { env: { ...env, OUTGATE_URL: url, OUTGATE_API_KEY: OWNER_KEY } });
  expect(JSON.parse(own.out)).toMatchObject({ key_source: "environment" });
});

describe("a login's file", () => {
  test("is where the XDG specification says", () => {
    expect(loginFile({ XDG_CONFIG_HOME: "/c", HOME: "/h" })).toBe("/c/outgate/login.json");
    expect(loginFile({ XDG_CONFIG_HOME: "relative", HOME: "/h" })).toBe("/h/.config/outgate/login.json");
    expect(loginFile({})).toBeNull();
  });

  test.each([0o640, 0o604, 0o620, 0o777])(
    "of mode %o is not read, and the file says how to mend that",
    async (mode) => {
      const { env, file } = somebody();
      await writeLogin(env, { url: "http://a.example", key: "og_1" });
      expect(await readLogin(env)).toEqual({ url: "http://a.example", key: "og_1" });
      chmodSync(file, mode);
      expect(readLogin(env)).rejects.toThrow(`Run \`chmod 600 ${file}\``);
      expect((await outgate(["list"], { env })).code).toBe(1);
    },
  );

  test.each([
    "",
    "{}",
    '{"url":1,"key":"a"}',
    '{"url":"ftp://a","key":"og_1"}',
    '{"url":"http://a","key":"a b"}',
    "x".repeat(5_000),
  ])("that holds something else is refused: %#", async (text) => {
    const { env, file } = somebody();
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, text, { mode: 0o600 });
    expect(readLogin(env)).rejects.toThrow(/holds no login|must hold one API key/);
  });

  test("replaces an earlier one, and writes through no link", async () => {
    const { env, file } = somebody();
    const victim = join(folder, "victim");
    writeFileSync(victim, "precious");
    mkdirSync(join(file, ".."), { recursive: true });
    symlinkSync(victim, `${file}.partial`);
    symlinkSync(victim, file);
    await writeLogin(env, { url: "http://a.example", key: "og_2" });
    expect(readFileSync(victim, "utf8")).toBe("precious");
    expect(await readLogin(env)).toEqual({ url: "http://a.example", key: "og_2" });
  });
});

test.each([
  ["og_1\r", "og_1"],
  ["og_12\u007f\r", "og_1"],
  ["wrong\u0015og_1\n", "og_1"],
  ["og_1\u0003", null],
  ["\u0004", null],
  ["og_1\u0004", "og_1"],
  ["og_1", undefined],
])("a hidden line takes %j as %p", (typed, answer) => {
  expect(new HiddenLine().type(typed)).toBe(answer as string);
});

test("a hidden line holds no more than its bound", () => {
  const line = new HiddenLine();
  line.type("x".repeat(5_000));
  expect(line.type("\r")).toHaveLength(1_024);
});

const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};

function anIo(env: Io["env"], input = ""): Io {
  const ignore = () => {};
  return { env, out: ignore, err: ignore, isTty: false, input: new Blob([input]).stream() };
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

describe("the API key of a command", () => {
  test.each([
    ["og_1", "alone"],
    ["  og_1\n", "with white space around it"],
    ["Authorization: Bearer og_1\n", "in the header that curl reads"],
    ["authorization:bearer og_1\r\n", "in another spelling of it"],
    ["Bearer og_1", "behind its scheme"],
  ])("comes from a file that holds it: %j", async (text) => {
    const path = file("key", text);
    const io = anIo({ OUTGATE_API_KEY: "og_other" });
    expect(await readApiKey(path, io)).toBe("og_1");
    expect(await readApiKey(undefined, anIo({ OUTGATE_API_KEY_FILE: path }))).toBe("og_1");
  });

  test("comes from standard input, or the environment, and else from nowhere", async () => {
    expect(await readApiKey("-", anIo({}, "og_1\n"))).toBe("og_1");
    expect(await readApiKey(undefined, anIo({ OUTGATE_API_KEY: "og_2", OUTGATE_API_KEY_FILE: "/nowhere" }))).toBe(
      "og_2",
    );
    expect(await readApiKey(undefined, anIo({}))).toBeNull();
  });

  test.each([
    [["list", "--api-key-file"], {}, 2, "--api-key-file takes a file, or - for standard input."],
    [["list", "--api-key-file="], {}, 2, "--api-key-file takes a file, or - for standard input."],
    [["keys", "--api-key-file", "/nowhere/key"], {}, 1, "The file /nowhere/key can't be read."],
    [
      ["keys", "create", "x", "--role=agent", "--api-key-file=/nowhere/key"],
      {},
      1,
      "The file /nowhere/key can't be read.",
    ],
    [
      ["list"],
      { OUTGATE_API_KEY_FILE: "/nowhere/key" },
      1,
      "The file /nowhere/key in OUTGATE_API_KEY_FILE can't be read.",
    ],
    [["get", "--", "--api-key-file"], {}, 2, "There is no API key. Run `outgate login`"],
  ])("is told of where it can't be had: %j", async (args, env, code, complaint) => {
    const said = await outgate(args, { env });
    expect({ code: said.code, err: said.err }).toEqual({ code, err: expect.stringContaining(complaint) });
  });

  test("is never quoted where something else stands in its place", async () => {
    for (const text of ["", "og_1 og_2", "og_1\nog_2", "x".repeat(513)]) {
      const path = file("odd", text);
      const said = await readApiKey(path, anIo({})).catch(messageOf);
      expect(said).toBe(`The file ${path} must hold one API key and nothing else.`);
    }
    for (const text of ["og_1 og_2", "og_1\nog_2", "ключ", " "]) {
      const said = await readApiKey(undefined, anIo({ OUTGATE_API_KEY: text })).catch(messageOf);
      expect(said).toBe("OUTGATE_API_KEY must hold one API key and nothing else.");
    }
  });
});

test("where others list the processes, a command needs no secret on its line: neither its key nor a header of the call", async () => {
  await using target = new Target(200);
  const env = { OUTGATE_URL: url };
  const key = file("owner", `Authorization: Bearer ${OWNER_KEY}\n`);
  const headers = file("headers", "Authorization: Bearer of-the-target\n\nX-Plan: gold\n");
  const send = ["send", target.url, "--sync", "-H", `@${headers}`, "-H", "Accept: text/plain"];
  const [byFile, byInput, doctor] = await Promise.all([
    outgate(send, { env: { ...env, OUTGATE_API_KEY_FILE: key } }),
    outgate(["list", "--api-key-file", "-"], { env, input: OWNER_KEY }),
    outgate(["doctor", "--api-key-file", key], { env }),
  ]);
  expect([byFile.code, byInput.code, doctor.code]).toEqual([0, 0, 0]);
  const [received] = target.received;
  expect(received?.headers.get("authorization")).toBe("Bearer of-the-target");
  expect(received?.headers.get("x-plan")).toBe("gold");
  expect(received?.headers.get("accept")).toBe("text/plain");
  expect(doctor.out).not.toContain(OWNER_KEY);
});
