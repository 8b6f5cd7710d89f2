import { pressLink } from "../support/forms.ts";
import { saidBy, start } from "../cli/outgate.ts";
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { createClient, type OutgateClient } from "../../src/client/client.ts";
import { Mailbox } from "../support/mailbox.ts";
import { createDatabase, hasPostgres } from "../support/postgres.ts";
import { OWNER_KEY, Service } from "../support/service.ts";
import { temporaryFolder } from "../support/store.ts";
import { Target } from "../support/target.ts";
import { until } from "../support/until.ts";

// Six processes one after the other, on a machine that may be busy.
setDefaultTimeout(120_000);

/** Actions besides those that the test looks at: their table takes several commits. */
const MORE_ACTIONS = 1_300;

const KILLS = 3;

/** The command as a person runs it on the server's machine. */
const migrate = (folder: string, to: string) => start(["migrate", "--to", to], { folder });

/** What the file and its log hold. */
function digestsOf(folder: string): readonly string[] {
  return ["", "-wal"].map((suffix) => {
    const path = join(folder, `data/outgate.db${suffix}`);
    // An empty log is none: whoever reads the file leaves one.
    const bytes = existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
    return bytes.length === 0 ? "" : Bun.hash(bytes).toString(16);
  });
}

const clientOf = (url: string, apiKey = OWNER_KEY) => createClient({ url, apiKey });

/** What a service tells about its account, and about each action that waits for nothing, with timeline and receipt. */
async function storyOf(client: OutgateClient) {
  const actions = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await client.listActions({ limit: 100, ...(cursor === undefined ? {} : { cursor }) });
    actions.push(...page.data.filter(({ dedupe }) => dedupe?.startsWith("moving") !== true));
    cursor = page.next_cursor;
  }
  const looked = actions.filter(({ dedupe }) => dedupe !== null);
  return {
    actions,
    timelines: await Promise.all(looked.map(({ id }) => client.getTimeline(id))),
    receipts: await Promise.all(looked.map(({ receipt_url: url }) => client.getReceipt(url ?? ""))),
    // The owner's key makes further actions after the story.
    keys: (await client.listKeys()).data.map((key) => ({
      ...key,
      last_used_at: null,
      last_action_at: null,
      last_action: null,
      actions_last_day: 0,
    })),
    pauses: await client.listPauses(),
    hosts: await client.listCallbackHosts(),
    // Reading a secret is an entry too.
    audit: (await client.listAudit({ limit: 100 })).data.filter(({ kind }) => kind !== "revealed"),
    signing: await client.getSigningSecret("https://api.example.com"),
  };
}

describe.skipIf(!hasPostgres)("outgate migrate", () => {
  test("moves a service to PostgreSQL, killed three times, with everything that it holds and owes", async () => {
    await using folder = await temporaryFolder();
    await using mailbox = new Mailbox();
    await using target = new Target(() => Response.json({ done: true }));
    await using odd = new Target(() => new Response("a\u0000b \u{1f600}"));
    await using failing = new Target(503);
    let isListening = false;
    await using listener = new Target(() => new Response(null, { status: isListening ? 200 : 503 }));
    const env = { ...mailbox.env, RETRY_BASE_MS: "3000", RATE_LIMIT_PER_SECOND: "0" };

    const filled = await (async () => {
      await using service = new Service({ folder: folder.path, env });
      const url = await service.ready();
      const client = clientOf(url);
      const worker = await client.createKey({ name: "worker", role: "agent", hold: "writes" });
      const revoked = await client.createKey({ name: "old", role: "agent" });
      const stopped = await client.createKey({ name: "stopped", role: "agent" });
      await client.revokeKey(revoked.id);
      await client.rotateSigningSecret();
      await client.addCallbackHost("hooks.example.com");
      const to = { url: target.url };
      const headers = { "X-Secret": "canary-4711" };
      const more = Array.from({ length: MORE_ACTIONS }, (_, n) => client.createAction({ ...to, body: { n } }));
      const ids = new Set((await Promise.all(more)).map(({ id }) => id));
      const isDone = async () => {
        const { data } = await client.listActions({ status: ["pending", "active"], limit: 100 });
        return !data.some(({ id }) => ids.has(id));
      };
      while (!(await isDone())) await Bun.sleep(50);
      await client.createAction(
        { ...to, dedupe: "done", headers, body: { n: 1 }, sync: true },
        { idempotencyKey: "k1" },
      );
      await client.createAction({ url: odd.url, dedupe: "odd", sync: true });
      await client.createAction({ url: failing.url, dedupe: "failed", retries: 1, sync: true });
      const refused = await client.createAction({ ...to, dedupe: "refused", approve: true, reason: "To see." });
      await client.cancelAction(refused.id, { reason: "No." });
      await clientOf(url, worker.key).createAction({ ...to, dedupe: "held by its key" });
      await client.createPause({ key_id: stopped.id, reason: "Wait." });
      await clientOf(url, stopped.key).createAction({ ...to, dedupe: "paused" });
      const story = await storyOf(client);
      // Last, so that none of it is tried often before the stop: each try makes the next one later.
      const mailed = { ...to, dedupe: "moving: mailed", approve: true, notify: { email: "boss@example.com" } };
      const held = await client.createAction(mailed);
      await mailbox.took(1);
      const owing = await client.createAction({ ...to, dedupe: "moving: owing", callback: listener.url, sync: true });
      await listener.saw(1);
      await client.createAction({ url: failing.url, dedupe: "moving: retrying", retries: 9 });
      expect(await service.end()).toBe(0);
      return { story, worker: worker.key, revoked: revoked.key, held: held.id, owing: owing.id };
    })();

    const to = await createDatabase();
    const before = digestsOf(folder.path);
    await using database = new SQL(to, { max: 1 });
    const progress = async () => {
      const rows: readonly { value: string }[] = await database`SELECT value FROM facts WHERE name = 'transfer'`.catch(
        () => [],
      );
      return rows[0]?.value ?? "";
    };
    for (let kill = 0; kill < KILLS; kill += 1) {
      const command = migrate(folder.path, to);
      let last = await progress();
      for (let seen = 0; seen < 2 && command.exitCode === null;) {
        await Bun.sleep(1);
        const now = await progress();
        if (now !== last) seen += 1;
        last = now;
      }
      command.kill("SIGKILL");
      await command.exited;
      expect(await progress()).not.toBe("");
    }
    const key = readFileSync(join(folder.path, "data/outgate.db.key"), "latin1").trim();
    {
      // Not before it is complete.
      await using early = new Service({ env: { ...env, DATABASE_URL: to, SECRET_KEY: key } });
      expect(await early.process.exited).toBe(1);
      expect(await early.complaint()).toContain("is not complete. Run `outgate migrate` again");
    }
    const { code, out, err } = await saidBy(migrate(folder.path, to));
    expect(code).toBe(0);
    expect(err).toContain("Continuing an interrupted copy.");
    expect(err).toMatch(/verified \d+ of \d+ rows of actions\n/);
    expect(out).toMatch(/^All \d+ rows of \d+ tables are in PostgreSQL\. /);
    expect(out).toContain("Set SECRET_KEY on every node to the content of ");
    expect(out + err).not.toContain(key);
    expect(out + err).not.toContain(to);
    expect(digestsOf(folder.path)).toEqual(before);
    // A supervisor that still has the old settings sends nothing once more.
    await using again = new Service({ folder: folder.path, env });
    expect(await again.process.exited).toBe(1);
    expect(await again.complaint()).toContain("was migrated to PostgreSQL");
    expect(digestsOf(folder.path)).toEqual(before);

    isListening = true;
    const tried = { callbacks: listener.received.length, calls: failing.received.length };
    await using node = new Service({ env: { ...env, DATABASE_URL: to, SECRET_KEY: key } });
    const client = clientOf(await node.ready());
    expect(await storyOf(client)).toEqual(filled.story);
    expect((await clientOf(await node.ready(), filled.worker).getAccount()).key.name).toBe("worker");
    const refused = await clientOf(await node.ready(), filled.revoked)
      .getAccount()
      .catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: "unauthorized" });

    // The keys of requests are remembered.
    const same = await client.createAction({ url: target.url, dedupe: "done", body: { n: 1 } });
    expect(same).toMatchObject({
      deduplicated: true,
      id: filled.story.actions.find(({ dedupe }) => dedupe === "done")?.id,
    });

    // The link of a mail that was sent before decides now, and the position of the stream goes on.
    const events: string[] = [];
    const leave = new AbortController();
    const opened = Promise.withResolvers<void>();
    const follows = (async () => {
      for await (const { type, data } of client.streamEvents({ signal: leave.signal, onOpen: opened.resolve })) {
        if (data.id === filled.held) events.push(type);
      }
    })();
    await opened.promise;
    const [link = ""] = mailbox.mails[0]?.fields["text"]?.match(/^http\S+\/a\/\S+$/gm) ?? [];
    const here = new URL(new URL(link).pathname, await node.ready()).href;
    const answer = await pressLink(here, { decision: "approve" });
    expect(answer.status).toBe(303);
    expect(await node.final(filled.held)).toMatchObject({ status: "completed", approved_by: "email:boss@example.com" });
    await until(() => events.includes("action.completed"));
    leave.abort();
    await follows;

    // What was owed goes out, and what failed is tried again.
    await Promise.all([listener.saw(tried.callbacks + 1), failing.saw(tried.calls + 1)]);
    const isCalled = async () => {
      const { data } = await client.getTimeline(filled.owing);
      return data.some(({ type, delivered }) => type === "callback" && delivered === true);
    };
    await until(isCalled);
    const seqs = (await client.getTimeline(filled.held)).data.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((one, other) => one - other));
  });

  test("says in a sentence what is wrong with its arguments and its places, and never a password", async () => {
    await using folder = await temporaryFolder();
    const none = await saidBy(migrate(folder.path, "postgres://me:canary@127.0.0.1:1/outgate"));
    expect(none).toMatchObject({ code: 1, err: "There is no database ./data/outgate.db.\n" });
    const wrong = await saidBy(migrate(folder.path, "mysql://me:canary@127.0.0.1/outgate"));
    expect(wrong.err).toContain("--to takes the address of a PostgreSQL database");
    await using service = new Service({ folder: folder.path });
    await service.ready();
    const running = await saidBy(migrate(folder.path, "postgres://me:canary@127.0.0.1:1/outgate"));
    expect(running.err).toContain("Another Outgate has the database");
    expect(await service.end()).toBe(0);
    const away = await saidBy(migrate(folder.path, "postgres://me:canary@127.0.0.1:1/outgate"));
    expect(away).toMatchObject({ code: 1, out: "" });
    expect(away.err).toContain("PostgreSQL at 127.0.0.1:1/outgate can't be used: it could not be reached.");
    expect(away.err).toContain("run the same command again, and it continues");
    for (const { out, err } of [none, wrong, running, away]) expect(out + err).not.toContain("canary");
  });
});
