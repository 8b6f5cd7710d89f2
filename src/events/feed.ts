import { decodeCursor, encodeCursor } from "../api/cursor.ts";
import type { Action } from "../core/action.ts";
import { authorize, type Caller, holderId } from "../core/roles.ts";
import { DomainError } from "../core/domain-error.ts";
import { EVENT_STREAMS_PER_ACCOUNT_MAX } from "../core/limits.ts";
import { countByHolder, holderToEvict } from "../runtime/fair-share.ts";
import type { ActionStore, ChangePage, ActionChange } from "../core/store.ts";

interface FeedPage {
  /** In commit order; may be empty. Streams that get the same changes share the array. */
  readonly changes: readonly ActionChange[];
  /** Where to continue after this page. */
  readonly position: string;
  /** Whether the stream had caught up before these changes. */
  readonly isLive: boolean;
  /** Whether `ask` called for a page, even an empty one, because something besides actions may have changed. */
  readonly isAsked: boolean;
}

/** Streams changes to callers that may read them. See docs/events.md. */
export type Feed = ReturnType<typeof createFeed>;

/** `changed` is only a hint to read the store: it may come late, twice or never. */
export function createFeed(actions: Pick<ActionStore, "changes" | "position" | "knowsPosition">) {
  const accounts = new Map<string, AccountStreams>();

  const startPosition = async (lastEventId: string | null): Promise<number> => {
    if (lastEventId === null) return actions.position();
    const digits = decodeCursor(lastEventId, /^\d{1,16}$/);
    if (digits === null) throw unknownPosition("Is not the id of an event of this stream.");
    const position = Number(digits);
    if (await actions.knowsPosition(position)) return position;
    throw unknownPosition("Is too old, or of another database: what came after it is not kept here.");
  };

  return {
    /**
     * Continues after the event with this id, or begins now. The stream's sender ends it once the caller's key is revoked. To
     * make room for a key with few streams, ends the newest stream of the key with the most. Throws `invalid_query` for an
     * unknown id and `rate_limited` if the account has too many streams.
     */
    async open(caller: Caller, lastEventId: string | null): Promise<EventStream> {
      const { accountId } = caller;
      const from = await startPosition(lastEventId);
      // After the read, since the key may have been revoked meanwhile.
      authorize(caller, "read");
      const account = accounts.get(accountId) ?? new AccountStreams((after) => actions.changes(accountId, after));
      accounts.set(accountId, account);
      const holder = holderId(caller);
      if (account.streams.size >= EVENT_STREAMS_PER_ACCOUNT_MAX) makeRoom(account.streams, holder);
      const stream = new Stream(account, holder, from, () => {
        account.streams.delete(stream);
        if (account.streams.size === 0 && accounts.get(accountId) === account) accounts.delete(accountId);
      });
      account.streams.add(stream);
      return stream;
    },
    /** Tells the account's streams that actions have changed. */
    changed: ({ accountId }: Pick<Action, "accountId">) => accounts.get(accountId)?.onChange(),
    /** Tells the account's streams that something else on its pages has changed. */
    ask: (accountId: string) => accounts.get(accountId)?.streams.forEach((stream) => stream.ask()),
    /** Ids of the accounts with open streams. */
    accounts: () => accounts.keys(),
    hasStreams: (accountId: string) => accounts.has(accountId),
    /** Number of open streams of all accounts. */
    count: () => accounts.values().reduce((sum, { streams }) => sum + streams.size, 0),
  };
}

function makeRoom(streams: ReadonlySet<Stream>, holder: string): void {
  const holderToEnd = holderToEvict(countByHolder(streams), holder);
  if (holderToEnd === null) {
    const message = `This account has ${EVENT_STREAMS_PER_ACCOUNT_MAX} event streams open, and this key its share of them`;
    throw new DomainError("rate_limited", `${message}; close one of them first.`);
  }
  // The newest, since a flood consists of new ones. Its reader can continue later after the last event that it saw.
  [...streams].findLast((stream) => stream.holder === holderToEnd)?.end();
}

/** A position in the stream as an event's id. */
export function positionText(position: number): string {
  return encodeCursor(String(position));
}

/** The error for a `Last-Event-ID` after which the stream can't continue without a gap. */
function unknownPosition(message: string): DomainError {
  return new DomainError("invalid_query", "The stream can't go on from this Last-Event-ID; open it without one.", [
    { field: "Last-Event-ID", message },
  ]);
}

/** The streams of one account. They wake together and share the read of the same page. */
class AccountStreams {
  readonly streams = new Set<Stream>();
  readonly #readPage: (after: number) => Promise<ChangePage>;
  readonly #reading = new Map<number, Promise<ChangePage>>();
  #isWaking = false;

  constructor(readPage: (after: number) => Promise<ChangePage>) {
    this.#readPage = readPage;
  }

  /** Wakes the streams in the next turn of the event loop, because one commit can change many actions. */
  onChange(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    setImmediate(() => {
      this.#isWaking = false;
      // Reads in progress began before this change.
      this.#reading.clear();
      for (const stream of this.streams) stream.poll();
    });
  }

  read(after: number): Promise<ChangePage> {
    const same = this.#reading.get(after);
    if (same !== undefined) return same;
    const page = this.#readPage(after).finally(() => {
      if (this.#reading.get(after) === page) this.#reading.delete(after);
    });
    this.#reading.set(after, page);
    return page;
  }
}

export type EventStream = Pick<Stream, "position" | "next" | "ask" | "end">;

/** One reader of its account's changes. Delivers each once, in commit order, until `end`. */
class Stream {
  /** The position where it begins. */
  readonly position: string;
  readonly holder: string;
  readonly #account: AccountStreams;
  readonly #ended: () => void;
  #at: number;
  #isBehind = true;
  #isAsked = false;
  #isLive = false;
  #isOver = false;
  #wake: () => void = () => {};

  constructor(account: AccountStreams, holder: string, from: number, ended: () => void) {
    this.position = positionText(from);
    this.holder = holder;
    this.#account = account;
    this.#ended = ended;
    this.#at = from;
  }

  /** Waits for changes or `ask`. Null when the stream has ended. Rejects if the store can't be read. */
  async next(): Promise<FeedPage | null> {
    while (!this.#isOver) {
      if (!this.#isBehind) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      // Reset before the read, so that a change during it is not missed.
      this.#isBehind = false;
      const { changes, position, isLast } = await this.#account.read(this.#at);
      if (this.#isOver) break;
      const [isLive, isAsked, hasMoved] = [this.#isLive, this.#isAsked, position !== this.#at];
      this.#at = position;
      this.#isLive ||= isLast;
      this.#isBehind ||= !isLast;
      if (changes.length > 0 || isAsked || (isLast && hasMoved)) {
        this.#isAsked = false;
        return { changes, position: positionText(position), isLive, isAsked };
      }
      // Other work gets a turn between pages, since other accounts may have many changes.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return null;
  }

  /** Reads the store even if nothing was announced. */
  poll(): void {
    this.#isBehind = true;
    this.#wake();
  }

  /** Reads the store, and returns a page even if nothing has changed. */
  ask(): void {
    this.#isAsked = true;
    this.poll();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wake();
    this.#ended();
  }
}
