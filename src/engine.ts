import { createOwe } from "./actions/owe.ts";
import { createActionDesk } from "./actions/desk.ts";
import { createRootSecretOf } from "./accounts/root-secret.ts";
import { createSigningSecretOf } from "./accounts/signing-secret.ts";
import type { Config } from "./config.ts";
import { createAttempt } from "./dispatch/attempt.ts";
import { Loop } from "./dispatch/loop.ts";
import { createRequestOf } from "./dispatch/request.ts";
import { createRescue } from "./dispatch/rescue.ts";
import { createSettle } from "./dispatch/settlement.ts";
import { createBus } from "./events/bus.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import type { Metrics } from "./ports/metrics.ts";
import type { Secrets } from "./ports/secrets.ts";
import type { Sender } from "./ports/sender.ts";
import type { Store } from "./ports/store.ts";
import { VERSION } from "./version.ts";

export interface EngineParts {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
}

type EngineSettings = Pick<
  Config,
  "attemptTimeoutMs" | "retryBaseMs" | "retryCapMs" | "dispatchConcurrency" | "dispatchPerHost"
>;

export type Engine = ReturnType<typeof createEngine>;

/** The service without its doors: what a door calls, and the loop that delivers. Everything in it runs on the ports. */
export function createEngine(settings: EngineSettings, parts: EngineParts) {
  const { store, secrets } = parts;
  const { attemptTimeoutMs } = settings;
  const bus = createBus();
  const receiptUrl = (actionId: string) => `/r/${secrets.receiptToken(actionId)}`;
  const signingSecretOf = createSigningSecretOf(createRootSecretOf(store.accounts, secrets), secrets);
  const owe = createOwe({ ids: parts.ids, receiptUrl });
  const hashOf = (text: string) => secrets.hash(text);
  const deps = { ...parts, hashOf, actions: store.actions, bus, owe, attemptTimeoutMs };

  const settle = createSettle({ ...deps, backoff: { baseMs: settings.retryBaseMs, capMs: settings.retryCapMs } });
  const requestOf = createRequestOf({ secrets, signingSecretOf, userAgent: `Outgate/${VERSION}` });
  const loop = new Loop({
    ...deps,
    attempt: createAttempt({ ...deps, requestOf, settle }),
    rescue: createRescue({ ...deps, settle }),
    limits: { total: settings.dispatchConcurrency, perLane: settings.dispatchPerHost },
  });
  return { desk: createActionDesk({ ...deps, dispatcher: loop }), loop, bus, signingSecretOf, receiptUrl };
}
