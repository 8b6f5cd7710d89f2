import { afterAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHmac } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Service } from "../support/service.ts";
import { type Received, Target } from "../support/target.ts";
import { shared } from "../support/shared.ts";
import { openGuideShell } from "./guide-shell.ts";

// Processes, on a machine that may be busy.
setDefaultTimeout(60_000);

const GUIDE = await Bun.file(join(import.meta.dir, "../../docs/credentials.md")).text();

/** Which requests a service takes, and what it answers to others. */
interface StandIn {
  readonly secretFile: string;
  readonly secret: string;
  readonly takes: (received: Received, secret: string) => boolean;
  readonly refusal: () => Response;
}

const STAND_INS: Readonly<Record<string, StandIn>> = {
  "api.stripe.com": {
    secretFile: "stripe.key",
    secret: "rk_live_51Hq9StripeRecipe4242",
    // As Stripe does: the key as a token, or as a user name with an empty password; the body as a form.
    takes: ({ headers, body }, secret) =>
      [`Bearer ${secret}`, `Basic ${btoa(`${secret}:`)}`].includes(headers.get("authorization") ?? "") &&
      headers.get("content-type") === "application/x-www-form-urlencoded" &&
      new URLSearchParams(body).has("charge"),
    refusal: () => Response.json({ error: { type: "invalid_request_error" } }, { status: 401 }),
  },
  "api.github.com": {
    secretFile: "github.token",
    secret: "github_pat_11ABCDE0recipe",
    // GitHub takes no request without a user agent.
    takes: ({ headers }, secret) =>
      [`Bearer ${secret}`, `token ${secret}`].includes(headers.get("authorization") ?? "") &&
      headers.get("user-agent") !== null &&
      headers.get("accept") === "application/vnd.github+json",
    refusal: () => Response.json({ message: "Bad credentials" }, { status: 401 }),
  },
  "slack.com": {
    secretFile: "slack.token",
    secret: "xoxb-1234567890-recipe",
    takes: ({ headers }, secret) =>
      secret.startsWith("xoxb-") &&
      headers.get("authorization") === `Bearer ${secret}` &&
      headers.get("content-type")?.startsWith("application/json") === true,
    refusal: () => Response.json({ ok: false, error: "invalid_auth" }),
  },
  "orders.internal.example.com": {
    secretFile: "orders.key",
    secret: "an-internal-key-of-32-characters",
    takes: ({ headers, body }, secret) => {
      const time = headers.get("x-timestamp") ?? "";
      const signature = createHmac("sha256", secret).update(`${time}.`).update(body).digest("hex");
      return Math.abs(Date.now() / 1_000 - Number(time)) < 300 && headers.get("x-signature") === `v1=${signature}`;
    },
    refusal: () => new Response(null, { status: 401 }),
  },
};

const RECIPES = GUIDE.split(/^## /m)
  .find((section) => section.startsWith("Recipes\n"))
  ?.split(/^### /m)
  .slice(1)
  .map((recipe) => {
    const commands = /^```sh\n([\s\S]*?)^```/m.exec(recipe)?.[1]?.trim().split("\n") ?? [];
    const [, leftOut = ""] = /^- \*\*Left out:\*\*((?:.|\n(?! *- |\n))*)/m.exec(recipe) ?? [];
    const paths = [...leftOut.matchAll(/`(\/[^`]+)`/g)].map(([, path = ""]) => path);
    return { title: recipe.split("\n")[0] ?? "", add: commands[0] ?? "", send: commands[1] ?? "", paths };
  });

const service = await shared(new Service());
const url = await service.ready();
const run = openGuideShell(service, url);

test("the guide has the four recipes", () => {
  expect(RECIPES?.map(({ title }) => title)).toEqual(["Stripe", "GitHub", "Slack", "An internal API with HMAC"]);
});

describe.each(RECIPES ?? [])("the recipe of $title", ({ add, send, paths }) => {
  const host = /--host (\S+)/.exec(add)?.[1] ?? "";
  const standIn = STAND_INS[host];
  if (standIn === undefined) throw new Error(`There is no stand-in for ${host}.`);
  const { secret, secretFile, takes, refusal } = standIn;
  const target = new Target((received) => (takes(received, secret) ? Response.json({ ok: true }) : refusal()));
  afterAll(() => target[Symbol.asyncDispose]());
  const { host: own } = new URL(target.url);
  const here = (command: string) =>
    command.replaceAll(`https://${host}/`, target.url).replaceAll(`--host ${host}`, `--host ${own}`);
  const answerOf = async (command: string): Promise<unknown> => {
    const { output, errors } = await run(`${here(command)} --retries 1 --wait 30 --json`);
    expect(errors).not.toContain("error");
    return JSON.parse(output).response_body;
  };

  test("adds it, and its call is taken by the service", async () => {
    writeFileSync(join(service.folder, secretFile), `${secret}\n`);
    const added = await run(here(add));
    expect(added.code, added.errors).toBe(0);
    expect(added.output).not.toContain("Its bounds");
    expect(await answerOf(send)).toEqual({ ok: true });
    expect(await answerOf(send.replace(/ --credential \S+/, ""))).not.toEqual({ ok: true });
    expect(target.received).toHaveLength(2);
  });

  test("leaves out what would answer with a secret", async () => {
    expect(paths.length).toBeGreaterThan(1);
    const [, credential = ""] = /--credential (\S+)/.exec(send) ?? [];
    for (const path of paths) {
      const body = JSON.stringify({ url: new URL(path, target.url), credential });
      const refused = await service.request("/v1/actions", { method: "POST", body });
      expect([refused.status, await refused.text()], path).toEqual([403, expect.stringContaining("may go only to")]);
    }
    expect(target.received).toHaveLength(2);
  });
});
