/**
 * An engine in a process of its own that kills itself by SIGKILL at one stop point: right before or after a call of a port.
 * It creates one action and prints its id when that is acknowledged. No switch for this stands in the product.
 */
import { writeSync } from "node:fs";
import { bootstrap } from "../../../src/accounts/bootstrap.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { readConfig } from "../../../src/config/config.ts";
import type { AppContext } from "../../../src/runtime/app-context.ts";
import { createBus } from "../../../src/core/bus.ts";
import { createServices } from "../../../src/services/services.ts";
import { systemIds } from "../../../src/core/ids.ts";
import { Metrics } from "../../../src/observability/metrics.ts";
import { createPasswords } from "../../../src/crypto/passwords.ts";
import { createSender } from "../../../src/outbound/send.ts";
import type { Log } from "../../../src/observability/log.ts";
import type { Sender } from "../../../src/outbound/sender.ts";
import type { Queue, Store } from "../../../src/core/store.ts";
import { openEncryptedStore } from "../../../src/app/encrypted-store.ts";
import { loopbackPolicy, requestFor } from "../engine.ts";
import type { Dying, StopPoint } from "./stop-points.ts";

// Safe: `stop-points.ts` writes it.
const { folder, point, target, callback, retries } = JSON.parse(process.argv[2] ?? "") as Dying;

function dieAt(here: StopPoint): void {
  if (here !== point) return;
  process.kill(process.pid, "SIGKILL");
  Bun.sleepSync(60_000);
}

/** The same call with a stop point before and after it. */
function around<Args extends readonly unknown[], T>(
  call: (...args: Args) => Promise<T>,
  before: StopPoint,
  after: StopPoint,
): (...args: Args) => Promise<T> {
  return async (...args) => {
    dieAt(before);
    const result = await call(...args);
    dieAt(after);
    return result;
  };
}

function deadly(store: Store): Store {
  const { actions, outbox } = store;
  const queue = <Row>(of: Queue<Row>): Queue<Row> => ({
    ...of,
    claimDue: around((claim) => of.claimDue(claim), "before a callback's claim", "after a callback's claim"),
  });
  return {
    ...store,
    actions: {
      ...actions,
      // The claim is a commit of its own here, so that there is something between the two.
      create: around(
        (creation) => actions.create({ ...creation, claim: null }),
        "before the create",
        "after the create",
      ),
      claimDue: around((claim) => actions.claimDue(claim), "before the claim", "after the claim"),
      apply: around((write) => actions.apply(write), "before the record", "after the record"),
    },
    outbox: {
      ...outbox,
      callbacks: queue(outbox.callbacks),
      settle: around(
        (change, at) => outbox.settle(change, at),
        "before a callback's record",
        "after a callback's record",
      ),
    },
  };
}

function sending(sender: Sender): Sender {
  return {
    async send(request, limits) {
      const isCallback = request.url === callback;
      dieAt(isCallback ? "before a callback is sent" : "before the send");
      const outcome = sender.send(request, limits);
      const whileIt: StopPoint = isCallback ? "while a callback is sent" : "while it is sent";
      // The target has it by then, and takes longer to answer.
      if (whileIt === point) setTimeout(() => dieAt(whileIt), 50);
      const ended = await outcome;
      dieAt(isCallback ? "after a callback is sent" : "after the send");
      return ended;
    },
  };
}

const ids = systemIds;

const config = readConfig({ DATABASE_URL: `file:${folder}/outgate.db` });

const onFatal = () => process.exit(1);

const encryptedStore = await openEncryptedStore(config, { clock: systemClock, ids, onFatal });

const { secrets } = encryptedStore;

const { accounts, people, facts } = encryptedStore.store;

await bootstrap({ accounts, people, facts, secrets, ids, clock: systemClock, givenOwnerKey: null });

const policy = loopbackPolicy();

const quiet: Log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

const app: AppContext = {
  store: deadly(encryptedStore.store),
  clock: systemClock,
  ids,
  log: quiet,
  metrics: new Metrics(),
  config,
  bus: createBus(),
};

const sender = sending(createSender(policy));

const passwords = createPasswords();

const engine = createServices(app, {
  secrets,
  passwords,
  sender,
  publicSender: sender,
  mailer: null,
  policy,
  node: null,
});

await engine.start();

const owner = {
  accountId: (await accounts.first())?.id ?? "",
  // As of a person: what a key calls back is asked of its row.
  keyId: null,
  keyName: "owner",
  role: "owner",
  hold: "none",
  actor: "key:owner",
} as const;

const { action } = await engine.actionService.create(owner, requestFor({ url: target, callback, retries }));

writeSync(1, `${action.id}\n`);
