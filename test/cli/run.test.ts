import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { TObject } from "typebox";
import { CreateActionBody } from "../../src/api/action-schemas.ts";
import { PutDefaultsBody, PutHostSettingsBody } from "../../src/api/host-settings.ts";
import { ListParameters } from "../../src/api/list-schemas.ts";
import { CreateRuleBody } from "../../src/rules/schemas.ts";
import { SERVICE_COMMANDS } from "../../src/cli/wrong-usage.ts";
import { createProgram, runCommandLine } from "../../src/cli/program.ts";
import { addServerCommands } from "../../src/cli/server-commands.ts";
import { RELEASE, releaseText } from "../../src/config/config.ts";
import { librariesOf } from "../support/libraries.ts";
import { COMMAND_LINE } from "../support/programs.ts";
import { outgate, saidBy } from "./outgate.ts";

const NOWHERE = { env: {}, out: () => {}, err: () => {}, isTty: false };

const COMMANDS = createProgram(NOWHERE, addServerCommands).commands.filter(
  (command) => !["version", "complete"].includes(command.name()),
);

const say = (...args: readonly string[]) => outgate(args);

describe("the command line", () => {
  test.each([[[]], [["help"]], [["--help"]], [["-h"]]])("lists its commands on %p", async (args) => {
    const { code, out, err } = await say(...args);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    for (const command of COMMANDS) {
      expect(out).toContain(`  ${command.name()} `);
      expect(out).toContain(command.description());
    }
  });

  test("says its version", async () => {
    const version = { code: 0, out: `${releaseText(RELEASE)}\n`, err: "" };
    for (const word of ["--version", "-v", "version"]) expect(await say(word)).toEqual(version);
  });

  test.each([
    ["retyr", "retry"],
    ["aprove", "approve"],
    ["key", "keys"],
    ["hlep", "help"],
    ["start", "serve"],
    ["run", "serve"],
    ["up", "serve"],
    ["ls", "list"],
    ["create", "send"],
    ["events", "watch"],
  ])("takes %j for a mistyped %s", async (typed, meant) => {
    const { code, err } = await say(typed);
    expect({ code, err }).toEqual({ code: 2, err: `Unknown command "${typed}". Did you mean ${meant}?\n` });
    expect((await say("help", typed)).err).toStartWith(`Unknown command "${typed}". Did you mean ${meant}?\n`);
  });

  test("says where the service is if it is not in the package, as for npx", async () => {
    const errors: string[] = [];
    const io = { ...NOWHERE, err: (text: string) => void errors.push(text) };
    for (const args of [["serve"], ["up"], ["help", "demo"]]) expect(await runCommandLine(args, io)).toBe(2);
    const [serve, up, demo] = errors;
    expect(serve).toBe(
      'The service, and so "serve", is not in this package. Run `npm start` in a copy of Outgate\'s repository.\n',
    );
    expect(up).toContain("Run `npm start` in");
    expect(demo).toContain("Run `npm run outgate -- demo` in");
    // `mcp` is in both.
    const inPackage = new Set(createProgram(NOWHERE).commands.map((command) => command.name())).add("mcp");
    const names = COMMANDS.map((command) => command.name()).filter((name) => !inPackage.has(name));
    expect([...SERVICE_COMMANDS].toSorted()).toEqual(names.toSorted());
  });

  test("takes a mistyped option or verb for the one that is near", async () => {
    expect((await say("list", "--staus", "failed")).err).toStartWith(
      "Unknown option '--staus'. Did you mean --status?",
    );
    expect(await say("bulk")).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("bulk results <id>"),
    });
    expect((await say("--json", "list")).err).toBe(
      "Unknown option '--json'. Options go after the command, as in `outgate list --json`.\n",
    );
    expect((await say("keys", "revok")).err).toContain('not "revok". Did you mean revoke?');
    expect((await say("rules", "set")).err).toContain('not "set". Did you mean add?');
    expect((await say("keys", "delete")).err).toContain("Did you mean revoke?");
    expect((await say("hosts", "add", "a.example")).err).toContain("Did you mean set?");
    expect((await say("send", "post", "http://a.example/")).err).toStartWith("The method is an option: --method post.");
    expect((await say("list", "--frobnicate")).err).toStartWith("Unknown option '--frobnicate'.\n");
  });

  test("shows the same help of a command in both ways, with examples, and of its verbs", async () => {
    const { code, out } = await say("help", "retry");
    expect(code).toBe(0);
    expect(out).toBe((await say("retry", "--help")).out);
    expect(out).toContain("\nExamples:\n  # ");
    expect((await say("help", "keys", "create")).out).toContain("--replaces <id>");
    expect((await say("help", "keys", "crate")).err).toStartWith('Unknown command "crate". Did you mean create?');
  });

  test("has every command in its guide", async () => {
    const guide = await Bun.file(join(import.meta.dir, "../../docs/cli.md")).text();
    const named = new Set([...guide.matchAll(/`([a-z-]+)/g)].map(([, name]) => name));
    expect(COMMANDS.map((command) => command.name()).filter((name) => !named.has(name))).toEqual([]);
  });

  test("lists every command in a group, and the exit codes", async () => {
    const { out } = await say("help");
    expect(out).not.toContain("\nCommands:");
    expect(out).toContain("Exit codes: 0 success, 1 failed or refused, 2 wrong usage");
  });

  test("names a command that it does not have, and where they are listed", async () => {
    const { code, out, err } = await say("constructor");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain('"constructor"');
    expect(err).toContain("outgate help");
  });

  test("repeats no value of an option that it does not have", async () => {
    expect((await say("send", "https://a.example", "--token=secret")).err).toStartWith("Unknown option '--token'.\n");
    expect((await say("list", "--json=secret")).err).toStartWith("Option '--json' does not take an argument.\n");
    expect((await say("backup", "--token=secret")).err).toStartWith("backup takes a folder.\n");
  });

  test.each(COMMANDS.map((command) => command.name()))("%s tells how it is called", async (name) => {
    const { code, out } = await say(name, "--help");
    expect(code).toBe(0);
    expect(out).toContain(`outgate ${name}`);
  });
});

type Command = (typeof COMMANDS)[number];

/** `others`: options and arguments that stand for members of another name. */
test.each<[command: string, schema: TObject, others: Readonly<Record<string, string>>]>([
  ["send", CreateActionBody, { url: "<url>", body: "data", json: "data", headers: "header" }],
  ["list", ListParameters, { reason: "reason_text" }],
  ["hosts set", PutHostSettingsBody, {}],
  ["hosts defaults", PutDefaultsBody, {}],
  ["rules add", CreateRuleBody, { name: "<name>" }],
])("outgate %s has an option for every member of its request", (words, schema, others) => {
  const { options, registeredArguments } = words.split(" ").reduce<Command>((at, word) => {
    return at.commands.find((one) => one.name() === word) ?? at;
  }, createProgram(NOWHERE));
  const names = new Set([
    ...options.map((option) => option.attributeName()),
    ...registeredArguments.map((argument) => `<${argument.name()}>`),
  ]);
  expect(Object.keys(schema.properties).filter((name) => !names.has(others[name] ?? name))).toEqual([]);
});

test("no command waits for libraries of the service: schemas alone take a tenth of a second", async () => {
  const libraries = await librariesOf(join(import.meta.dir, "../../src/cli/binary-main.ts"), { isLazyToo: false });
  expect(libraries.toSorted()).toEqual(["@bomb.sh/tab", "commander", "ipaddr.js", "ky"]);
});

test.each([
  ["whose reader has read enough", "help | true; exit ${PIPESTATUS[0]}", { code: 0, err: "" }],
  ["on a full disk", "help > /dev/full", { code: 1, err: "The output can't be written (ENOSPC).\n" }],
  ["beside closed standard error", "frobnicate 2>&-", { code: 2, err: "" }],
])("an output %s", async (_what, line, expected) => {
  const shell = Bun.spawn(["bash", "-c", `"$0" "$1" ${line}`, process.execPath, COMMAND_LINE], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, err } = await saidBy(shell);
  expect({ code, err }).toEqual(expected);
});
