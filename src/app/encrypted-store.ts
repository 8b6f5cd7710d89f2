import { existsSync } from "node:fs";
import { refusedPlace, singlePath } from "../../db/libsql/inspect.ts";
import { databaseExists, openStore } from "../../db/open.ts";
import { errorCode } from "../../db/sql/errors.ts";
import type { Config } from "../config/config.ts";
import { databaseAddress } from "../config/values.ts";
import { fingerprint, keyFileFor, KeyChanged, loadMasterKey } from "../crypto/master-key.ts";
import type { Clock } from "../core/clock.ts";
import type { Ids } from "../core/ids.ts";
import { type Store, StoreUnavailable } from "../core/store.ts";
import { createSecrets, type Secrets, checkKeyMark, checkMasterKey, keptLinkKey } from "../crypto/secrets.ts";
import { bootstrap } from "../accounts/bootstrap.ts";
import { inTurn } from "../runtime/jobs.ts";
import { createNode, type Node } from "../runtime/node.ts";
import type { Log } from "../observability/log.ts";
import type { StoreSettings } from "../../db/sql/store.ts";

/** The store with the keys that decrypt it. */
interface EncryptedStore {
  readonly store: Store;
  readonly secrets: Secrets;
  /** The key file, if it was there before. */
  readonly oldKeyFile: string | null;
  readonly warnings: readonly string[];
  /** Ends the process if another master key was set meanwhile: what it encrypts could not be read. */
  readonly recheckKey: () => Promise<void>;
}

interface EncryptedStoreDeps {
  readonly clock: Clock;
  readonly ids: Ids;
  /**
   * Called if a commit could not be made durable, with `StoreLost` if another service has taken over the database, or with
   * `KeyChanged`. The process must end at once.
   */
  readonly onFatal: (cause: unknown) => void;
  /** Called each time a call finds the store unavailable. */
  readonly onAway?: (error: StoreUnavailable) => void;
  readonly onUnreadable?: StoreSettings["onUnreadable"];
  /** The name of this process among those on the same database. */
  readonly nodeId?: string;
}

/**
 * Opens the store under its master key. Throws an error for the operator, and writes nothing, if the key is missing, broken
 * or not the one that the store was created with. `onWait` is called while another service has the database locked, or was killed and
 * left its lock.
 */
export async function openEncryptedStore(
  config: Config,
  deps: EncryptedStoreDeps,
  onWait = () => {},
): Promise<EncryptedStore> {
  try {
    return await open(config, deps, onWait);
  } catch (error) {
    const { database } = config;
    const isOfPlace = !(error instanceof StoreUnavailable) && database.kind === "file";
    const problem = isOfPlace ? placeProblem(database.path, errorCode(error)) : null;
    throw problem === null ? error : new Error(problem, { cause: error });
  }
}

/** Codes of errors that a file, its disk or the rights to them cause. */
const OF_FILES = /^(EACCES|EPERM|EROFS|EIO|SQLITE_(CANTOPEN|READONLY|IOERR|PERM)\w*)$/;

/** What is wrong with the path of a database, or null. Errors of SQLite don't name the file, and those of the system only that. */
function placeProblem(path: string, failedWith: string): string | null {
  const refused = refusedPlace(path);
  if (refused === null) {
    if (!OF_FILES.test(failedWith)) return null;
    return (
      `The database ${path} can't be opened (${failedWith}). Let the user of the service read and write its folder and all files ` +
      "in it whose names begin like the database's, and look at its disk."
    );
  }
  const { place, code } = refused;
  if (place === path) {
    return (
      `The database ${path} can't be read or written (${code}). Run the service as the user that it belongs to, and let ` +
      "that user write it."
    );
  }
  return (
    `The database ${path} can't be opened: ${place} is no folder that the service may write to (${code}). ` +
    "Make it one, or set DATABASE_URL to a file in another folder."
  );
}

async function open(
  { database, secretKey }: Config,
  deps: EncryptedStoreDeps,
  onWait: () => void,
): Promise<EncryptedStore> {
  const { clock, ids, onFatal, onAway, onUnreadable, nodeId = ids.node() } = deps;
  const { url, authToken } = databaseAddress(database);
  if (database.kind === "file") {
    const { path } = database;
    singlePath(path);
    // SQLite would open it for reads alone, and every write would fail. `placeProblem` says it in whole.
    if (refusedPlace(path)?.place === path) throw new Error("The database file can't be written.");
  }
  const random = (count: number) => ids.bytes(count);
  const keyFile = database.kind === "file" ? keyFileFor(database.path) : null;
  const oldKeyFile = secretKey === null && keyFile !== null && existsSync(keyFile) ? keyFile : null;
  const masterKey = loadMasterKey({
    secretKey,
    keyFile,
    databaseExists: databaseExists(url),
    random,
  });
  const seal = createSecrets(masterKey.bytes, random);
  const store = await openStore({
    url,
    authToken,
    seal,
    now: clock.now(),
    onFatal,
    nodeId,
    ...(onAway && { onAway }),
    ...(onUnreadable && { onUnreadable }),
    onWait,
  });
  try {
    const check = () => checkMasterKey(store, masterKey.bytes, seal);
    await (store.cluster === null ? check() : inTurn("start", { cluster: store.cluster, nodeId, clock }, check));
    const linkKey = await keptLinkKey(store, seal);
    const secrets = linkKey === null ? seal : createSecrets(masterKey.bytes, random, linkKey);
    const recheckKey = async () => {
      await checkKeyMark(store, fingerprint(masterKey.bytes)).catch((error: unknown) => {
        if (!(error instanceof StoreUnavailable))
          onFatal(new KeyChanged(String(error instanceof Error ? error.message : error)));
        throw error;
      });
    };
    return { store, secrets, oldKeyFile, warnings: masterKey.warning === null ? [] : [masterKey.warning], recheckKey };
  } catch (error) {
    await store.close();
    throw error;
  }
}

export interface OpeningDeps extends EncryptedStoreDeps {
  readonly log: Log;
  /** Called with the reason why the start waits. */
  readonly onWaiting: (reason: string) => void;
  readonly nodeId: string;
}

/** The opened store with its first account. */
export type Opened = Awaited<ReturnType<typeof openForService>>;

/**
 * Opens the store, and creates its first account in a new one. Rejects with `StoreUnavailable` while the store is
 * unreachable, locked or full, and with an error for the operator if waiting would not help; nothing is left open then.
 */
export async function openForService(config: Config, deps: OpeningDeps) {
  const onWait = () => deps.onWaiting("another service holds the database, or did");
  const { nodeId } = deps;
  const encryptedStore = await openEncryptedStore(config, deps, onWait);
  const { store, secrets, oldKeyFile } = encryptedStore;
  const { accounts, people, facts, cluster } = store;
  let node: Node | null = null;
  try {
    node = cluster === null ? null : await createNode(nodeId, cluster, deps, encryptedStore.recheckKey);
    const clock = node?.clock ?? deps.clock;
    const givenOwnerKey = config.bootstrapApiKey;
    const isNew = (await accounts.first()) === null;
    const begin = () => bootstrap({ ids: deps.ids, clock, accounts, people, facts, secrets, givenOwnerKey });
    const firstKeys = await (node === null ? begin() : node.showFirst(begin));
    // No node: no other process may use the database at the same time. No keys also where another node shows them.
    const warnings = [...encryptedStore.warnings, ...(oldKeyFile !== null && isNew ? [lacksDatabase(oldKeyFile)] : [])];
    return { encryptedStore, warnings, firstKeys, node };
  } catch (error) {
    node?.clock.stop();
    await store.close();
    throw error;
  }
}

/** A database without its log (`-wal`), as of a copy, may be empty. */
function lacksDatabase(keyFile: string): string {
  return (
    `The database is new, but its key file ${keyFile} was there before it. If there was a database, stop the service and put ` +
    "its file back, with the file of the same name and -wal if there is one."
  );
}
