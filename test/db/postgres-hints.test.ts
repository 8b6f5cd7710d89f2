import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { SQL } from "bun";
import { createHintSender, createListen, HINT_CHANNEL } from "../../db/postgres/cluster.ts";
import { HINT_EVERY_MS } from "../../src/core/limits.ts";
import { TcpProxy } from "../support/cluster/tcp-proxy.ts";
import { eventually } from "../support/eventually.ts";
import { until } from "../support/until.ts";
import { createDatabase, dropDatabase, hasPostgres } from "../support/postgres.ts";
import { hasPooler, Pooler } from "../support/postgres/pooler.ts";

let url: string;
let admin: SQL;

const notify = (payload: string) => admin`SELECT pg_notify(${HINT_CHANNEL}, ${payload})`;

/** Counts what a listener hears. */
function counts() {
  const heard = { hints: 0, gaps: 0 };
  return { heard, onHint: () => void (heard.hints += 1), onGap: () => void (heard.gaps += 1) };
}

const listeners = () =>
  admin<
    { pid: number }[]
  >`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND query ~* '^listen|^select 1$'`;

describe.skipIf(!hasPostgres)("hints of other nodes' commits", () => {
  beforeAll(async () => {
    url = await createDatabase();
    admin = new SQL(url, { max: 1 });
  });

  afterAll(async () => {
    await admin.close();
    await dropDatabase(url);
  });

  test("come from others, and not from the node itself", async () => {
    const { heard, onHint, onGap } = counts();
    const stop = await createListen({ connectionString: url }, "node_a")(onHint, onGap);
    await notify("node_a");
    await notify("node_b");
    await eventually(() => (heard.hints > 0 ? heard : null), "a hint");
    await notify("node_c");
    await eventually(() => (heard.hints > 1 ? heard : null), "a second hint");
    expect(heard).toEqual({ hints: 2, gaps: 0 });
    await stop?.();
    await eventually(async () => ((await listeners()).length === 0 ? true : null), "the end of its connection");
  });

  test("are one at once for a commit, and one for all that follow soon", async () => {
    const sent: (readonly string[])[] = [];
    const tell = createHintSender("node_a");
    const commit = () => tell((_, values) => void sent.push(values));
    commit();
    expect(sent).toEqual([[HINT_CHANNEL, "node_a"]]);
    for (let commits = 0; commits < 50; commits += 1) commit();
    expect(sent.length).toBe(1);
    await eventually(() => (sent.length === 2 ? sent : null), "the second hint");
    await Bun.sleep(3 * HINT_EVERY_MS);
    expect(sent.length).toBe(2);
    commit();
    expect(sent.length).toBe(3);
  });

  test("come again after the connection was lost, and it says that some were missed", async () => {
    const { heard, onHint, onGap } = counts();
    const stop = await createListen({ connectionString: url }, "node_a")(onHint, onGap);
    for (const { pid } of await listeners()) await admin`SELECT pg_terminate_backend(${pid})`;
    await notify("node_b");
    await eventually(() => (heard.gaps === 1 ? heard : null), "the connection");
    expect(heard).toEqual({ hints: 0, gaps: 1 });
    await notify("node_b");
    await eventually(() => (heard.hints === 1 ? heard : null), "a hint");
    await stop?.();
  });

  test("come again when the server went silent without closing the connection", async () => {
    const { heard, onHint, onGap } = counts();
    await using relay = await TcpProxy.start(Number(new URL(url).port));
    const config = { connectionString: url.replace(/:\d+\//, `:${relay.port}/`) };
    const times = { pingMs: 50, retryMs: 50, answerMs: 300 };
    const stop = await createListen(config, "node_a", times)(onHint, onGap);
    // Connections stay open, and nothing comes through.
    relay.passes = () => false;
    await Bun.sleep(1_000);
    expect(heard.gaps).toBe(0);
    relay.passes = () => true;
    await until(() => heard.gaps > 0);
    // A machine that is busy may answer so late that the connection is made once more.
    await until(async () => {
      await notify("node_b");
      return heard.hints > 0;
    });
    await stop?.();
  });

  test("are tried for where the database is away at the start", async () => {
    const { heard, onHint, onGap } = counts();
    const port = Number(new URL(url).port);
    const closed = Bun.listen({ port: 0, hostname: "127.0.0.1", socket: { data() {} } });
    const config = { connectionString: url.replace(`:${port}/`, `:${closed.port}/`) };
    closed.stop(true);
    const stop = await createListen(config, "node_a")(onHint, onGap);
    expect(stop).not.toBeNull();
    // The database is there from now on.
    await using _relay = await TcpProxy.start(port, { at: closed.port });
    await eventually(() => (heard.gaps === 1 ? heard : null), "the connection");
    await notify("node_b");
    await eventually(() => (heard.hints === 1 ? heard : null), "a hint");
    await stop?.();
  });

  test.skipIf(!hasPooler)("don't come through a pooler of transactions, which is noticed", async () => {
    await using pooler = await Pooler.start(url);
    const { onHint, onGap } = counts();
    expect(await createListen({ connectionString: pooler.url }, "node_a")(onHint, onGap)).toBeNull();
  });
});
