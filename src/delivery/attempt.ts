import { USER_AGENT } from "../config/config.ts";
import { type Action, isExpired } from "../core/action.ts";
import { usedBodyMember, DEFAULT_TYPES, sentBody } from "../core/body.ts";
import { type HashText, matchesApproval } from "../core/dedupe.ts";
import type { KnownHostSettings } from "../core/host-settings.ts";
import type { Judge } from "../core/judge.ts";
import { attemptMs, type Fault, isLeaseTooShort, isWithoutFile, mayUseKept } from "../core/outcome.ts";
import type { NotStartedReason } from "../core/settle.ts";
import { type LaneName, StoreUnavailable } from "../core/store.ts";
import type { CredentialUse } from "../credentials/use.ts";
import { UnreadableSecret, type Header, type SignedHeaders } from "../crypto/secrets.ts";
import type { OutboundRequest, Route, Sender } from "../outbound/sender.ts";
import type { CallRates } from "./call-rates.ts";
import type { RunAttempt } from "./in-flight.ts";
import type { LoopContext } from "./scheduler.ts";
import type { Settlement } from "./settlement.ts";

interface AttemptNeeds {
  readonly sender: Sender;
  readonly signedHeaders: SignedHeaders;
  readonly settlement: Settlement;
  readonly credentials: Pick<CredentialUse, "forAttempt">;
  readonly rules: Pick<Judge, "judgeAtSend">;
  readonly hashText: HashText;
  readonly hosts: Pick<KnownHostSettings, "retrySettings">;
  readonly rates: Pick<CallRates, "turnFor">;
  /** Whether no attempt of this lane may begin now. */
  readonly isPaused: (lane: LaneName) => boolean;
}

/**
 * Creates the attempt of an action: prepare, send, settle. The claim is committed before it runs, and the outcome before it
 * resolves. If no byte can have left, the claim is given back and the attempt does not count.
 */
export function createAttempt(
  { bus, clock, config, files, turns }: LoopContext,
  needs: AttemptNeeds,
): RunAttempt<Action> {
  const { sender, signedHeaders, settlement, credentials, rules, hashText, hosts, rates, isPaused } = needs;

  /** What to send, and how long it may take. Null: the claim has ended already. Rejects when the store is unavailable. */
  const prepare = async (claimed: Action, releaseSlot: () => void) => {
    let action = claimed;
    const refuse = async (fault: Fault, cause?: unknown): Promise<null> => {
      releaseSlot();
      await settlement.settle(action, { outcome: { kind: "not_sent", fault }, durationMs: 0, cause });
      return null;
    };
    if (!matchesApproval(action, hashText)) return refuse("altered");
    const ruling = await rules.judgeAtSend(action, clock.now());
    if (ruling?.effect === "count") {
      const counted = await settlement.count(action, ruling.counts);
      if (counted === null) {
        releaseSlot();
        // It will be claimed again, and judged by what others have counted meanwhile.
        await settlement.unclaim(action, "uncounted");
        return null;
      }
      action = counted;
    } else if (ruling !== null) {
      releaseSlot();
      await settlement.withhold(action, ruling);
      return null;
    }
    const request = await buildRequest(action, signedHeaders, clock.now()).catch((error: unknown) => {
      if (error instanceof StoreUnavailable) throw error;
      // A secret that can't be read can be replaced by a rotation, so a later attempt may succeed. Any other error
      // means that the row was altered (an invalid URL, an account that is gone): retrying would not help.
      return refuse(error instanceof UnreadableSecret ? "unsignable" : "altered", error);
    });
    if (request === null) return null;
    const wantedMs = hosts.retrySettings(action).timeoutMs;
    // A claim lasts as long as the server's own timeout; only a longer one may need more.
    if (wantedMs <= config.attemptTimeoutMs || !isLeaseTooShort(action, clock.now(), wantedMs))
      return { action, request, wantedMs };
    const extended = await settlement.extendLease(action, wantedMs);
    // Null: another process has taken the action over.
    if (extended === null) releaseSlot();
    return extended === null ? null : { action: extended, request, wantedMs };
  };

  return async (claimed, { stop, releaseSlot }) => {
    // The claim has made the action active.
    bus.publish(claimed);
    const giveBack = (action: Action, why: NotStartedReason) => {
      releaseSlot();
      return settlement.unclaim(action, why);
    };
    const prepared = await prepare(claimed, releaseSlot).catch(async (error: unknown) => {
      if (error instanceof StoreUnavailable) await giveBack(claimed, "store_away");
      throw error;
    });
    if (prepared === null) return;
    const { action, request, wantedMs } = prepared;
    /** Why nothing may be sent now, or null. */
    const hindrance = (): NotStartedReason | null => {
      if (isExpired(action, clock.now())) return "expired";
      return isPaused(action) ? "paused" : null;
    };
    let hindered = hindrance();
    if (hindered !== null) return giveBack(action, hindered);
    const timeoutMs = attemptMs(action, clock.now(), wantedMs);
    if (timeoutMs === 0) return giveBack(action, "late");
    const startedMs = clock.monotonicMs();
    const credential = credentials.forAttempt(action);
    /** `error` is set if the store was unavailable when the credential had to be read. */
    const away: { error?: StoreUnavailable } = {};
    const mayLeave = rates.turnFor(action, "actions");
    const outcome = await sender.send(request, {
      timeoutMs,
      stop,
      // Checked again once connected, which may take seconds, and after the wait for its turn.
      async mayBegin() {
        hindered = hindrance() ?? ((await mayLeave()) ? hindrance() : "rated");
        return hindered === null;
      },
      keepFor: mayUseKept(action) ? action.accountId : null,
      ...(credential !== null && {
        async complete(route: Route) {
          const completed = await credential.complete(request, route).catch((error: unknown) => {
            if (!(error instanceof StoreUnavailable)) throw error;
            away.error = error;
            return null;
          });
          if (completed === null) return { kind: "stopped" } as const;
          return typeof completed === "string" ? ({ kind: "not_sent", fault: completed } as const) : completed;
        },
      }),
    });
    const durationMs = Math.round(clock.monotonicMs() - startedMs);
    await turns.wait();
    if (outcome.kind === "stopped") {
      await giveBack(action, away.error === undefined ? (hindered ?? "stopping") : "store_away");
      if (away.error !== undefined) throw away.error;
      return;
    }
    if (isWithoutFile(outcome)) {
      files.lack();
      return giveBack(action, "no_file");
    }
    releaseSlot();
    await settlement.settle(action, { outcome, durationMs, timeoutMs });
    await credential?.answered();
  };
}

/**
 * The exact bytes and headers of one attempt: the approved request plus our own headers, signed as Standard Webhooks says.
 * `webhook-id` and `Idempotency-Key` are the same for all attempts, so that the target can detect a repeat.
 */
async function buildRequest(action: Action, signedHeaders: SignedHeaders, now: Date): Promise<OutboundRequest> {
  const { id, accountId, url } = action;
  const body = sentBody(action);
  const signed = await signedHeaders({ accountId, url, id, body: body ?? "" }, now);
  const ownHeaders: readonly Header[] = [...signed, ["X-Outgate-Attempt", String(action.attempts)]];
  const requestHeaders = action.headers === null ? [] : allHeaders(action.headers, ownHeaders);
  const names = new Set(requestHeaders.map(([name]) => name.toLowerCase()));
  const member = usedBodyMember(action);
  const headers: Header[] = [];
  if (!names.has("user-agent")) headers.push(["User-Agent", USER_AGENT]);
  if (!names.has("accept")) headers.push(["Accept", "*/*"]);
  if (!names.has("idempotency-key")) headers.push(["Idempotency-Key", id]);
  if (member !== null && !names.has("content-type")) headers.push(["Content-Type", DEFAULT_TYPES[member]]);
  headers.push(...requestHeaders, ...ownHeaders);
  return { url: action.url, method: action.method, headers, body };
}

/**
 * The headers of a request without those that we set. The API refuses our names, but an altered row may have one: the target
 * would get two values of the same header.
 */
function allHeaders(given: Readonly<Record<string, string>>, ownHeaders: readonly Header[]): readonly Header[] {
  const reserved = new Set(ownHeaders.map(([name]) => name.toLowerCase()));
  return Object.entries(given)
    .filter(([name]) => !reserved.has(name.toLowerCase()))
    .map(([name, value]) => [name, name.toLowerCase() === "user-agent" ? `${value} ${USER_AGENT}` : value]);
}
