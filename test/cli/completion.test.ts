import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Io } from "../../src/cli/io.ts";
import { completionsFor } from "../../src/cli/completion.ts";
import { createProgram } from "../../src/cli/program.ts";
import { addServerCommands } from "../../src/cli/server-commands.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { shared, sharedFolder } from "../support/shared.ts";
import { outgate, outgateAlone } from "./outgate.ts";

const NOWHERE: Io = { env: {}, out: () => {}, err: () => {}, isTty: false };

const proposed = (...words: readonly string[]) => {
  const { proposals, ...rest } = completionsFor(createProgram(NOWHERE, addServerCommands), words);
  return { values: proposals.map(({ value }) => value), ...rest };
};

test.each([
  [["ke"], ["keys"]],
  [
    ["keys", ""],
    ["list", "create", "revoke"],
  ],
  [
    ["keys", "create", "--r"],
    ["--role", "--replaces"],
  ],
  [
    ["keys", "create", "--role", "a"],
    ["approver", "agent"],
  ],
  [["keys", "--js"], ["--json"]],
  [["server", "--js"], ["--json"]],
  [["bulk", "--js"], []],
  [["--js"], []],
  [["keys", "create", "a name", "--role", "owner", "--hos"], ["--host"]],
  [["list", "--status", "act"], ["active"]],
  [["list", "--status=act"], ["--status=active"]],
  [
    ["list", "--status", "failed", "--co"],
    ["--code", "--count"],
  ],
  [
    ["send", "https://a.example/", "-X", "P"],
    ["POST", "PUT", "PATCH"],
  ],
  [["send", "-"], null],
  [["help", "ke"], ["keys"]],
  [["help", "keys", "cr"], ["create"]],
  [["completion", "f"], ["fish"]],
  [["list", "--search", ""], []],
  [["nonsense", ""], []],
  [["complete"], []],
] as const)("%j is completed from the definitions", (words, completions) => {
  const { values } = proposed(...words);
  if (completions === null) expect(values.length).toBeGreaterThan(20);
  else expect(values.toSorted()).toEqual([...completions].toSorted());
});

test("every command and every option of it that is shown is proposed", () => {
  const program = createProgram(NOWHERE, addServerCommands);
  for (const command of program.createHelp().visibleCommands(program)) {
    expect(proposed(command.name()).values).toContain(command.name());
    const options = command
      .createHelp()
      .visibleOptions(command)
      .flatMap(({ long }) => long ?? []);
    expect(proposed(command.name(), "--").values).toEqual(expect.arrayContaining(options));
  }
});

test("files are proposed where a file is taken, and ids of actions where one is", () => {
  expect(proposed("get", "--api-key-file", "")).toEqual({ values: [], takesFiles: true, idFor: null });
  expect(proposed("backup", "")).toMatchObject({ takesFiles: true });
  expect(proposed("approve", "act_")).toEqual({ values: [], takesFiles: false, idFor: "approve" });
  expect(proposed("retry", "--id", "")).toMatchObject({ idFor: "list" });
  expect(proposed("keys", "revoke", "")).toMatchObject({ idFor: null });
});

test("a shell that is not supported is refused", async () => {
  const { code, err } = await outgate(["completion", "tcsh"]);
  expect(code).toBe(2);
  expect(err).toContain("completion takes bash, zsh, fish, powershell");
  expect((await outgateAlone(["completion", "powershell"])).out).toContain("outgate complete '--'");
});

const service = await shared(new Service());
const env = { OUTGATE_URL: await service.ready(), OUTGATE_API_KEY: OWNER_KEY };
const held = String((await service.create({ url: "http://127.0.0.1:9/", approve: true, title: "Pay Ann" }))["id"]);
const folder = sharedFolder();
mkdirSync(join(folder, "bin"));
const script = `#!/bin/sh\nexec "${process.execPath}" "${COMMAND_LINE}" "$@"\n`;
writeFileSync(join(folder, "bin", "outgate"), script, { mode: 0o755 });
writeFileSync(join(folder, "key.txt"), "");

describe("with a service, a shell", () => {
  const place = { PATH: `${folder}/bin:${process.env["PATH"]}`, HOME: folder };

  /** What a person sees who types these keys into a shell of their own. */
  async function typed(shell: readonly string[], keys: string): Promise<string> {
    const child = Bun.spawn(["script", "-qec", shell.join(" "), "/dev/null"], {
      cwd: folder,
      env: { ...place, TERM: "xterm", PS1: "$ ", COLUMNS: "200", ...env },
      stdin: new Blob([`${keys}\nexit\n`]),
      stdout: "pipe",
    });
    const out = await new Response(child.stdout).text();
    await child.exited;
    return out;
  }

  const SHELLS = [
    ["bash", ["bash", "--norc", "-i"], "source <(outgate completion bash); source <(outgate completion bash)\n"],
    ["zsh", ["zsh", "-f", "-i"], "source <(outgate completion zsh)\n"],
  ] as const;

  // After the Tab: to the beginning of the line, `echo` before it, and Enter.
  const TELL = "\t\u0001echo SAYS \u0005\n";

  for (const [name, shell, source] of SHELLS) {
    test.skipIf(Bun.which(name) === null)(
      `${name} completes commands, values, files and ids, and runs nothing that is typed`,
      async () => {
        const lines = [
          ["outgate retr", "outgate retry"],
          ["outgate keys cr", "outgate keys create"],
          ["outgate list --status=fai", "outgate list --status=failed"],
          ["outgate list --status fai", "outgate list --status failed"],
          ["outgate get --api-key-file ke", "outgate get --api-key-file key.txt"],
          [`outgate approve ${held.slice(0, 6)}`, `outgate approve ${held}`],
        ] as const;
        // The last line is given up after the Tab.
        const keys = `${lines.map(([line]) => line + TELL).join("")}outgate list $(touch ran) --stat\t\u0015`;
        const out = await typed(shell, source + keys);
        const said = Bun.stripANSI(out).replaceAll("\r", "").split("\n");
        for (const [, whole] of lines) expect(said).toContain(`SAYS ${whole}`);
        expect(existsSync(join(folder, "ran"))).toBe(false);
      },
    );
  }

  test.skipIf(Bun.which("fish") === null)("fish completes commands, values, files and ids", async () => {
    const ask = async (line: string) => {
      const program = `outgate completion fish | source; complete -C '${line}'`;
      const child = Bun.spawn(["fish", "--no-config", "-c", program], {
        cwd: folder,
        env: { ...place, ...env },
        stdout: "pipe",
      });
      return (await new Response(child.stdout).text()).trimEnd().split("\n");
    };
    expect((await ask("outgate retr"))[0]).toStartWith("retry\t");
    expect(await ask("outgate list --status=fai")).toEqual(["--status=failed"]);
    expect(await ask("outgate get --api-key-file ke")).toEqual(["key.txt"]);
    expect(await ask("outgate approve ")).toEqual([`${held}\theld: Pay Ann`]);
  });

  test("without a service, or with a key that it refuses, no id is proposed, and nothing is said", async () => {
    for (const wrong of [
      { OUTGATE_URL: "http://127.0.0.1:9" },
      { OUTGATE_API_KEY: "og_wrong" },
      { OUTGATE_URL: "x" },
    ]) {
      const said = await outgate(["complete", "--", "approve", ""], { env: { ...env, ...wrong } });
      expect(said).toEqual({ code: 0, out: ":4\n", err: "" });
    }
  });
});
