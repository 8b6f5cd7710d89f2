import { seeWhole } from "../../src/receipts/see.ts";
import { describe, expect, test } from "bun:test";
import { KEYS } from "../http/stub-server.ts";
import { openRealServer } from "../http/real-server.ts";
import { codeSamples } from "../../src/api/code-samples.ts";
import type { Action } from "../../src/core/action.ts";
import { createCodeSamples } from "../../src/actions/as-code.ts";
import { anAction } from "../support/factory.ts";
import { shared } from "../support/shared.ts";

/** Ends a quoted text in one language or another, can't be seen, or means something to a shell. */
const NASTY = "'''`${process.exit(1)}`$(exit 1)\"\\ \\u0027 !history\n\u202e😀 ünï";

const action = anAction({
  url: "http://127.0.0.1:9/o'hara?x=$(exit)&`y`",
  method: "PUT",
  headers: { Accept: "it's `x` ${y}" },
  body: `{"n": 1.0, "big": 12345678901234567890, "__proto__": {"a": 1}, "text": ${JSON.stringify(NASTY)}}`,
  dedupe: "it's",
  retries: 7,
  onUnknown: "stop",
  approve: true,
  extras: { reason: "it's due", timeoutMs: 5_000, backoff: { baseMs: 200, capMs: 9_000 }, giveUpOn: [401, "5xx"] },
});

const textOf = (name: string, of: Action = action, url = "http://127.0.0.1:3000") =>
  createCodeSamples(seeWhole(of), url)?.find(({ label }) => label === name)?.text ?? "";

const app = await shared(openRealServer({ starts: false }));

const PROGRAMS = {
  curl: (text: string) => ["bash", "-c", text],
  TypeScript: (text: string) => [process.execPath, "-e", text],
  Python: (text: string) => ["python3", "-c", text],
} as const;

/** Runs code as somebody does who pastes it; null if this machine can't. */
function run(language: keyof typeof PROGRAMS, text: string) {
  const [program = "", ...args] = PROGRAMS[language](text);
  if (Bun.which(program) === null || (language === "curl" && Bun.which("curl") === null)) {
    console.log(`skipped: ${program} is not there`);
    return null;
  }
  const env = { ...process.env, OUTGATE_API_KEY: KEYS.agent };
  return Bun.spawn([program, ...args], { env, stdout: "pipe", stderr: "pipe" });
}

test.each(["curl", "TypeScript", "Python"] as const)("code for %s prints a stream as it comes", async (language) => {
  const samples = codeSamples({ method: "GET", url: `${app.url}/v1/events`, prints: "text" });
  await using child = run(language, samples.find(({ label }) => label === language)?.text ?? "");
  if (child === null) return;
  const { value } = await child.stdout.getReader().read();
  expect(new TextDecoder().decode(value)).toStartWith(":");
});

describe("code of an action", () => {
  test.each(["curl", "TypeScript", "Python"] as const)(
    "for %s, run as it stands, makes the same action",
    async (name) => {
      const child = run(name, textOf(name, { ...action, dedupe: `${name}'s` }, app.url));
      if (child === null) return;
      const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
      const id = /act_\w+/.exec(output)?.[0] ?? `none: ${output} ${errors}`;
      if (id.startsWith("none")) throw new Error(id);
      const { body, ...made } = await app.engine.get(id);
      // In other spellings the same text; numbers as they are written.
      expect(body).toContain('{"n":1.0,"big":12345678901234567890,"__proto__":{"a":1},"text":"');
      expect(JSON.parse(body ?? "null").text).toBe(NASTY);
      const { url, method, headers, retries, onUnknown, approve, extras } = action;
      expect(made).toMatchObject({ url, method, headers, retries, onUnknown, approve, extras, dedupe: `${name}'s` });
    },
  );

  test("for an agent's client is a call of the tool", () => {
    const call = JSON.parse(textOf("MCP call"));
    expect(call).toMatchObject({
      method: "tools/call",
      params: { name: "create", arguments: { url: action.url, method: "PUT", body: { text: NASTY }, approve: true } },
    });
  });

  test("holds no secret, and says where one belongs", () => {
    const secret = "canary-0123456789abcdef";
    const of = anAction({
      url: `https://api.example.com/?token=${secret}&page=2`,
      headers: { Authorization: `Bearer ${secret}`, "X-Api-Key": "canary", Accept: "text/plain" },
      body: `{"password":"canary","nested":{"api_key":"${secret}"},"amount":5}`,
      callback: `https://hooks.example.com/?key=${secret}`,
    });
    for (const { label, text } of createCodeSamples(seeWhole(of), "http://127.0.0.1:3000") ?? []) {
      expect(text.includes("canary") || text.includes("cdef"), label).toBe(false);
      for (const seen of ["YOUR_AUTHORIZATION", "YOUR_X_API_KEY", "token=YOUR_SECRET&page=2", "text/plain", "5"]) {
        expect(text).toContain(seen);
      }
      expect(text).not.toContain("•");
    }
  });

  test("is not made of what is too long for a command", () => {
    expect(
      createCodeSamples(seeWhole(anAction({ body: `{"x":"${"a".repeat(20_000)}"}` })), "http://127.0.0.1:3000"),
    ).toBeNull();
  });

  test("shows nothing that could not be seen where it is pasted", () => {
    for (const { text } of createCodeSamples(seeWhole(action), "http://127.0.0.1:3000") ?? [])
      expect(text).not.toContain("\u202e");
  });
});
