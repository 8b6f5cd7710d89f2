import { AccountCache } from "../core/account-settings.ts";
import { Counts } from "../core/counts.ts";
import {
  type Pause,
  type PauseScope,
  type PauseStore,
  type PauseSubject,
  pausesOf,
  subjectKey,
} from "../core/pause.ts";

/** The pauses in force, cached for the delivery queues and for answers. A claim checks the store, which is authoritative. */
export class ActivePauses extends AccountCache<Pause, ReadonlyMap<string, Pause>> {
  /** Subjects whose pause is being written. Nothing of theirs is started meanwhile. */
  readonly #blocked = new Counts();

  constructor(store: Pick<PauseStore, "inForce">) {
    const list = (accountId: string | null) => store.inForce(accountId);
    super({ list }, (pauses) => new Map(pauses.map((pause) => [subjectKey(pause), pause])));
  }

  /** The pause that stops actions of this lane. Of several, the widest: service, account, key, host. */
  readonly pauseOf = (scope: PauseScope): Pause | null => {
    const pauses = this.viewOf(scope.accountId);
    return pauses === undefined
      ? null
      : (pausesOf(scope).flatMap((one) => pauses.get(subjectKey(one)) ?? [])[0] ?? null);
  };

  /** Whether the account signed up and the operator has not allowed it. */
  readonly isStopped = (accountId: string): boolean => {
    return this.viewOf(accountId)?.has(subjectKey({ accountId, kind: "sign_up", subject: accountId })) === true;
  };

  /** Whether no attempt of this lane may start. */
  readonly isPaused = (scope: PauseScope): boolean => {
    if (this.#blocked.size > 0 && pausesOf(scope).some((one) => this.#blocked.has(subjectKey(one)))) return true;
    return this.pauseOf(scope) !== null;
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
