import {
  NODE_CHANGES_MAX,
  NODE_IDS_CHECKED_MAX,
  NODE_LOADS_AT_ONCE_MAX,
  NODE_LOADS_MAX,
  NODE_PAGES_MAX,
  NODE_POLL_MS,
  NODE_READ_MS_MIN,
} from "../core/limits.ts";
import { errorName, type Log } from "../observability/log.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Clock } from "../core/clock.ts";
import { type ActionStore, type ChangedPage, type ClusterStore, StoreUnavailable } from "../core/store.ts";
import type { Bus } from "../core/bus.ts";
import type { Feed } from "./feed.ts";

interface NodeFeedDeps {
  readonly cluster: Pick<ClusterStore, "changedSince" | "findRevisions" | "listen">;
  readonly actions: Pick<ActionStore, "findById" | "position">;
  readonly bus: Pick<Bus, "subscribe" | "relay" | "isNews" | "watched">;
  readonly streams: Pick<Feed, "changed" | "accounts" | "hasStreams">;
  /** Called when other nodes may have stored due rows: often, and sometimes for nothing. */
  readonly onRowsElsewhere: () => void;
  readonly clock: Pick<Clock, "after" | "monotonicMs">;
  readonly log: Pick<Log, "warn" | "error">;
  readonly metrics: Pick<Metrics, "taskFailed">;
}

/**
 * Announces other nodes' changes on this node. Reads the timeline every `NODE_POLL_MS`, and soon after a hint. Watchers of an
 * action hear of each revision once, because the bus remembers the last one. They need no order, so they also hear of changes
 * that an open transaction holds back. Streams need order, so they wake when the position has passed a change.
 *
 * A node that fell behind continues at the newest position and reads all watched actions, which show what it skipped. An
 * action that ended and was retried between two reads is announced as retried.
 */
export class NodeFeed {
  readonly #deps: NodeFeedDeps;
  /** Watched actions to load and announce, with the revision read. */
  readonly #news = new Map<string, number>();
  #position = 0;
  /** Whether the position is unknown or too far back. */
  #isBehind = true;
  /** How long to wait for transactions that hold the position back; 0 if none do. */
  #heldBackMs = 0;
  #isRunning = false;
  #round: Promise<void> | null = null;
  /** Whether something changed during the round. */
  #isStale = false;
  #beganMs = Number.NEGATIVE_INFINITY;
  /** When the next round begins. */
  #nextMs = Number.POSITIVE_INFINITY;
  #cancelTimer = () => {};
  #unsubscribe = () => {};
  #stopListening: (() => Promise<void>) | null = null;

  constructor(deps: NodeFeedDeps) {
    this.#deps = deps;
  }

  /** Resolves when the position is known. If the store is away, resolves without one and keeps trying. */
  async start(): Promise<void> {
    const { bus, streams, cluster } = this.#deps;
    this.#isRunning = true;
    // An open transaction may also keep streams from reading a change of this node.
    this.#unsubscribe = bus.subscribe(({ accountId }) => {
      if (streams.hasStreams(accountId)) this.#readSoon();
    });
    this.#stopListening = await cluster.listen(
      () => this.#onHint(this.#hasReaders()),
      // Hints were lost, but the next round reads all changes.
      () => this.#onHint(true),
    );
    if (this.#round === null) this.#begin();
    await this.#round;
  }

  async stop(): Promise<void> {
    this.#isRunning = false;
    this.#unsubscribe();
    this.#cancelTimer();
    await Promise.all([this.#stopListening?.(), this.#round]);
  }

  #onHint(reads: boolean): void {
    this.#deps.onRowsElsewhere();
    if (reads) this.#readSoon();
  }

  #hasReaders(): boolean {
    const [[watched], [streaming]] = [this.#deps.bus.watched(), this.#deps.streams.accounts()];
    return watched !== undefined || streaming !== undefined;
  }

  /** Plans the next round for now, or for when the last one is long enough ago. */
  #readSoon(): void {
    this.#isStale = true;
    if (this.#round === null) this.#schedule(this.#beganMs + NODE_READ_MS_MIN);
  }

  #schedule(atMs: number): void {
    if (!this.#isRunning || atMs >= this.#nextMs) return;
    this.#cancelTimer();
    this.#nextMs = atMs;
    const delayMs = atMs - this.#deps.clock.monotonicMs();
    if (delayMs <= 0) this.#begin();
    else this.#cancelTimer = this.#deps.clock.after(Math.ceil(delayMs), () => this.#begin());
  }

  #begin(): void {
    const beganMs = this.#deps.clock.monotonicMs();
    this.#beganMs = beganMs;
    this.#nextMs = Number.POSITIVE_INFINITY;
    this.#isStale = false;
    this.#round = this.#runOne(beganMs);
  }

  async #runOne(beganMs: number): Promise<void> {
    const waitMs = await this.#run();
    this.#round = null;
    this.#schedule(beganMs + (this.#isStale ? NODE_READ_MS_MIN : waitMs));
  }

  /** Runs a round and returns the time until the next one if no hint comes. Never rejects. */
  async #run(): Promise<number> {
    const before = this.#position;
    try {
      if (this.#isBehind || !this.#hasReaders()) await this.#skip();
      else await this.#read();
      if (this.#position !== before) this.#deps.onRowsElsewhere();
      await this.#tell();
    } catch (error) {
      this.#onError(error);
      return NODE_POLL_MS;
    }
    if (this.#isBehind || this.#news.size > 0) return NODE_READ_MS_MIN;
    return this.#heldBackMs === 0 ? NODE_POLL_MS : this.#heldBackMs;
  }

  /** Reads a bounded number of pages after the position. */
  async #read(): Promise<void> {
    for (let pages = 0; pages < NODE_PAGES_MAX; pages += 1) {
      const page = await this.#deps.cluster.changedSince(this.#position, NODE_CHANGES_MAX);
      this.#note(page);
      const hasMoved = page.position !== this.#position;
      this.#position = page.position;
      const isFull = page.changes.length >= NODE_CHANGES_MAX;
      if (page.isLast || !hasMoved || !isFull) {
        const waitMs = hasMoved ? NODE_READ_MS_MIN : Math.max(NODE_READ_MS_MIN, 2 * this.#heldBackMs);
        this.#heldBackMs = page.isLast ? 0 : Math.min(NODE_POLL_MS, waitMs);
        // More changes than one page are visible behind a position that doesn't move.
        if (isFull && !hasMoved) await this.#checkWatched();
        return;
      }
    }
    this.#isBehind = true;
    this.#deps.log.warn("nodes.feed_skipped", { rows: NODE_PAGES_MAX * NODE_CHANGES_MAX });
  }

  #note({ changes, position }: ChangedPage): void {
    const { bus, streams } = this.#deps;
    const readable = new Set<string>();
    for (const { seq, actionId, accountId, revision } of changes) {
      if (bus.isNews(actionId, revision)) this.#news.set(actionId, revision);
      if (seq <= position && streams.hasStreams(accountId)) readable.add(accountId);
    }
    for (const accountId of readable) streams.changed({ accountId });
  }

  /** Skips to the newest position. Reads it first, so that whatever the other reads miss comes after it. */
  async #skip(): Promise<void> {
    const { actions, streams } = this.#deps;
    const position = await actions.position();
    await this.#checkWatched();
    for (const accountId of streams.accounts()) streams.changed({ accountId });
    this.#position = position;
    this.#isBehind = false;
    this.#heldBackMs = 0;
  }

  async #checkWatched(): Promise<void> {
    const { bus, cluster } = this.#deps;
    const ids = [...bus.watched()];
    for (let from = 0; from < ids.length; from += NODE_IDS_CHECKED_MAX) {
      const revisions = await cluster.findRevisions(ids.slice(from, from + NODE_IDS_CHECKED_MAX));
      for (const [id, revision] of revisions) if (bus.isNews(id, revision)) this.#news.set(id, revision);
    }
  }

  /** Loads actions and notifies their watchers. The next round begins with the rest. */
  async #tell(): Promise<void> {
    const ids = [...this.#news.keys()].slice(0, NODE_LOADS_MAX).values();
    const tellNext = async () => {
      for (const id of ids) await this.#loadAndTell(id);
    };
    await Promise.all(Array.from({ length: NODE_LOADS_AT_ONCE_MAX }, tellNext));
  }

  async #loadAndTell(id: string): Promise<void> {
    const { bus, actions } = this.#deps;
    // The watchers may have left or heard of it meanwhile.
    const isNews = bus.isNews(id, this.#news.get(id) ?? 0);
    try {
      const action = isNews ? await actions.findById(id) : null;
      if (action !== null) bus.relay(action);
    } catch (error) {
      // The next round tries again when the store is back. Any other error concerns only this row and must not stop the others.
      if (error instanceof StoreUnavailable) throw error;
      this.#onError(error);
    }
    this.#news.delete(id);
  }

  #onError(error: unknown): void {
    // The store's writers log that it is away.
    if (error instanceof StoreUnavailable) return;
    this.#deps.metrics.taskFailed("nodes.feed");
    this.#deps.log.error("nodes.feed_failed", { error: errorName(error) });
  }
}
