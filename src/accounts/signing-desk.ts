import { auditOf } from "../domain/audit.ts";
import { authorize, type Caller } from "../domain/caller.ts";
import { DomainError } from "../domain/errors.ts";
import type { SigningUse } from "../domain/signing-use.ts";
import type { AuditStore } from "../ports/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import { type Secrets, UnreadableSecret } from "../ports/secrets.ts";
import type { SigningStore } from "../ports/signing-store.ts";
import { type OriginSecrets, overlapEnd, seedPlace, type SigningSecrets } from "./signing-secrets.ts";

export interface SigningServiceDeps {
  readonly signing: Pick<SigningStore, "rotate" | "seeds">;
  readonly audit: Pick<AuditStore, "record">;
  readonly signingSecrets: SigningSecrets;
  readonly secrets: Pick<Secrets, "newRootSecret" | "seal">;
  readonly ids: Pick<Ids, "row">;
  readonly clock: Pick<Clock, "now">;
}

/** What signs the calls to one origin, as its owner reads it. */
export interface SigningSecret extends OriginSecrets {
  readonly origin: string;
}

/** A rotation that was made. */
export interface Rotation {
  /** Null: all origins. */
  readonly origin: string | null;
  readonly rotatedAt: Date;
  readonly previousExpiresAt: Date;
}

/** The use cases of signing secrets, for owners. An `origin` has been checked: scheme, host and port, nothing more. */
export type SigningService = ReturnType<typeof createSigningService>;

/** Puts the verbs on one desk. */
export function createSigningService({ signing, audit, signingSecrets, secrets, ids, clock }: SigningServiceDeps) {
  return {
    /**
     * `previous` is told as long as it signs. `isShown`: somebody gets to see it, which the audit log tells. Throws
     * `internal_error`, with the way out, where it can't be opened.
     */
    async read(caller: Caller, origin: string, use: SigningUse = "calls", isShown = true): Promise<SigningSecret> {
      authorize(caller, "manage");
      const now = clock.now();
      const { secret, previous } = await signingSecrets(caller.accountId, origin, now, use).catch(explain);
      // What can't be written down is not shown.
      if (isShown)
        await audit.record(
          auditOf(caller, { kind: "revealed", subject: origin, detail: { what: "signing_secret" } }, now),
        );
      return { origin, secret, previous: previous === null || now >= previous.expiresAt ? null : previous };
    },

    /** Until when the secret before the last rotation signs; null: there was none lately. It opens no secret. */
    async overlapEnd(caller: Caller, origin: string, use: SigningUse = "calls"): Promise<Date | null> {
      authorize(caller, "manage");
      const [newest] = await signing.seeds(caller.accountId, origin, use);
      const end = newest === undefined ? null : overlapEnd(newest.rotatedAt);
      return end === null || clock.now() >= end ? null : end;
    },

    /**
     * Gives one origin, or all of them, a new secret at once; the one before it signs too for 24 hours. No call has more
     * than two signatures: a second rotation within that time ends the oldest secret there and then. Without `use` it is
     * the secret of calls; of all origins that of callbacks too. The
     * new ones come from fresh chance, so that whoever holds an old one, or what it was derived from, knows nothing.
     */
    async rotate(caller: Caller, origin: string | null, use: SigningUse | null = null): Promise<Rotation> {
      authorize(caller, "manage");
      const rotatedAt = clock.now();
      const { accountId } = caller;
      const id = ids.row(rotatedAt);
      const sealedSeed = secrets.seal(secrets.newRootSecret(), seedPlace(id));
      const meant = origin === null ? use : (use ?? "calls");
      const entry = auditOf(caller, { kind: "signing_secret_rotated", subject: origin ?? "" }, rotatedAt);
      await signing.rotate({ id, accountId, origin, use: meant, sealedSeed, rotatedAt }, entry);
      // After the write: whoever asks the store from now on finds the new seed.
      signingSecrets.forget(accountId, origin);
      return { origin, rotatedAt, previousExpiresAt: overlapEnd(rotatedAt) };
    },
  };
}

function explain(error: unknown): never {
  if (!(error instanceof UnreadableSecret)) throw error;
  const message =
    "This signing secret can't be opened: its row in the database was altered. Rotate it, or restore a backup; the log names the row.";
  throw new DomainError("internal_error", message);
}
