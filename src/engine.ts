import { createLinksOf } from "./actions/approval-links.ts";
import { createOwe } from "./actions/owe.ts";
import { createActionDesk } from "./actions/desk.ts";
import { createOpenSecret } from "./accounts/open-secret.ts";
import { createRootSecretOf } from "./accounts/root-secret.ts";
import { createSigningSecrets } from "./accounts/signing-secrets.ts";
import type { Config } from "./config.ts";
import type { Action } from "./domain/action.ts";
import { ActionLoop } from "./dispatch/action-loop.ts";
import { createAttempt } from "./dispatch/attempt.ts";
import { type CallbackDeps, createCallback } from "./dispatch/callback.ts";
import { createMail, type MailDeps } from "./dispatch/mail.ts";
import { Outbox, type OutboxDeps } from "./dispatch/outbox.ts";
import { createRequestOf } from "./dispatch/request.ts";
import { createRescue } from "./dispatch/rescue.ts";
import { createSettle, type Settle } from "./dispatch/settlement.ts";
import { createSignedHeaders } from "./dispatch/signed-headers.ts";
import { CALLBACKS_PER_HOST_MAX, MAILS_AT_ONCE_MAX } from "./domain/limits.ts";
import { createBus } from "./events/bus.ts";
import { createFeed } from "./events/feed.ts";
import { createOverview } from "./events/overview.ts";
import type { Clock } from "./ports/clock.ts";
import type { Ids } from "./ports/ids.ts";
import type { Log } from "./ports/log.ts";
import type { Mailer } from "./ports/mailer.ts";
import type { Metrics } from "./ports/metrics.ts";
import type { Secrets } from "./ports/secrets.ts";
import type { Sender } from "./ports/sender.ts";
import type { Store } from "./ports/store.ts";
import { VERSION } from "./version.ts";

export interface EngineParts {
  readonly store: Store;
  readonly secrets: Secrets;
  readonly sender: Sender;
  /** Null: no mail provider is configured. */
  readonly mailer: Mailer | null;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly log: Log;
  readonly metrics: Metrics;
}

type EngineSettings = Pick<
  Config,
  | "attemptTimeoutMs"
  | "retryBaseMs"
  | "retryCapMs"
  | "dispatchConcurrency"
  | "dispatchPerHost"
  | "callbackConcurrency"
  | "mailConcurrency"
  | "approvalTtlHours"
  | "baseUrl"
>;

export type Engine = ReturnType<typeof createEngine>;

/** The service without its doors: what a door calls, and the loops that deliver. Everything in it runs on the ports. */
export function createEngine(settings: EngineSettings, parts: EngineParts) {
  const { store, secrets } = parts;
  const bus = createBus();
  const receiptUrl = (actionId: string) => `/r/${secrets.receiptToken(actionId)}`;
  const openSecret = createOpenSecret(parts);
  const rootSecretOf = createRootSecretOf(store.accounts, openSecret);
  const signingSecrets = createSigningSecrets({ ...store, rootSecretOf, openSecret, secrets });
  const owe = createOwe({ ids: parts.ids, receiptUrl });
  const signedHeaders = createSignedHeaders({ secrets, signingSecretsOf: signingSecrets.inUse });
  const hashOf = (text: string) => secrets.hash(text);
  const { actions, outbox } = store;
  const sending = { signedHeaders, attemptTimeoutMs: settings.attemptTimeoutMs, userAgent: `Outgate/${VERSION}` };
  const deps = { ...parts, ...sending, hashOf, actions, outbox, bus, owe };

  const settle = createSettle({ ...deps, backoff: { baseMs: settings.retryBaseMs, capMs: settings.retryCapMs } });
  const loop = new ActionLoop({
    ...deps,
    attempt: createAttempt({ ...deps, requestOf: createRequestOf(deps), settle }),
    rescue: rescueOf(settle, parts),
    limits: { total: settings.dispatchConcurrency, perLane: settings.dispatchPerHost },
  });
  const { callbacks, mails } = createOutboxes(settings, { ...deps, receiptUrl });
  const overview = createOverview(deps);
  return {
    desk: createActionDesk({ ...deps, dispatcher: loop }),
    feed: createFeed(deps),
    overview,
    loop,
    bus,
    owe,
    signingSecrets,
    receiptUrl,
    /** Ends what a dead process left behind, then begins to deliver. */
    async start(): Promise<void> {
      // First, so that it hears of everything that is ended and begun here.
      await overview.start();
      await loop.start();
      await callbacks.start();
      await mails.start();
    },
    /** Claims nothing more and lets what is in flight end, for so long at most. */
    async drain(limitMs: number): Promise<void> {
      const loops = [loop.drain(limitMs), callbacks.drain(limitMs), mails.drain(limitMs)];
      await Promise.all([...loops, overview.stop()]);
    },
  };
}

/** What a dead process had in flight ends as `unknown`: the target may have received it. */
function rescueOf(settle: Settle, { store, clock, log, metrics }: EngineParts) {
  return createRescue<Action>({
    name: "actions",
    log,
    queue: store.actions,
    clock,
    end: (action) => settle(action, { outcome: { kind: "unknown", fault: "interrupted" }, durationMs: null }),
    onRescued(count) {
      metrics.rescued(count);
      log.warn("actions.rescued", { count });
    },
  });
}

type OutboxParts = Omit<OutboxDeps, "kind" | "queue" | "deliver" | "limits"> &
  Omit<CallbackDeps & MailDeps, "linksOf" | "receiptLink" | "approvalTtlHours"> &
  Pick<EngineParts, "store" | "secrets"> & { readonly receiptUrl: (actionId: string) => string };

/** The two loops of what actions owe. */
function createOutboxes(settings: EngineSettings, parts: OutboxParts) {
  const { callbackConcurrency, mailConcurrency, baseUrl, approvalTtlHours } = settings;
  const { store, receiptUrl } = parts;
  const callbacks = new Outbox({
    ...parts,
    kind: "callback",
    queue: store.outbox.callbacks,
    deliver: createCallback(parts),
    limits: { total: callbackConcurrency, perLane: CALLBACKS_PER_HOST_MAX },
  });
  const mails = new Outbox({
    ...parts,
    kind: "mail",
    queue: store.outbox.mails,
    deliver: createMail({
      ...parts,
      linksOf: createLinksOf({ links: store.links, secrets: parts.secrets, baseUrl }),
      approvalTtlHours,
      receiptLink: (actionId) => baseUrl + receiptUrl(actionId),
    }),
    limits: { total: mailConcurrency, perLane: MAILS_AT_ONCE_MAX },
  });
  return { callbacks, mails };
}
