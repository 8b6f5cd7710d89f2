import type { Io } from "../../src/cli/io.ts";
import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { readApiKey } from "../../src/cli/session.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { Target } from "../support/target.ts";
import { outgate } from "./outgate.ts";
import { sharedFolder } from "../support/shared.ts";

const folder = sharedFolder();

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
  await using service = new Service();
  await using target = new Target(200);
  const env = { OUTGATE_URL: await service.ready() };
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
