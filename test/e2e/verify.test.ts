import { beforeAll, describe, expect, test } from "bun:test";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Webhook } from "standardwebhooks";
import { saidBy } from "../cli/outgate.ts";
import { FakeClock } from "../support/clock.ts";
import { openEngine } from "../support/engine.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";
import { type Program, PROGRAMS } from "./verify-programs.ts";

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
  const early = Math.floor(clock.now().getTime() / 1_000) + 360;
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
    forged("in six minutes, well signed", plain, signedAt(early)),
    forged("no signature", plain, { signature: "" }),
    forged("no id", plain, { id: "" }),
    forged("no time", plain, { timestamp: "" }),
    forged("a time that is no number", plain, { timestamp: "now" }),
    forged("a signature of another version", plain, { signature: plain.signature.replace("v1,", "v2,") }),
    forged("a signature without its version", plain, { signature: plain.signature.slice(3) }),
    forged("a cut signature", plain, { signature: plain.signature.slice(0, -4) }),
  ];
}
