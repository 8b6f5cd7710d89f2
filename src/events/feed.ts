import { positionText, readPosition, unknownPosition } from "../actions/list-schemas.ts";
import { authorize, type Caller, holderOf } from "../accounts/roles.ts";
import { DomainError } from "../api/domain-error.ts";
import { EVENT_STREAMS_PER_ACCOUNT_MAX } from "../config/limits.ts";
import { countByHolder, whoMakesRoom } from "../delivery/slots.ts";
import type { Bus } from "./bus.ts";
import type { ActionStore, ChangePage, ToldChange } from "../../db/store.ts";

interface FeedDeps {
  readonly actions: Pick<ActionStore, "changes" | "position" | "knowsPosition">;
  readonly bus: Pick<Bus, "subscribe">;
}

/** What a stream has to tell next. */
interface FeedPage {
  /** In the order of their commits; the same array for every stream that is told the same. May be empty. */
  readonly changes: readonly ToldChange[];
  /** Whoever has been told all of the page goes on from here. */
  readonly position: string;
  /** Whether the stream had told everything before this happened. */
  readonly isLive: boolean;
}

/** One listener's way through the changes of its account: each of them once, in the order of the commits. */
export interface EventStream {
  /** Where it begins. */
  readonly position: string;
  /** Resolves when there is something to tell; null when it is over. Rejects when the store can't be read. */
  next(): Promise<FeedPage | null>;
  /** Looks for news that nobody has told of. */
  look(): void;
  end(): void;
}

/** The changes of every account, for whoever may read them (decisions 1, 12). */
export interface Feed {
  /**
   * Goes on behind the event of this id, or begins now. It ends when the caller's key is revoked. Throws `invalid_query`
   * for an id that is not known, `rate_limited` when the account has too many streams. For a key with few of them the one
   * with the most makes room: its newest stream ends.
   */
  open(caller: Caller, lastEventId: string | null): Promise<EventStream>;
  /** Streams that are open now, of all accounts. */
  count(): number;
}

/**
 * The bus says only that there is news; what the news is, and in which order, the store says: so an event that was told of
 * late, twice or never is in its place all the same.
 */
export function createFeed({ actions, bus }: FeedDeps): Feed {
  const accounts = new Map<string, Listeners>();
  bus.subscribe(({ accountId }) => accounts.get(accountId)?.hear());

  const beginning = async (lastEventId: string | null): Promise<number> => {
    if (lastEventId === null) return actions.position();
    const position = readPosition(lastEventId);
    if (await actions.knowsPosition(position)) return position;
    throw unknownPosition("Is too old, or of another database: what came after it is not kept here.");
  };

  return {
    async open(caller, lastEventId) {
      authorize(caller, "read");
      const { accountId, revoked } = caller;
      const from = await beginning(lastEventId);
      // The key may have been revoked meanwhile.
      authorize(caller, "read");
      const listeners = accounts.get(accountId) ?? new Listeners((after) => actions.changes(accountId, after));
      accounts.set(accountId, listeners);
      const holder = holderOf(caller);
      if (listeners.streams.size >= EVENT_STREAMS_PER_ACCOUNT_MAX) makeRoom(listeners.streams, holder);
      const end = () => stream.end();
      const stream = new Stream({ listeners, holder, from }, () => {
        listeners.streams.delete(stream);
        revoked?.removeEventListener("abort", end);
        if (listeners.streams.size === 0 && accounts.get(accountId) === listeners) accounts.delete(accountId);
      });
      listeners.streams.add(stream);
      revoked?.addEventListener("abort", end);
      return stream;
    },
    count: () => accounts.values().reduce((sum, { streams }) => sum + streams.size, 0),
  };
}

function makeRoom(streams: ReadonlySet<Stream>, holder: string): void {
  const victim = whoMakesRoom(countByHolder(streams), holder);
  if (victim === null) throw tooMany();
  // The newest, since those that flood are. Whoever listens there may go on later from the last event that was seen.
  [...streams].findLast((stream) => stream.holder === victim)?.end();
}

function tooMany(): DomainError {
  const max = EVENT_STREAMS_PER_ACCOUNT_MAX;
  return new DomainError(
    "rate_limited",
    `This account has ${max} event streams open, and this key its share of them; close one of them first.`,
  );
}

/** The streams of one account. They are woken together, ask the store for the same thing, and it is asked once. */
class Listeners {
  readonly streams = new Set<Stream>();
  readonly #ask: (after: number) => Promise<ChangePage>;
  readonly #reading = new Map<number, Promise<ChangePage>>();
  #isWaking = false;

  constructor(ask: (after: number) => Promise<ChangePage>) {
    this.#ask = ask;
  }

  /** One commit brings news of many actions: they are read in one go, in the next turn. */
  hear(): void {
    if (this.#isWaking) return;
    this.#isWaking = true;
    setImmediate(() => {
      this.#isWaking = false;
      // What is being read was asked for before the news.
      this.#reading.clear();
      for (const stream of this.streams) stream.look();
    });
  }

  read(after: number): Promise<ChangePage> {
    const same = this.#reading.get(after);
    if (same !== undefined) return same;
    const page = this.#ask(after).finally(() => {
      if (this.#reading.get(after) === page) this.#reading.delete(after);
    });
    this.#reading.set(after, page);
    return page;
  }
}

interface StreamPlace {
  readonly listeners: Listeners;
  readonly holder: string;
  readonly from: number;
}

/** open -> `end`. */
class Stream implements EventStream {
  readonly position: string;
  readonly holder: string;
  readonly #listeners: Listeners;
  readonly #ended: () => void;
  #at: number;
  #hasNews = true;
  #isLive = false;
  #isOver = false;
  #wake: () => void = () => {};

  constructor({ listeners, holder, from }: StreamPlace, ended: () => void) {
    this.position = positionText(from);
    this.holder = holder;
    this.#listeners = listeners;
    this.#ended = ended;
    this.#at = from;
  }

  async next(): Promise<FeedPage | null> {
    while (!this.#isOver) {
      if (!this.#hasNews) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      // First forgotten, then read: what comes in between is news again.
      this.#hasNews = false;
      const { changes, position, isLast } = await this.#listeners.read(this.#at);
      if (this.#isOver) break;
      const [isLive, hasMoved] = [this.#isLive, position !== this.#at];
      this.#at = position;
      this.#isLive ||= isLast;
      this.#hasNews ||= !isLast;
      if (changes.length > 0 || (isLast && hasMoved)) return { changes, position: positionText(position), isLive };
      // A long way over what others wrote is walked in steps.
      await new Promise((resolve) => setImmediate(resolve));
    }
    return null;
  }

  look(): void {
    this.#hasNews = true;
    this.#wake();
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#wake();
    this.#ended();
  }
}
