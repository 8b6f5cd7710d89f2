import { auditOf, auditOfSystem } from "../audit/audit.ts";
import { accountStopped, authorize, type Caller, SYSTEM } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { CANCEL_BATCH_MAX, PAUSES_MAX } from "../config/limits.ts";
import { maskText } from "../receipts/masking.ts";
import type { Pause, PauseStore, PausedSet } from "./pause.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Dispatcher } from "../delivery/slots.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Log } from "../observability/log.ts";
import type { Decide } from "../approvals/decide.ts";

interface PauseDeps {
  readonly pauses: PauseStore;
  readonly paused: PausedSet;
  readonly cancel: Decide;
  readonly dispatcher: Pick<Dispatcher, "pauseChanged">;
  readonly clock: Pick<Clock, "now">;
  readonly ids: Pick<Ids, "pause">;
  readonly log: Pick<Log, "error">;
}

interface PauseRequest {
  /** Null: the whole account. */
  readonly keyId: string | null;
  readonly reason: string | null;
}

interface PauseAnswer {
  readonly pause: Pause;
  readonly isNew: boolean;
}

/** Every use case of pauses, all of them for owners. */
export type PauseService = ReturnType<typeof createPauseService>;

export function createPauseService(deps: PauseDeps) {
  const { pauses, paused, dispatcher, clock, ids } = deps;
  paused.onChange((accountId) => dispatcher.pauseChanged(accountId));
  const cancelRest = createCancelRest(deps);

  return {
    /**
     * Pauses an account, or the actions of one key: none of them is claimed after this resolves; attempts in progress end
     * as usual. Idempotent. Throws `not_found` for an unknown key, `validation_error` if too many pauses are in force.
     */
    async pause(caller: Caller, { keyId, reason }: PauseRequest): Promise<PauseAnswer> {
      authorize(caller, "manage");
      const pause = newPause(ids.pause(), caller, { keyId, reason, cancels: false }, clock.now());
      const made = await paused.while(pause, () => pauses.pause(pause, pausedEntry(pause, caller)));
      if (!("pause" in made))
        throw made.kind === "too_many" ? tooMany() : new DomainError("not_found", "There is no such key.");
      return { pause: made.pause, isNew: made.kind === "paused" };
    },

    /** The pauses in force, oldest first. */
    async list(caller: Caller): Promise<readonly Pause[]> {
      authorize(caller, "manage");
      return pauses.inForce(caller.accountId);
    },

    /** Ends a pause. Idempotent. Throws `not_found`, and `forbidden` for a pause of the kind `sign_up`. */
    async resume(caller: Caller, id: string): Promise<void> {
      authorize(caller, "manage");
      const { accountId, actor: by } = caller;
      const pause = await pauses.find(accountId, id);
      if (pause === null) throw new DomainError("not_found", "There is no such pause.");
      if (pause.kind === "sign_up") throw accountStopped(accountId);
      const at = clock.now();
      const audit = auditOf(caller, { kind: "resumed", subject: id, detail: detailOf(pause) }, at);
      await pauses.end(accountId, id, { at, by, audit });
      await paused.refresh(accountId);
    },

    /** The pause to write with the revocation of a key; `cancels`: its unfinished actions will be cancelled. */
    forRevoked(caller: Caller, keyId: string, cancels: boolean) {
      const pause = newPause(ids.pause(), caller, { keyId, reason: "The key was revoked.", cancels }, clock.now());
      return { pause, audit: pausedEntry(pause, caller) };
    },

    /** Starts no action of a key while `revoke` is running. */
    whileRevoking<T>({ accountId }: Caller, keyId: string, revoke: () => Promise<T>): Promise<T> {
      return paused.while({ accountId, subject: keyId }, revoke);
    },

    /** Cancels the unfinished actions of revoked keys, as far as possible now; never rejects. */
    cancelRest: () => cancelRest.run(),
    /** The periodic job: loads the pauses again and goes on cancelling. */
    async keepUp(): Promise<void> {
      await paused.load();
      await cancelRest.run();
    },
    beginCancelRest: () => void cancelRest.run().catch(() => {}),
    stop: () => cancelRest.stop(),
  };
}

type NewPause = PauseRequest & Pick<Pause, "cancels">;

function newPause(id: string, { accountId, actor }: Caller, { keyId, reason, cancels }: NewPause, now: Date): Pause {
  const subject =
    keyId === null ? ({ kind: "account", subject: "" } as const) : ({ kind: "key", subject: keyId } as const);
  return { id, accountId, ...subject, reason, cancels, createdAt: now, createdBy: actor, endedAt: null, endedBy: null };
}

function pausedEntry(pause: Pause, caller: Caller) {
  const { id, reason, cancels, createdAt } = pause;
  const detail = {
    ...detailOf(pause),
    reason: reason === null ? null : maskText(reason, "public"),
    ...(cancels ? { cancels } : {}),
  };
  return auditOf(caller, { kind: "paused", subject: id, detail }, createdAt);
}

function detailOf({ kind, subject }: Pause) {
  return kind === "key" ? { of: "key", key_id: subject } : { of: "account" };
}

function tooMany(): DomainError {
  return new DomainError(
    "validation_error",
    `This account has ${PAUSES_MAX} pauses in force; end one of them first, or pause the whole account.`,
  );
}

interface CancelRest {
  /** Cancels the unfinished actions of all revoked keys, as far as possible now. One run at a time; never rejects. */
  run(): Promise<void>;
  /** Starts nothing more; resolves when the present run has ended. */
  stop(): Promise<void>;
}

/**
 * Cancels the unfinished actions of revoked keys in batches. The key stays paused until none is left, so that an action
 * whose attempt fails meanwhile is not sent again. It goes on after a restart.
 */
function createCancelRest({ pauses, paused, cancel, clock, log }: PauseDeps): CancelRest {
  const stopped = new AbortController();
  let running: Promise<void> | null = null;
  let isRequestedAgain = false;

  const end = async (pause: Pause): Promise<void> => {
    const { accountId, id } = pause;
    const at = clock.now();
    const audit = auditOfSystem(accountId, { kind: "resumed", subject: id, detail: detailOf(pause) }, at);
    await pauses.end(accountId, id, { at, by: SYSTEM, audit });
    await paused.refresh(accountId);
  };

  /** True: there may be more to cancel. False also if nothing could be cancelled, since the next step would find the same. */
  const step = async (pause: Pause): Promise<boolean> => {
    const { accountId, subject, createdBy: actor } = pause;
    const { ids, isSending } = await pauses.unfinished(accountId, subject, CANCEL_BATCH_MAX);
    if (ids.length === 0 && !isSending) await end(pause);
    const caller: Caller = { accountId, keyId: null, keyName: actor, role: "owner", hold: "none", actor };
    // Concurrently, so that they share commits.
    const cancelled = await Promise.all(
      ids.map((id) => cancel(caller, id, "The key that created it was revoked.").then(() => true, unlessRefused)),
    );
    return cancelled.includes(true);
  };

  const runOnce = async (): Promise<void> => {
    for (const pause of await pauses.inForce(null)) {
      if (!pause.cancels) continue;
      while (!stopped.signal.aborted && (await step(pause)));
    }
  };

  const run = async (): Promise<void> => {
    do {
      isRequestedAgain = false;
      await runOnce().catch((error: unknown) => {
        log.error("pauses.cancel_failed", { error: error instanceof Error ? error.name : "unknown" });
      });
    } while (isRequestedAgain && !stopped.signal.aborted);
    running = null;
  };

  return {
    run() {
      isRequestedAgain = running !== null;
      return (running ??= run());
    },
    async stop() {
      stopped.abort();
      await running;
    },
  };
}

/** Refused: the action has ended, or is being sent. */
function unlessRefused(error: unknown): boolean {
  if (error instanceof DomainError) return false;
  throw error;
}
