import type { Caller } from "../domain/caller.ts";
import type { Clock } from "../ports/clock.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { createResume, type ResumeDeps } from "./resume.ts";

/** Somebody whose answer goes on after it began. */
export interface SessionWatch {
  /** Who it is; `revoked` is aborted when their session ends. */
  readonly caller: Caller;
  /** To be called once they are gone, or they are remembered for good. */
  readonly release: () => void;
}

/**
 * Who stays, by their session: so that its end counts at once for what is still open by it, as the end of a key does. What
 * another process ended is not heard of here; whoever stays is judged again now and then.
 */
export interface SessionRegistry {
  /** Null: the session has ended, or was none. */
  readonly watchSession: (sessionToken: string) => Promise<SessionWatch | null>;
  /** A session was ended; after the write, so that nobody comes in by it any more. */
  ended(sessionHash: string): void;
  /** Sessions of a person may have ended; which of them the store knows. */
  look(personId: string): Promise<void>;
}

export interface SessionRegistryDeps extends ResumeDeps {
  readonly people: Pick<PeopleStore, "session">;
  readonly secrets: Pick<Secrets, "hash">;
  readonly clock: Pick<Clock, "now">;
}

interface Staying {
  readonly sessionHash: string;
  readonly personId: string | undefined;
  readonly end: () => void;
}

export function createSessionRegistry({ people, secrets, clock }: SessionRegistryDeps): SessionRegistry {
  const resume = createResume({ people, secrets, clock });
  const watched = new Set<Staying>();

  return {
    async watchSession(sessionToken) {
      const person = await resume(sessionToken);
      if (person === null) return null;
      const { caller } = person;
      const session = new AbortController();
      const end = () => session.abort();
      const one = { sessionHash: secrets.hash(sessionToken), personId: caller.personId, end };
      const release = () => void watched.delete(one);
      watched.add(one);
      // Once more: it may have ended between the look and the line before.
      const isStill = await resume(sessionToken).catch((error: unknown) => {
        release();
        throw error;
      });
      if (isStill !== null) return { caller: { ...caller, revoked: session.signal }, release };
      release();
      return null;
    },
    ended(sessionHash) {
      for (const one of watched) if (one.sessionHash === sessionHash) one.end();
    },
    async look(personId) {
      const theirs = [...watched].filter((one) => one.personId === personId);
      const now = clock.now();
      // One that can't be asked about is ended too: whoever has it comes back and is judged then.
      const isOver = ({ sessionHash }: Staying) => people.session(sessionHash, now).then((who) => who === null);
      await Promise.all(
        theirs.map(async (one) => {
          if (await isOver(one).catch(() => true)) one.end();
        }),
      );
    },
  };
}
