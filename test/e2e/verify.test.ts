import { beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { saidBy } from "../cli/outgate.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine } from "../support/engine.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";

/** A program around a snippet of docs/verify.md: reads one call a line, its parts in base64, and prints true or false for each. */
interface Program {
  readonly language: string;
  /** The language of the block in the docs. */
  readonly block: string;
  /** Where what runs it may be; the first that is there. */
  readonly runners: readonly string[];
  /** Files by name, the snippet in its place. */
  readonly files: (snippet: string) => Readonly<Record<string, string>>;
  /** Its compiler builds its own library first, which takes a cold machine most of a minute: `npm run test:long` runs it. */
  readonly isLong?: boolean;
  /** What stands behind the runner. */
  readonly args: readonly string[];
}

const NAMES = ["webhook-id", "webhook-timestamp", "webhook-signature"];

const TYPESCRIPT = `
for await (const line of console) {
  const [secret = "", body = "", ...parts] = line.split(" ").map((part) => Buffer.from(part.slice(1), "base64").toString());
  const headers = new Headers(${JSON.stringify(NAMES)}.map((name, at) => [name, parts[at] ?? ""]));
  console.log(isFromOutgate(secret, headers, body));
}`;

const PYTHON = `
import sys
for line in sys.stdin:
    secret, body, *parts = [base64.b64decode(part[1:]) for part in line.split()]
    headers = dict(zip(${JSON.stringify(NAMES)}, [part.decode() for part in parts]))
    print(str(is_from_outgate(secret.decode(), headers, body)).lower())
`;

const GO = `package main

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"
)

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var parts [][]byte
		for _, part := range strings.Fields(lines.Text()) {
			bytes, _ := base64.StdEncoding.DecodeString(part[1:])
			parts = append(parts, bytes)
		}
		header := http.Header{}
		for at, name := range []string{${NAMES.map((name) => JSON.stringify(name)).join(", ")}} {
			header.Set(name, string(parts[2+at]))
		}
		fmt.Println(IsFromOutgate(string(parts[0]), header, parts[1]))
	}
}
`;

const JAVA = `
class Main {
  public static void main(String[] args) throws Exception {
    var lines = new java.io.BufferedReader(new java.io.InputStreamReader(System.in));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split(" ");
      Map<String, String> headers = new java.util.HashMap<>();
      String[] names = {${NAMES.map((name) => JSON.stringify(name)).join(", ")}};
      for (int at = 0; at < names.length; at++) headers.put(names[at], new String(bytes(parts[2 + at])));
      System.out.println(Outgate.isFromOutgate(new String(bytes(parts[0])), headers, bytes(parts[1])));
    }
  }

  static byte[] bytes(String part) {
    return Base64.getDecoder().decode(part.substring(1));
  }
}
`;

const RUBY = `
STDIN.each_line do |line|
  secret, body, *parts = line.split.map { |part| Base64.strict_decode64(part[1..]) }
  puts from_outgate?(secret, ${JSON.stringify(NAMES)}.zip(parts).to_h, body)
end
`;

const PHP = `
while (($line = fgets(STDIN)) !== false) {
    $parts = array_map(fn ($part) => base64_decode(substr($part, 1)), explode(' ', trim($line)));
    $headers = array_combine(${JSON.stringify(NAMES)}, array_slice($parts, 2));
    echo is_from_outgate($parts[0], $headers, $parts[1]) ? "true\\n" : "false\\n";
}
`;

const PROGRAMS: readonly Program[] = [
  {
    language: "TypeScript",
    block: "ts",
    runners: [process.execPath],
    files: (snippet) => ({ "verify.ts": snippet + TYPESCRIPT }),
    args: ["verify.ts"],
  },
  {
    language: "Python",
    block: "python",
    runners: ["python3"],
    files: (snippet) => ({ "verify.py": snippet + PYTHON }),
    args: ["verify.py"],
  },
  {
    language: "Go",
    block: "go",
    runners: ["go", "/usr/local/go/bin/go"],
    // Imports come first in a file of Go, so that the rest is a file of its own.
    files: (snippet) => ({ "outgate.go": `package main\n\n${snippet}`, "main.go": GO }),
    args: ["run", "outgate.go", "main.go"],
    isLong: true,
  },
  {
    language: "Java",
    block: "java",
    runners: ["java"],
    // The first class of a file is the one that is run.
    files: (snippet) => ({ "Main.java": snippet.replace("\nclass Outgate", `${JAVA}\nclass Outgate`) }),
    args: ["Main.java"],
  },
  {
    language: "Ruby",
    block: "ruby",
    runners: ["ruby"],
    files: (snippet) => ({ "verify.rb": snippet + RUBY }),
    args: ["verify.rb"],
  },
  {
    language: "PHP",
    block: "php",
    runners: ["php"],
    files: (snippet) => ({ "verify.php": `<?php\n${snippet}${PHP}` }),
    args: ["verify.php"],
  },
];

const ROOT = join(import.meta.dir, "../..");

/** A compiler that has never run here builds its own library first. */
const COMPILER_MS = 240_000;

/** A call as a target sees it, and whether it is ours. */
interface Call {
  readonly what: string;
  readonly isOurs: boolean;
  readonly secret: string;
  readonly body: string;
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
}

let calls: readonly Call[] = [];

beforeAll(async () => {
  calls = await realCalls();
});

describe("the snippet of docs/verify.md", () => {
  for (const program of PROGRAMS) {
    const runner = program.runners.map((name) => Bun.which(name)).find((path) => path !== null);
    const isLater = program.isLong === true && process.env["LONG_TESTS"] === undefined;
    if (runner === undefined)
      console.log(`verify: ${program.language} is not on this machine, its snippet was not run`);
    else if (isLater) console.log(`verify: the snippet in ${program.language} is run by \`npm run test:long\``);
    test.skipIf(runner === undefined || isLater)(
      `in ${program.language} accepts what Outgate sends, by either secret, and nothing else`,
      async () => {
        const told = await run(program, runner ?? "");
        const expected = calls.map(({ what, isOurs }) => `${what}: ${isOurs}`);
        expect(calls.map(({ what }, at) => `${what}: ${told[at]}`)).toEqual(expected);
      },
      COMPILER_MS,
    );
  }

  test("is there in every language that the page has a heading for", async () => {
    const headings = [...(await docs()).matchAll(/^### (.*)$/gm)].map(([, heading]) => heading);
    expect(headings).toEqual(PROGRAMS.map(({ language }) => language));
  });
});

async function run({ block, files, args }: Program, runner: string): Promise<readonly string[]> {
  const snippet = new RegExp(`\\n\`\`\`${block}\\n([\\s\\S]*?)\\n\`\`\`\\n`).exec(await docs())?.[1];
  if (snippet === undefined) throw new Error(`docs/verify.md has no snippet of ${block}.`);
  await using folder = await temporaryFolder();
  symlinkSync(join(ROOT, "node_modules"), join(folder.path, "node_modules"));
  for (const [name, text] of Object.entries(files(`${snippet}\n`))) writeFileSync(join(folder.path, name), text);
  const lines = calls.map(({ secret, body, id, timestamp, signature }) =>
    // A letter in front, so that an empty part is a word too.
    [secret, body, id, timestamp, signature].map((part) => `x${Buffer.from(part).toString("base64")}`).join(" "),
  );
  const child = Bun.spawn([runner, ...args], {
    cwd: folder.path,
    env: { ...process.env, GOTOOLCHAIN: "local" },
    stdin: new Blob([`${lines.join("\n")}\n`]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const { code, out, err } = await saidBy(child);
  if (code !== 0) throw new Error(err);
  return out.trim().split("\n");
}

function docs(): Promise<string> {
  return Bun.file(join(ROOT, "docs/verify.md")).text();
}

/** Calls that really went out, before a rotation and after it, and what somebody else could make of them. */
async function realCalls(): Promise<readonly Call[]> {
  await using target = new Target(200);
  await using engine = await openEngine({ clock: new FakeClock(new Date()) });
  const { signingService, clock, owner } = engine;
  const { origin } = new URL(target.url);
  const call = async (what: string, secret: string, body: string | null): Promise<Call> => {
    const { id } = await engine.create({ url: target.url, body });
    await engine.saw(id, { status: "completed" });
    const got = target.received.find(({ headers }) => headers.get("webhook-id") === id);
    const header = (name: string) => got?.headers.get(name) ?? "";
    const [timestamp, signature] = [header("webhook-timestamp"), header("webhook-signature")];
    return { what, isOurs: true, secret, body: got?.body ?? "", id, timestamp, signature };
  };
  const forged = (what: string, from: Call, change: Partial<Call>): Call => ({
    ...from,
    what,
    isOurs: false,
    ...change,
  });

  const old = (await signingService.read(owner, origin)).secret;
  const plain = await call("a call", old, '{"a":"grüße \u{1f600}","n":1.0}');
  const empty = await call("a call without a body", old, null);
  await signingService.rotate(owner, origin);
  const { secret } = await signingService.read(owner, origin);
  const rotated = await call("a call after a rotation, by the new secret", secret, "{}");
  const stale = Math.floor(clock.now().getTime() / 1_000) - 360;
  const early = Math.floor(clock.now().getTime() / 1_000) + 600;
  const signedAt = (seconds: number) => ({
    timestamp: String(seconds),
    signature: new Webhook(old).sign(plain.id, new Date(seconds * 1_000), plain.body),
  });
  return [
    plain,
    empty,
    rotated,
    { ...rotated, what: "the same by the old secret", secret: old },
    forged("another body", plain, { body: `${plain.body} ` }),
    forged("another id", plain, { id: "act_other" }),
    forged("another time", plain, { timestamp: String(Number(plain.timestamp) - 1) }),
    forged("the secret of another origin", plain, {
      secret: (await signingService.read(owner, "https://a.example")).secret,
    }),
    forged("the new secret for an old call", plain, { secret }),
    forged("six minutes ago, well signed", plain, signedAt(stale)),
    forged("in ten minutes, well signed", plain, signedAt(early)),
    forged("without a secret, signed by the empty key", plain, {
      secret: "",
      signature: `v1,${createHmac("sha256", "").update(`${plain.id}.${plain.timestamp}.${plain.body}`).digest("base64")}`,
    }),
    forged("no signature", plain, { signature: "" }),
    forged("no id", plain, { id: "" }),
    forged("no time", plain, { timestamp: "" }),
    forged("a time that is no number", plain, { timestamp: "now" }),
    forged("a signature of another version", plain, { signature: plain.signature.replace("v1,", "v2,") }),
    forged("a signature without its version", plain, { signature: plain.signature.slice(3) }),
    forged("a cut signature", plain, { signature: plain.signature.slice(0, -4) }),
  ];
}
