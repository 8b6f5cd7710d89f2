/** The store: one member for each subject, over one connection. Where to read on: the file that makes the member. */
import { hostSettingsText, parseHostSettings } from "../../src/api/host-settings.ts";
import { parseActionPolicy } from "../../src/core/action-policy.ts";
import type { Clock } from "../../src/core/clock.ts";
import type { ClusterStore, Store } from "../../src/core/store.ts";
import { createCallbackHostStore, createHostSettingsStore } from "../commands/account-settings.ts";
import { createAccountStore } from "../commands/accounts.ts";
import { createActivityStore, createFirstStepStore } from "../commands/activity.ts";
import { createAuditStore } from "../commands/audit.ts";
import { createBulkStore } from "../commands/bulk.ts";
import { createChannelStore } from "../commands/channels.ts";
import type { DbConnection } from "../commands/command.ts";
import { createCredentialRequestStore, createCredentialStore } from "../commands/credentials.ts";
import { createFactStore, writeFacts } from "../commands/facts.ts";
import { createGrantStore } from "../commands/grants.ts";
import { createRejectionStore } from "../commands/key-limits.ts";
import { createLinkStore } from "../commands/links.ts";
import { createOAuthStore } from "../commands/oauth.ts";
import { createPauseStore } from "../commands/pauses.ts";
import { createPeopleStore, createTeamStore } from "../commands/people.ts";
import { createRuleStore } from "../commands/rules.ts";
import { createSealedStore } from "../commands/secrets.ts";
import { createSigningStore } from "../commands/signing.ts";
import { createUpkeepStore } from "../commands/upkeep.ts";
import type { LockTimes } from "../libsql/remote.ts";
import { createFileStore } from "../libsql/size.ts";
import { createActionStore } from "./actions.ts";
import type { OnAway } from "./errors.ts";
import { createOutboxStore } from "./queue.ts";
import { type ActionAccess, type HeaderSeal, type OnUnreadable, WrittenActions } from "./rows.ts";
import { Writer } from "./writer.ts";

interface StoreParts extends Pick<StoreSettings, "seal" | "onFatal" | "onAway" | "onUnreadable"> {
  /** Reports calls that find the database unavailable: see `tellingAway`. */
  readonly connection: DbConnection;
  readonly cluster: ClusterStore | null;
  readonly isOnlyProcess: boolean;
  /** Measures how long a commit takes. Default: the machine's clock. */
  readonly clock?: Pick<Clock, "after" | "monotonicMs">;
}

/** The `Store` over a connection. The tables must exist. */
export function createStore(parts: StoreParts): Store {
  const { connection, seal, cluster, isOnlyProcess, onUnreadable = () => {} } = parts;
  const writer = new Writer(connection, parts.onFatal, parts);
  const db: ActionAccess = { reader: connection, writer, seal, written: new WrittenActions(), onUnreadable };
  const actions = createActionStore(db);
  let closing: Promise<void> | null = null;
  const close = async () => {
    await writer.drain();
    await connection.close();
  };
  return {
    actions,
    outbox: createOutboxStore(db),
    accounts: createAccountStore(db),
    callbackHosts: createCallbackHostStore(db),
    hostSettings: createHostSettingsStore(db, hostSettingsText, parseHostSettings),
    rules: createRuleStore(db, parseActionPolicy),
    grants: createGrantStore(db),
    credentials: createCredentialStore(db),
    credentialRequests: createCredentialRequestStore(db),
    oauth: createOAuthStore(db),
    channels: createChannelStore(db),
    links: createLinkStore(db),
    people: createPeopleStore(db),
    team: createTeamStore(db),
    signing: createSigningStore(db),
    pauses: createPauseStore(db, actions),
    rejections: createRejectionStore(db),
    audit: createAuditStore(db),
    bulk: createBulkStore(db),
    activity: createActivityStore(db),
    firstSteps: createFirstStepStore(db),
    sealed: createSealedStore(db),
    upkeep: createUpkeepStore(db),
    file: isOnlyProcess ? createFileStore(connection) : null,
    facts: createFactStore(db),
    cluster,
    isOnlyProcess,
    get isUnavailable() {
      return writer.isAway;
    },
    async probe() {
      // It must be a write, since a full disk can still be read.
      await writer.run(writeFacts, { probe: crypto.randomUUID() });
    },
    // Closes once, however often it is called.
    close: () => (closing ??= close()),
  };
}

export interface StoreSettings {
  /** `file:<path>`, `postgres://…`, `libsql://…` or `http(s)://…`. */
  readonly url: string;
  readonly authToken: string | null;
  readonly seal: HeaderSeal;
  readonly now: Date;
  /**
   * Called when an accepted commit could not be made durable, or with `StoreLost` when another service has taken over the
   * database. The process must end.
   */
  readonly onFatal: (cause: unknown) => void;
  readonly onAway?: OnAway;
  /** Called with each row that can't be read, because it was altered in the database. */
  readonly onUnreadable?: OnUnreadable;
  /** Called when another service holds the remote database, or was killed and left its lock. Opening waits for the lock. */
  readonly onWait?: () => void;
  readonly lockTimes?: LockTimes;
  /** The name of this process among those on the same database. Default: a random one. */
  readonly nodeId?: string;
}
