/** Names and chance come in here. Ids of actions sort by the time that they were made at. */
export interface Ids {
  action(at: Date): string;
  request(): string;
  account(): string;
  key(): string;
  person(): string;
  pause(): string;
  /** An id of a row that belongs to the service alone (outbox). */
  row(at: Date): string;
  /** Uniform in [0, 1): jitter only, never a secret. */
  chance(): number;
  /** From the system's generator: secrets. */
  bytes(count: number): Uint8Array<ArrayBuffer>;
}
