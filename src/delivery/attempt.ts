import type { SigningUse } from "../core/account-store.ts";
import { type Action, isExpired, largeBytesOf } from "../core/action.ts";
import type { EffectiveRetrySettings } from "../core/retry-settings.ts";
import type { Ruling } from "../core/action-policy.ts";
import type { Judge } from "../core/judge.ts";
import { bodyMemberOf, DEFAULT_TYPES, sentBody } from "../core/body.ts";
import type { Bus } from "../core/bus.ts";
import { type LaneName, StoreUnavailable } from "../core/store.ts";
import type { Due, Reservation, Scheduler } from "./scheduler.ts";
import type { NotStartedReason } from "../core/settle.ts";
import { attemptMs, type Fault, isLeaseTooShort, mayUseKept } from "../core/outcome.ts";
import { type HashOf, matchesApproval } from "../core/dedupe.ts";
import type { Clock } from "../core/clock.ts";
import type { AttemptCredential, CredentialUse } from "../credentials/use.ts";
import type { OutboundRequest, Route, Sender } from "../outbound/deadline.ts";
import { type Secrets, UnreadableSecret } from "../crypto/secrets.ts";
import type { Attempt } from "./runs.ts";
import type { Settlement } from "./settlement.ts";
import { originOf } from "../core/target.ts";

/** A slot for an action that is about to be stored: the commit that creates it claims it too. */
export interface ActionReservation extends Omit<Reservation<Action>, "commit"> {
  /** The action was stored and claimed: publishes both changes and sends it. */
  commit(created: Action, claimed: Action): void;
}

/** What the action service needs of the delivery. */
export interface Dispatcher {
  /**
   * Reserves a slot for this action. Null when other rows of its lane come first, nothing is free, the action is large, or
   * nothing is being claimed now.
   */
  reserve(action: Action, largeBytes: number | undefined): ActionReservation | null;
}

export function createDispatcher(
  scheduler: Pick<Scheduler<Action>, "reserve">,
  bus: Pick<Bus, "publish">,
  retrySettingsOf: (action: Action) => EffectiveRetrySettings,
): Dispatcher {
  return {
    reserve(action, largeBytes) {
      // Large actions are claimed one small batch at a time, never at create.
      const reservation =
        largeBytes === undefined ? scheduler.reserve(action, retrySettingsOf(action).timeoutMs) : null;
      if (reservation === null) return null;
      return {
        ...reservation,
        commit(created, claimed) {
          bus.publish(created);
          reservation.commit(claimed);
        },
      };
    },
  };
}

/** The row that a change of an action has stored in the queue of actions, if it is pending now. */
export function dueAction(action: Action): readonly Due[] {
  const { status, dueAt } = action;
  if (status !== "pending" || dueAt === null) return NOTHING_DUE;
  return [{ lane: action, dueAt, isLarge: largeBytesOf(action) !== undefined }];
}

/** Shared: most changes leave nothing due. */
const NOTHING_DUE: readonly Due[] = [];

interface AttemptDeps {
  readonly bus: Pick<Bus, "publish">;
  readonly sender: Sender;
  readonly clock: Clock;
  readonly requestOf: (action: Action, now: Date) => Promise<OutboundRequest>;
  readonly settlement: Pick<Settlement, "settle" | "unclaim" | "withhold" | "extendLease">;
  readonly credentials: Pick<CredentialUse, "forAttempt">;
  /** What the rules of its account say of an action. */
  readonly judgeAtSend: Judge["judgeAtSend"];
  readonly hashOf: HashOf;
  /** How attempts of an action are made, as it is now. */
  readonly retrySettingsOf: (action: Action) => EffectiveRetrySettings;
  /** Whether no attempt of this lane may begin now. */
  readonly isPaused: (lane: LaneName) => boolean;
  /** That of the server: a claim lasts at least so long, unless the action's own is longer. */
  readonly attemptTimeoutMs: number;
}

/**
 * Prepare, send, settle. The claim is committed before this runs, and the outcome is committed before it resolves. When
 * no byte can have left, the claim is returned and the attempt does not count.
 */
export function createAttempt(deps: AttemptDeps): Attempt<Action> {
  const { bus, sender, clock, requestOf, settlement, hashOf, retrySettingsOf, attemptTimeoutMs: claimTimeoutMs } = deps;

  return async (claimed, { stop, releaseSlot }) => {
    let action = claimed;
    // The claim has made it active.
    bus.publish(action);
    const refuse = (fault: Fault, cause?: unknown) => {
      releaseSlot();
      return settlement.settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0, cause });
    };
    const giveBack = (why: NotStartedReason) => {
      releaseSlot();
      return settlement.unclaim(action, why);
    };
    if (!matchesApproval(action, hashOf)) return refuse("altered");
    const stricter = await stricterRuling(action, deps).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) await giveBack("store_away");
      throw error;
    });
    if (stricter !== null) {
      releaseSlot();
      return settlement.withhold(action, stricter);
    }
    const request = await requestOf(action, clock.now()).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) {
        await giveBack("store_away");
        throw error;
      }
      // A secret that can't be read can be replaced by a rotation, so a later attempt may succeed. Any other error
      // means that the row was altered (an invalid URL, an account that is gone): retrying would not help.
      await refuse(error instanceof UnreadableSecret ? "unsignable" : "altered", error);
      return null;
    });
    if (request === null) return;
    const wantedMs = retrySettingsOf(action).timeoutMs;
    if (wantedMs > claimTimeoutMs && isLeaseTooShort(action, clock.now(), wantedMs)) {
      const extended = await settlement.extendLease(action, wantedMs).catch(async (error: unknown) => {
        if (error instanceof StoreUnavailable) await giveBack("store_away");
        throw error;
      });
      // Another process has taken it over.
      if (extended === null) return releaseSlot();
      action = extended;
    }
    const hindrance = () => hindranceOf(action, deps);
    let hindered = hindrance();
    if (hindered !== null) return giveBack(hindered);
    const timeoutMs = attemptMs(action, clock.now(), wantedMs);
    if (timeoutMs === 0) return giveBack("late");
    const startedMs = clock.monotonicMs();
    const credential = deps.credentials.forAttempt(action);
    const stopped: { by?: StoreUnavailable } = {};
    const complete = (of: AttemptCredential) => async (route: Route) => {
      const completed = await of.complete(request, route).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable)) throw error;
        stopped.by = error;
        return null;
      });
      if (completed === null) return { kind: "stopped" } as const;
      return typeof completed === "string" ? ({ kind: "not_sent", fault: completed } as const) : completed;
    };
    const outcome = await sender.send(request, {
      timeoutMs,
      stop,
      // Resolving and connecting may take seconds.
      mayBegin: () => (hindered = hindrance()) === null,
      keepFor: mayUseKept(action) ? action.accountId : null,
      ...(credential !== null && { complete: complete(credential) }),
    });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    if (outcome.kind === "stopped") {
      await giveBack(stopped.by === undefined ? (hindered ?? "stopping") : "store_away");
      if (stopped.by !== undefined) throw stopped.by;
      return;
    }
    releaseSlot();
    await settlement.settle(action, { outcome, durationMs, timeoutMs });
    await credential?.answered();
  };
}

/**
 * What the rules that are in force now have against an attempt; null: nothing. One that refuses the call ends it before any attempt,
 * whoever approved it; one that holds it is asked before the first send of what no person has decided on. Changes of other nodes are
 * known here within seconds; creates are decided by what is in force at their commit.
 */
async function stricterRuling(
  action: Action,
  { judgeAtSend, clock }: Pick<AttemptDeps, "clock" | "judgeAtSend">,
): Promise<Ruling | null> {
  const ruling = await judgeAtSend(action, clock.now());
  if (ruling === null || ruling.effect === "allow") return null;
  const isBegun = action.run > 1 || action.attempts > 1;
  const isDecided = action.approvedAt !== null || action.policy?.by === "grant";
  return ruling.effect === "hold" && (isBegun || isDecided) ? null : ruling;
}

/** Why nothing of it may be sent now that was claimed before; null: it may. */
function hindranceOf(action: Action, deps: Pick<AttemptDeps, "clock" | "isPaused">): NotStartedReason | null {
  if (isExpired(action, deps.clock.now())) return "expired";
  return deps.isPaused(action) ? "paused" : null;
}

interface RequestDeps {
  readonly signedHeaders: SignedHeaders;
  /** `Outgate/<version>`. */
  readonly userAgent: string;
}

/**
 * The exact bytes and headers of one attempt: the approved request plus our own headers. It is signed (Standard
 * Webhooks) with the secret of the account and the target's origin. `webhook-id` and `Idempotency-Key` are the same for
 * all attempts, so that the target can detect a repeat.
 */
export function createRequestOf({ signedHeaders, userAgent }: RequestDeps) {
  return async (action: Action, now: Date): Promise<OutboundRequest> => {
    const { id, accountId, url } = action;
    const body = sentBody(action);
    const signed = await signedHeaders({ accountId, url, id, body: body ?? "" }, now);
    const ownHeaders: readonly Header[] = [...signed, ["X-Outgate-Attempt", String(action.attempts)]];
    const requestHeaders = action.headers === null ? [] : headersOf(action.headers, ownHeaders, userAgent);
    const names = new Set(requestHeaders.map(([name]) => name.toLowerCase()));
    const member = bodyMemberOf(action);
    const headers: Header[] = [];
    if (!names.has("user-agent")) headers.push(["User-Agent", userAgent]);
    if (!names.has("accept")) headers.push(["Accept", "*/*"]);
    if (!names.has("idempotency-key")) headers.push(["Idempotency-Key", id]);
    if (member !== null && !names.has("content-type")) headers.push(["Content-Type", DEFAULT_TYPES[member]]);
    headers.push(...requestHeaders, ...ownHeaders);
    return { url: action.url, method: action.method, headers, body };
  };
}

/**
 * The headers of a request beside our own. The API refuses our names: one in an altered row would give the target two values
 * of the same header.
 */
function headersOf(
  given: Readonly<Record<string, string>>,
  ownHeaders: readonly Header[],
  userAgent: string,
): readonly Header[] {
  const reserved = new Set(ownHeaders.map(([name]) => name.toLowerCase()));
  return Object.entries(given)
    .filter(([name]) => !reserved.has(name.toLowerCase()))
    .map(([name, value]) => [name, name.toLowerCase() === "user-agent" ? `${value} ${userAgent}` : value]);
}

export interface SigningDeps {
  readonly secrets: Pick<Secrets, "sign">;
  readonly signingSecrets: {
    /** The secrets that sign now, the newest first. */
    inUse(accountId: string, origin: string, now: Date, use: SigningUse): Promise<readonly string[]>;
  };
}

/** What is signed. */
interface Signable {
  readonly accountId: string;
  readonly url: string;
  /** `webhook-id`: the same over all attempts. */
  readonly id: string;
  /** The exact text or bytes that are sent; empty when there is none. */
  readonly body: string | Uint8Array;
}

export type Header = readonly [name: string, value: string];

export type SignedHeaders = (message: Signable, now: Date) => Promise<readonly Header[]>;

/**
 * The three headers of Standard Webhooks 1.0.0, signed with the secret of the account and the target's origin; with two
 * secrets during a rotation. Calls and callbacks have separate secrets.
 */
export function createSignedHeaders({ secrets, signingSecrets }: SigningDeps, use: SigningUse): SignedHeaders {
  return async ({ accountId, url, id, body }, now) => {
    const timestampSeconds = Math.floor(now.getTime() / 1_000);
    const signing = await signingSecrets.inUse(accountId, originOf(url), now, use);
    return [
      ["webhook-id", id],
      ["webhook-timestamp", String(timestampSeconds)],
      ["webhook-signature", secrets.sign(signing, { id, timestampSeconds, body })],
    ];
  };
}
