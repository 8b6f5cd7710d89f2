import Type from "typebox";
import { pauseIdSchema, pauseKind, pauseReason } from "../api/action-schemas.ts";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import type { Revocation } from "../core/account-store.ts";
import { auditEntry, auditOfSystem } from "../core/audit.ts";
import type { Decide } from "../core/changes.ts";
import { DomainError, invalidField, notFound } from "../core/domain-error.ts";
import { PAUSES_MAX, CANCEL_BATCH_MAX } from "../core/limits.ts";
import {
  type Pause,
  pauseDetail,
  resumed,
  type PauseScope,
  type PauseStore,
  type PauseSubject,
  pausingSubjects,
  subjectKey,
} from "../core/pause.ts";
import { accountStopped, authorize, type Caller, madeBy, notManager, SYSTEM } from "../core/roles.ts";
import { checkHost } from "../core/target.ts";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import { maskText } from "../receipts/masking.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { AccountCache } from "../core/account-settings.ts";
import { Counts } from "../core/maps.ts";
import { StoreUnavailable } from "../core/store.ts";

interface PauseRequest {
  /** Null: not one key. */
  readonly keyId: string | null;
  /** In its normal form; null: not one host. With neither the whole account is paused. */
  readonly host?: string | null;
  readonly reason: string | null;
}

/** Every use case of pauses, all of them for owners. */
export type PauseService = ReturnType<typeof createPauseService>;

export function createPauseService(
  app: AppContext,
  paused: ActivePauses,
  cancel: Decide,
  /** How long after its revocation other nodes may still store what a key creates; 0: there are none. */
  takenElsewhereMs: number,
) {
  const { store, clock, ids } = app;
  const { pauses } = store;
  const canceller = createCanceller(app, paused, cancel, takenElsewhereMs);

  return {
    /**
     * Pauses an account, the actions of one key or the calls to one host. None is claimed after this resolves; attempts in flight end as
     * usual. Idempotent. Throws `not_found` for an unknown key, `validation_error` if too many pauses are in force.
     */
    async pause(caller: Caller, request: PauseRequest): Promise<{ readonly pause: Pause; readonly isNew: boolean }> {
      authorize(caller, "manage");
      const now = clock.now();
      const { pause, audit } = newPause(ids.pause(now), caller, { ...request, cancels: false }, now);
      const written = await paused.whilePausing(pause, () => pauses.pause(pause, audit));
      if (!("pause" in written)) {
        if (written.kind === "no_such_key") throw notFound("key");
        const message = `This account has ${PAUSES_MAX} pauses in force; end one of them first, or pause the whole account.`;
        throw new DomainError("validation_error", message);
      }
      return { pause: written.pause, isNew: written.kind === "paused" };
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
      if (pause === null) throw notFound("pause");
      if (pause.kind === "sign_up") throw accountStopped(accountId);
      const at = clock.now();
      const audit = auditEntry(caller, resumed(pause), at);
      // Otherwise a leaked key, which other nodes still know, could end the pause with which it was revoked.
      if ((await pauses.end(accountId, id, { at, by, audit, made: madeBy(caller) })) === "not_manager")
        throw notManager(caller);
      await paused.refresh(accountId);
    },

    /**
     * Revokes a key with `revoke`, which must also write the given pause of the key. Starts no action of the key meanwhile.
     * `cancels`: then cancels the key's unfinished actions, in the background.
     */
    async pauseRevoked<T>(
      caller: Caller,
      keyId: string,
      cancels: boolean,
      revoke: (pause: NonNullable<Revocation["pause"]>) => Promise<T>,
    ): Promise<T> {
      const request = { keyId, reason: "The key was revoked.", cancels };
      const now = clock.now();
      const made = newPause(ids.pause(now), caller, request, now);
      const result = await paused.whilePausing(made.pause, () => revoke(made));
      if (cancels) void canceller.run().catch(() => {});
      return result;
    },

    /** Cancels the unfinished actions of revoked keys, as far as possible now; never rejects. */
    cancelUnfinished: () => canceller.run(),
    /** The periodic job: loads the pauses again and continues to cancel. */
    async reconcile(): Promise<void> {
      await paused.reload();
      await canceller.run();
    },
    stop: () => canceller.stop(),
  };
}

function newPause(
  id: string,
  caller: Caller,
  { keyId, host = null, reason, cancels }: PauseRequest & Pick<Pause, "cancels">,
  createdAt: Date,
): NonNullable<Revocation["pause"]> {
  const { accountId, actor: createdBy } = caller;
  const made = { id, accountId, reason, cancels, createdAt, createdBy, endedAt: null, endedBy: null };
  const subject = keyId ?? host ?? "";
  const ofHost = host === null ? "account" : "host";
  const pause: Pause = { ...made, kind: keyId === null ? ofHost : "key", subject };
  const detail = {
    ...pauseDetail(pause),
    reason: reason === null ? null : maskText(reason, "public"),
    ...(cancels && { cancels }),
  };
  return { pause, audit: auditEntry(caller, { kind: "paused", subject: id, detail }, createdAt) };
}

export const CreatePauseBody = t.requestObject(
  "CreatePause",
  "What to pause: the actions that this key created, the calls to this host, or without both the whole account.",
  {
    key_id: Type.Optional(t.keyIdSchema),
    host: Type.Optional(
      t.hostSchema(
        "Host of the calls to pause, not together with `key_id`. With a port unless it is the scheme's default.",
      ),
    ),
    reason: Type.Optional(t.reason("Why; shown with every paused action.")),
  },
);

/** The host to pause. Throws `validation_error` if it is none, or if a key is named too. */
export function checkPausedHost(text: string, keyId: string | null): string {
  const host = checkHost(text, "validation_error");
  if (keyId === null) return host;
  throw invalidField("host", "Name a key or a host, not both.");
}

export const PauseJson = t.answerObject("Pause", "A pause in force: no action that it covers is sent.", {
  id: pauseIdSchema,
  kind: pauseKind,
  key_id: t.nullable(
    t.plainText("Id of the key that is paused; null: something else is.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
  ),
  host: Type.Optional(t.plainText("The host that is paused. Present if `kind` is `host`.", "api.example.com")),
  reason: pauseReason,
  cancels: t.yesNo(
    "The key was revoked with `unfinished=cancel`: its unfinished actions are being cancelled, then this pause ends.",
    false,
  ),
  created_at: t.dateTime("When it was paused."),
  created_by: t.plainText("Who paused it.", "key:owner"),
});

export const PauseListJson = t.answerObject("PauseList", "The pauses in force.", {
  data: Type.Array(PauseJson, { description: "The pauses in force, oldest first." }),
});

const serialize = (pause: Pause) => {
  const { kind, subject } = pause;
  return toJson(PauseJson, {
    ...pause,
    keyId: kind === "key" ? subject : null,
    host: kind === "host" ? subject : null,
  });
};

export const PauseParams = pathParams(Type.Object({ id: pauseIdSchema }), "There is no such pause.");

export function pauseRoutes({
  pauseService,
}: {
  readonly pauseService: Pick<PauseService, "list" | "pause" | "resume">;
}) {
  return createApiRoutes()
    .get(
      "/v1/pauses",
      async ({ caller }) => jsonResponse({ data: (await pauseService.list(caller)).map(serialize) }),
      operation({
        operationId: "listPauses",
        permission: "manage",
        summary: "List the pauses in force",
        description: "Lists the pauses in force, oldest first. The audit log has earlier pauses.",
        answers: { 200: { description: "The pauses in force.", schema: PauseListJson } },
      }),
    )
    .post(
      "/v1/pauses",
      async ({ caller, body: { key_id: keyId = null, host, reason = null } }) => {
        const asked = { keyId, host: host === undefined ? null : checkPausedHost(host, keyId), reason };
        const { pause, isNew } = await pauseService.pause(caller, asked);
        return jsonResponse(serialize(pause), isNew ? 201 : 200);
      },
      operation({
        operationId: "createPause",
        permission: "manage",
        summary: "Pause sending for the account, for one key or to one host",
        description: "Stops new attempts: none starts after the response.",
        notes: [
          "Attempts in progress end as usual. Actions can still be created, and wait.",
          "Where a pause is in force already, it is returned with 200.",
        ],
        body: jsonBody(CreatePauseBody),
        answers: {
          201: { description: "The pause. No attempt that it covers starts from then on.", schema: PauseJson },
          200: { description: "The pause that was in force already.", schema: PauseJson },
        },
        errors: ["not_found"],
      }),
    )
    .delete(
      "/v1/pauses/:id",
      ({ caller, params }) => noContent(pauseService.resume(caller, params.id)),
      operation({
        operationId: "endPause",
        permission: "manage",
        summary: "End a pause",
        description:
          "Ends a pause. Waiting actions that are due are sent at once. Ending an ended pause returns 204 again.",
        params: PauseParams,
        answers: { 204: { description: "The pause has ended.", schema: null } },
      }),
    );
}

/** The pauses in force, cached for the delivery queues and for answers. A claim checks the store, which is authoritative. */
export class ActivePauses extends AccountCache<Pause, ReadonlyMap<string, Pause>> {
  /** Subjects whose pause is being written. Nothing of theirs is started meanwhile. */
  readonly #blocked = new Counts();

  constructor(store: Pick<PauseStore, "inForce">) {
    const list = (accountId: string | null) => store.inForce(accountId);
    super({ list }, (pauses) => new Map(pauses.map((pause) => [subjectKey(pause), pause])));
  }

  /** The pause that stops actions of this lane. Of several, the widest: service, account, key, host. */
  readonly findPause = (scope: PauseScope): Pause | null => {
    const pauses = this.view(scope.accountId);
    return pauses === undefined
      ? null
      : (pausingSubjects(scope).flatMap((one) => pauses.get(subjectKey(one)) ?? [])[0] ?? null);
  };

  /** Whether the account signed up and the operator has not allowed it. */
  readonly isStopped = (accountId: string): boolean => {
    return this.view(accountId)?.has(subjectKey({ accountId, kind: "sign_up", subject: accountId })) === true;
  };

  /** Whether no attempt of this lane may start. */
  readonly isPaused = (scope: PauseScope): boolean => {
    if (this.#blocked.size > 0 && pausingSubjects(scope).some((one) => this.#blocked.has(subjectKey(one)))) return true;
    return this.findPause(scope) !== null;
  };

  /** Starts nothing of the subject while `write` runs, then reads the account's pauses again, even if the write failed. */
  async whilePausing<T>(subject: PauseSubject, write: () => Promise<T>): Promise<T> {
    const name = subjectKey(subject);
    this.#blocked.add(name);
    try {
      return await write();
    } finally {
      await this.refresh(subject.accountId, () => this.#blocked.remove(name));
    }
  }
}

/**
 * Cancels the unfinished actions of revoked keys in batches. The key stays paused until none is left, so that an action
 * whose attempt fails meanwhile is not sent again, and until no other node takes the key any more. It goes on after a restart.
 */
function createCanceller(
  app: AppContext,
  paused: Pick<ActivePauses, "refresh">,
  cancel: Decide,
  takenElsewhereMs: number,
) {
  const { clock, log } = app;
  const { accounts, pauses } = app.store;
  const stopped = new AbortController();
  let last = Promise.resolve();

  /** Cancels a batch. True: there may be more. False also if nothing could be cancelled, since the next step would be the same. */
  const step = async (pause: Pause): Promise<boolean> => {
    const { id: pauseId, accountId, subject, createdBy: actor } = pause;
    const { ids, isSending } = await pauses.unfinished(accountId, subject, CANCEL_BATCH_MAX);
    if (ids.length === 0 && !isSending) {
      const at = clock.now();
      // It may have been paused long before.
      const revokedAt = (await accounts.findKey(accountId, subject))?.revokedAt ?? pause.createdAt;
      const leftMs = revokedAt.getTime() + takenElsewhereMs - at.getTime();
      if (leftMs > 0) {
        clock.after(leftMs, () => void run());
        return false;
      }
      await pauses.end(accountId, pauseId, { at, by: SYSTEM, audit: auditOfSystem(accountId, resumed(pause), at) });
      await paused.refresh(accountId);
    }
    const caller: Caller = {
      accountId,
      keyId: null,
      keyName: actor,
      role: "owner",
      hold: "none",
      actor,
      clearsUp: true,
    };
    // Concurrently, so that they share commits.
    const cancelled = await Promise.all(
      ids.map((id) => cancel(caller, id, "The key that created it was revoked.").then(() => true, falseIfRefused)),
    );
    return cancelled.includes(true);
  };

  const cancelAll = async (): Promise<void> => {
    if (stopped.signal.aborted) return;
    for (const pause of await pauses.inForce(null)) {
      while (pause.cancels && !stopped.signal.aborted && (await step(pause)));
    }
  };

  /** Cancels as much as possible now, after earlier runs. Never rejects. */
  const run = (): Promise<void> => {
    last = last.then(cancelAll).catch((error: unknown) => {
      // `Outage` reports that the store is unavailable; `reconcile` continues when it is back.
      if (error instanceof StoreUnavailable) return;
      log.error("pauses.cancel_failed", { error: error instanceof Error ? error.name : "unknown" });
    });
    return last;
  };

  return {
    run,
    /** Starts nothing more. Resolves when the present run has ended. */
    async stop(): Promise<void> {
      stopped.abort();
      await last;
    },
  };
}

/** False if the cancel was refused, because the action has ended or is being sent; rethrows other errors. */
function falseIfRefused(error: unknown): false {
  if (error instanceof DomainError) return false;
  throw error;
}
