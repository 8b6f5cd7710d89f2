import type { Pause, PauseScope } from "../domain/pause.ts";
import type { PauseStore } from "../ports/pauses.ts";

/**
 * What is paused, as this process knows it: for the queues, which leave it out, and for answers, which say so. The claim asks
 * the store, which is the truth.
 */
export class PausedSet {
  readonly #store: Pick<PauseStore, "inForce">;
  /** By `nameOf`. */
  readonly #pauses = new Map<string, Pause>();
  /** Pauses that are being written: nothing of theirs is begun meanwhile. */
  readonly #blocked = new Map<string, number>();
  /** The newest read of each account that is under way, and how many there were of any. */
  readonly #reads = new Map<string, number>();
  #begun = 0;
  #onChange: (accountId: string) => void = () => {};

  constructor(store: Pick<PauseStore, "inForce">) {
    this.#store = store;
  }

  /** Takes in all that is in force: before anything is claimed, and again now and then. */
  async load(): Promise<void> {
    let began = this.#begun;
    let inForce = await this.#readAll();
    // What was read of one account meanwhile is newer than this.
    for (let tries = 1; began !== this.#begun; tries += 1) {
      if (tries >= LOAD_TRIES_MAX) return;
      began = this.#begun;
      inForce = await this.#readAll();
    }
    const all = [...this.#pauses.values(), ...inForce.values()];
    const changed = all.filter((pause) => this.#pauses.get(nameOf(pause))?.id !== inForce.get(nameOf(pause))?.id);
    this.#pauses.clear();
    for (const [name, pause] of inForce) this.#pauses.set(name, pause);
    for (const accountId of new Set(changed.map((pause) => pause.accountId))) this.#onChange(accountId);
  }

  async #readAll(): Promise<ReadonlyMap<string, Pause>> {
    return new Map((await this.#store.inForce(null)).map((pause) => [nameOf(pause), pause]));
  }

  /** Tells one listener of accounts whose pauses have changed. */
  onChange(listener: (accountId: string) => void): void {
    this.#onChange = listener;
  }

  /** The pause that stops what this key of the account created; of several the one that is hardest to end. */
  readonly of = ({ accountId, keyId }: PauseScope): Pause | null => {
    if (this.#pauses.size === 0) return null;
    return (
      this.#pauses.get(`${accountId} ${accountId}`) ??
      this.#pauses.get(`${accountId} `) ??
      this.#pauses.get(`${accountId} ${keyId}`) ??
      null
    );
  };

  /** Whether the account was signed up, and nobody has allowed it. */
  readonly isStopped = (accountId: string): boolean => {
    return this.#pauses.size > 0 && this.#pauses.get(`${accountId} ${accountId}`)?.kind === "sign_up";
  };

  /** Whether nothing of it may be begun. */
  readonly stops = ({ accountId, keyId }: PauseScope): boolean => {
    if (this.#blocked.size > 0 && [`${accountId} `, `${accountId} ${keyId}`].some((name) => this.#blocked.has(name))) {
      return true;
    }
    return this.of({ accountId, keyId }) !== null;
  };

  /**
   * Has nothing of the subject begun while its pause is being written, then takes in what the store has by then: also where
   * the write failed.
   */
  async while<T>(subject: Pick<Pause, "accountId" | "subject">, write: () => Promise<T>): Promise<T> {
    const name = nameOf(subject);
    this.#blocked.set(name, (this.#blocked.get(name) ?? 0) + 1);
    try {
      return await write();
    } finally {
      await this.#read(subject.accountId).finally(() => {
        const left = (this.#blocked.get(name) ?? 1) - 1;
        if (left === 0) this.#blocked.delete(name);
        else this.#blocked.set(name, left);
        this.#onChange(subject.accountId);
      });
    }
  }

  /** Takes in what the store has of an account, after a pause of it has ended. */
  async refresh(accountId: string): Promise<void> {
    await this.#read(accountId);
    this.#onChange(accountId);
  }

  async #read(accountId: string): Promise<void> {
    this.#begun += 1;
    const read = this.#begun;
    this.#reads.set(accountId, read);
    const inForce = await this.#store.inForce(accountId);
    // Of several under way the one that began last has seen the most.
    if (this.#reads.get(accountId) !== read) return;
    this.#reads.delete(accountId);
    for (const [name, pause] of this.#pauses) if (pause.accountId === accountId) this.#pauses.delete(name);
    for (const pause of inForce) this.#pauses.set(nameOf(pause), pause);
  }
}

/** Beyond this the next load takes it in. */
const LOAD_TRIES_MAX = 10;

/** Ids have no space in them; the subject of an account is empty, and of one that is stopped its own id. */
function nameOf({ accountId, subject }: Pick<Pause, "accountId" | "subject">): string {
  return `${accountId} ${subject}`;
}
