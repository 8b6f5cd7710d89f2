import { describe, expect, test } from "bun:test";
import { COMMANDS } from "../../src/cli/commands.ts";
import { run } from "../../src/cli/run.ts";
import { VERSION } from "../../src/config/config.ts";

/** Runs a command line and keeps what it says. */
async function say(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let out = "";
  let err = "";
  const io = { env: {}, out: (text: string) => (out += text), err: (text: string) => (err += text), isTty: false };
  const code = await run(args, io, COMMANDS);
  return { code, out, err };
}

describe("the command line", () => {
  test.each([[[]], [["help"]], [["--help"]], [["-h"]]])("lists its commands on %p", async (args) => {
    const { code, out, err } = await say(...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const [name, { summary }] of Object.entries(COMMANDS)) {
      expect(out).toContain(name);
      expect(out).toContain(summary);
    }
  });

  test("says its version", async () => {
    expect(await say("--version")).toEqual({ code: 0, out: `${VERSION}\n`, err: "" });
  });

  test("names a command that it does not have, and where they are listed", async () => {
    const { code, out, err } = await say("constructor");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain('"constructor"');
    expect(err).toContain("outgate help");
  });

  test("shows the usage of a command that is called wrongly", async () => {
    const { code, err } = await say("serve", "now");
    expect(code).toBe(2);
    expect(err).toContain("serve takes no arguments");
    expect(err).toContain("Usage: outgate serve");
  });

  test.each(Object.keys(COMMANDS))("%s tells how it is called", async (name) => {
    const { code, out } = await say(name, "--help");
    expect(code).toBe(0);
    expect(out).toContain(`outgate ${name}`);
  });
});
