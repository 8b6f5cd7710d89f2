import type { LaneName } from "../core/store.ts";
import { NEVER } from "./alarms.ts";
import type { TokenBucket } from "./token-bucket.ts";

/** What several lanes have in common. */
export class Group {
  readonly lanes = new Set<Lane>();
  inFlight = 0;
  /** Bytes of large rows that are claimed and not yet recorded. */
  largeBytes = 0;
}

/** The lanes of an account for one host. */
export class HostGroup extends Group {
  readonly name: string;
  /** Attempts that this process may have there; 0: other nodes call this host. */
  slots = 0;
  /** The same once no calls of other nodes from before hold up this one. */
  share = 0;
  /** How many of these slots are reserved for keys that hold none there. */
  reserve = 0;
  /** Null: its calls have no rate. */
  bucket: TokenBucket | null = null;
  /** The account limits calls to this host, so its creates don't wait for a slot. */
  isLimited = false;
  /** When a create last got a slot or began its call, by the monotonic clock, and how long it took between the two. */
  createdMs = Number.NEGATIVE_INFINITY;
  storingMs = 0;
  /** When it has a token again, by the monotonic clock, if a lane waits for one. */
  wakesAtMs = NEVER;

  constructor(name: string) {
    super();
    this.name = name;
  }
}

/** What memory knows of the rows that one key of an account has in the store for one host. */
export class Lane implements LaneName {
  readonly accountId: string;
  readonly host: string;
  readonly keyId: string;
  readonly name: string;
  readonly account: Group;
  readonly key: Group;
  /** The lanes of the account for this host share its slots. */
  readonly sameHost: HostGroup;
  inFlight = 0;
  /** Bytes of its large rows that are claimed and not yet recorded. */
  largeBytes = 0;
  /** Due rows that no claim has asked for; Infinity: the store may have any number. */
  waiting = 0;
  /** Rows added to this lane so far. */
  addedCount = 0;
  /** How often `waiting` became infinite because of time or the sweep. */
  refreshCount = 0;
  /** The next due row is large, so it needs memory besides a slot. */
  isLargeNext = false;
  /** When the earliest row that is not yet due becomes due, in milliseconds. */
  wakesAtMs = NEVER;
  /** No known row was due before this time, in milliseconds; claims read from here on. */
  dueFromMs = Number.MIN_SAFE_INTEGER;
  /** Rows noted so far that had been due for longer than a commit takes. */
  lateCount = 0;

  constructor(row: LaneName, { account, key, sameHost }: Pick<Lane, "account" | "key" | "sameHost">) {
    this.accountId = row.accountId;
    this.host = row.host;
    this.keyId = row.keyId;
    this.name = laneName(row);
    this.account = account;
    this.key = key;
    this.sameHost = sameHost;
    for (const group of [account, key, sameHost]) group.lanes.add(this);
  }
}

/** The name is unambiguous, since only the host may contain spaces. It is well-formed, as texts in the store are. */
export function laneName({ accountId, host, keyId }: LaneName): string {
  return `${accountId} ${keyId} ${host.toWellFormed()}`;
}

export function accountKeyName({ accountId, keyId }: LaneName): string {
  return `${accountId} ${keyId}`;
}

export function accountHostName({ accountId, host }: Pick<LaneName, "accountId" | "host">): string {
  return `${accountId} ${host}`;
}
