import type { Credential } from "./credential.ts";
import { CREDENTIAL_ALERT_MS } from "./limits.ts";

/** Why people are notified of the end of a credential: it is near, or has come. */
const STAGES = ["expiring", "expired"] as const;

/** One of two alerts for each end that a credential is given. */
export interface CredentialAlert {
  readonly stage: (typeof STAGES)[number];
  readonly expiresAt: Date;
}

/**
 * The event of a notification about the end of a credential, with that end in milliseconds and the place of its recipient. With
 * the id of the credential a row of the outbox is unique by it, so that nobody is notified twice.
 */
export type AlertEvent = `credential_${CredentialAlert["stage"]}:${number}:${number}`;

export function alertEvent({ stage, expiresAt }: CredentialAlert, place: number): AlertEvent {
  return `credential_${stage}:${expiresAt.getTime()}:${place}`;
}

/** The alert of an event; null: it is about something else. */
export function alertOf(event: string): CredentialAlert | null {
  const [, word, ms] = /^credential_(expiring|expired):(\d{1,15}):\d{1,4}$/.exec(event) ?? [];
  const stage = STAGES.find((one) => one === word);
  return stage === undefined ? null : { stage, expiresAt: new Date(Number(ms)) };
}

/**
 * Which alert of a credential is due now; null: none. Whoever makes one that ends within the time of the first alert knows of its
 * end. An end that passed while nothing ran is reported for as long.
 */
export function alertDue(
  { enabled, createdAt, expiresAt }: Pick<Credential, "enabled" | "createdAt" | "expiresAt">,
  now: Date,
): CredentialAlert | null {
  if (!enabled || expiresAt === null) return null;
  const leftMs = expiresAt.getTime() - now.getTime();
  if (leftMs <= 0) return leftMs > -CREDENTIAL_ALERT_MS ? { stage: "expired", expiresAt } : null;
  const isKnown = expiresAt.getTime() - createdAt.getTime() <= CREDENTIAL_ALERT_MS;
  return leftMs > CREDENTIAL_ALERT_MS || isKnown ? null : { stage: "expiring", expiresAt };
}
