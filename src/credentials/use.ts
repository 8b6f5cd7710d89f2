import { type Action, type ActionRequest, isExpired } from "../core/action.ts";
import { type AuditDetail, type AuditEntry, auditEntry, auditOfSystem } from "../core/audit.ts";
import {
  type Credential,
  type CredentialBounds,
  type RequestedCredential,
  type KnownCredentials,
  mayUse,
} from "../core/credential.ts";
import { DomainError, invalidField, notFound } from "../core/domain-error.ts";
import { CREDENTIALS_HIDDEN_PER_HOST_MAX } from "../core/limits.ts";
import type { KnownHostSettings } from "../core/host-settings.ts";
import type { SentRequest } from "../core/method-overrides.ts";
import type { Fault } from "../core/outcome.ts";
import { StoreUnavailable } from "../core/store.ts";
import type { Caller } from "../core/roles.ts";
import { parseTarget } from "../core/target.ts";
import { isPrivateAddress, mayGoPlain, type TargetPolicy } from "../config/target-policy.ts";
import type { Secrets } from "../crypto/secrets.ts";
import type { OutboundRequest, Route } from "../outbound/sender.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { describeBounds, forOneHost, outOfBounds } from "./bounds.ts";
import { Echo, type EchoLane } from "./echo.ts";
import { applyCredential, clashingHeader } from "./kinds.ts";
import type { SealedPlace } from "../core/account-store.ts";

/** A request as it is sent, and the secrets to mask in its answer. */
interface Opened extends Masked {
  readonly name: string;
}

interface Masked {
  readonly headers: OutboundRequest["headers"];
  readonly mask: Echo;
}

/** How often a use is tried if changes of the credential come first. */
const TRIES_MAX = 5;

/** How calls use credentials, which are checked at the request and opened in the last step of a send. */
export type CredentialUse = ReturnType<typeof createCredentialUse>;

export function createCredentialUse(
  app: AppContext,
  known: KnownCredentials,
  hosts: KnownHostSettings,
  secrets: Secrets,
  policy: TargetPolicy,
) {
  const { clock, metrics, log } = app;
  const { credentials } = app.store;
  /** Finds a credential, even one that another node has just added. Null: there is none that the caller may use. */
  const usable = async (caller: Caller, name: string): Promise<Credential | null> => {
    const mine = () => {
      const found = known.find(caller.accountId, name);
      return found !== null && mayUse(caller, found) ? found : null;
    };
    const found = mine();
    if (found !== null) return found;
    await known.refresh(caller.accountId);
    return mine();
  };

  /** Why a request can't use a credential, or null. */
  const refusal = (credential: Credential, request: SentRequest): DomainError | null => {
    const { name, settings } = credential;
    const header = clashingHeader(settings, request.headers);
    if (header !== null) {
      return invalidField(`headers.${header}`, `The credential ${name} sets this header: leave it out.`);
    }
    if (!credential.enabled)
      return forbidden(`The credential ${name} is disabled. Ask an owner of the account to enable it.`);
    if (isExpired(credential, clock.now())) {
      return forbidden(`The credential ${name} has expired. Ask an owner of the account to renew it.`);
    }
    const outside = outOfBounds(credential, request);
    if (outside !== null) {
      return forbidden(
        `The credential ${name} may go only to ${describeBounds(credential)}, and not to ${outside.found}. An owner can change its ${outside.bound} on the page Credentials, or by PATCH /v1/credentials/${name}.`,
      );
    }
    const target = parseTarget(request.url);
    if (!("refused" in target) && !target.isHttps && !mayGoPlain(policy, target)) {
      return forbidden(
        `The credential ${name} goes over http:// only to loopback and to private hosts that this server allows: use https://.`,
      );
    }
    return null;
  };

  /** Adds the host's default credential if that is allowed. The caller didn't ask for it, so this never refuses. */
  const withDefault = (caller: Caller, request: ActionRequest): ActionRequest => {
    const { accountId } = caller;
    const name = hosts.defaultCredential({ accountId, host: request.host });
    const found = name === null ? null : known.find(accountId, name);
    if (found === null || !mayUse(caller, found) || refusal(found, request) !== null) return request;
    return { ...request, extras: { ...request.extras, credential: toRequested(found) } };
  };

  /**
   * The secrets of other credentials for a host, which it may still show, for example in a log of requests. One that can't be read is
   * left out: it must not keep other calls from the host.
   */
  const secretsOfOthers = async (
    { accountId, others }: Pick<Use, "accountId" | "others">,
    request: OutboundRequest,
  ): Promise<readonly string[]> => {
    const found: string[] = [];
    const add = async (id: string) => {
      const credential = await credentials.find(accountId, id);
      const secret = credential === null ? null : secretIn(credential.sealedSecret, id, accountId);
      if (credential === null || secret === null) return;
      // Also without its other forms, if this version doesn't know its kind.
      found.push(secret);
      found.push(...applyCredential(credential.settings, request, secret, clock.now()).secrets);
    };
    const unlessAway = (id: string) => (error: unknown) => {
      if (error instanceof StoreUnavailable) throw error;
      log.error("credential.unreadable", { credential: id, error: error instanceof Error ? error.name : "unknown" });
    };
    await Promise.all(others.map((id) => add(id).catch(unlessAway(id))));
    return found;
  };

  /** Opens the secret as it is now, once its use is noted. */
  const open = async (use: Use, request: OutboundRequest): Promise<Opened | Fault> => {
    const { accountId, id, check, entry } = use;
    const others = await secretsOfOthers(use, request);
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      const credential = await credentials.find(accountId, id);
      if (credential === null) return "credential_deleted";
      const now = clock.now();
      const fault = check(credential, now);
      if (fault !== null) return fault;
      const { settings, sealedSecret } = credential;
      const secret = secretIn(sealedSecret, id, accountId);
      if (secret === null) return "credential_unreadable";
      if (!(await credentials.use(credential, now, entry(credential, now)))) continue;
      const own = applyCredential(settings, request, secret, now);
      const mask = new Echo([secret, ...own.secrets], others, use);
      return { name: credential.name, headers: [...request.headers, ...own.headers], mask };
    }
    return "credential_unreadable";
  };

  /** Decrypts a secret. Null: its row was altered or moved here, or it is sealed under another key. */
  const secretIn = (sealed: string, id: string, accountId: string): string | null => {
    try {
      const value: unknown = JSON.parse(secrets.open(sealed, credentialPlace(id)).toString("utf8"));
      return Array.isArray(value) && value[0] === accountId && typeof value[1] === "string" ? value[1] : null;
    } catch (error) {
      // Don't log the message, which may quote the decrypted text.
      log.error("credential.unreadable", { credential: id, error: error instanceof Error ? error.name : "unknown" });
      return null;
    }
  };

  const attemptWith = (use: Use): AttemptCredential => {
    const { accountId, id, host } = use;
    let opened: Opened | null = null;
    return {
      async complete(request, { isHttps, address }) {
        if (!isHttps && !isPrivateAddress(address)) return "credential_plain";
        if (opened !== null) return opened;
        const found = await open(use, request);
        if (typeof found !== "string") opened = found;
        return found;
      },
      async answered() {
        const count = opened?.mask.count ?? 0;
        if (opened === null || count === 0) return;
        metrics.credentialEchoed(count);
        const detail = { name: opened.name, host, ...use.detail };
        const audited = { kind: "credential_echoed", subject: id, detail } as const;
        await credentials.noteEcho(accountId, id, host, auditOfSystem(accountId, audited, clock.now()));
      },
    };
  };

  /** For a call that has no credential, to a host that may know some. */
  const attemptWithout = (use: Pick<Use, "accountId" | "keyId" | "others">): AttemptCredential => {
    return {
      async complete(request) {
        return { headers: request.headers, mask: new Echo([], await secretsOfOthers(use, request), use) };
      },
      async answered() {},
    };
  };

  return {
    /**
     * Adds the named credential to a request; if the name is null, the host's default credential, if allowed. Throws
     * `validation_error` if the caller may not use it or it sets a header of the request, and `forbidden` outside its bounds.
     */
    async withCredential(caller: Caller, request: ActionRequest, name: string | null): Promise<ActionRequest> {
      if (name === null) return withDefault(caller, request);
      const credential = await usable(caller, name);
      if (credential === null) throw invalidField("credential", unusable(caller, known.of(caller.accountId)));
      const refused = refusal(credential, request);
      if (refused !== null) throw refused;
      return { ...request, extras: { ...request.extras, credential: toRequested(credential) } };
    },

    /**
     * Why a caller may not send an action again: they may not use its credential. Null: they may, or the send will decide. The
     * send checks only the key that created the action, so this asks the store, which other nodes may have changed.
     */
    async refusalToRepeat(caller: Caller, action: Pick<Action, "extras">): Promise<DomainError | null> {
      const { credential: requested } = action.extras;
      if (caller.role !== "agent" || requested === undefined) return null;
      await known.refresh(caller.accountId);
      const now = known.of(caller.accountId).find(({ id }) => id === requested.id);
      if (now === undefined || mayUse(caller, now)) return null;
      return forbidden(
        "This action is sent with a credential that this key may not use. Ask an owner to send it again.",
      );
    },

    /** How the credential of a request has changed since; null: not at all, as far as is known, or it has none. */
    findCredentialState({ accountId, extras: { credential: requested } }: Pick<Action, "accountId" | "extras">) {
      if (requested === undefined) return null;
      const now = known.of(accountId).find(({ id }) => id === requested.id);
      if (now === undefined) return "deleted";
      if (!now.enabled) return "disabled";
      if (isExpired(now, clock.now())) return "expired";
      return boundsChanged(requested, now) ? "changed" : null;
    },

    /** Completes an attempt's request in its last step, with the secret and bounds of that moment. Null: no credential. */
    forAttempt(action: Action): AttemptCredential | null {
      const { accountId, host, method, createdBy: actor, keyId: key } = action;
      const { credential: requested } = action.extras;
      const others = forOneHost(action.url, known.of(accountId))
        .filter((one) => one.id !== requested?.id)
        // First those that the key itself can bring there.
        .toSorted((one, other) => {
          const byKey = Number(other.keys.includes(key)) - Number(one.keys.includes(key));
          return byKey || lastUseMs(other) - lastUseMs(one);
        })
        .slice(0, CREDENTIALS_HIDDEN_PER_HOST_MAX)
        .map(({ id }) => id);
      if (requested === undefined)
        return others.length === 0 ? null : attemptWithout({ accountId, keyId: key, others });
      return attemptWith({
        accountId,
        keyId: key,
        id: requested.id,
        others,
        host,
        detail: { action: action.id },
        check: (credential, now) => findFault(credential, action, now),
        entry: ({ id: subject, name }, at) => {
          const detail = { via: "system", name, action: action.id, key, host, method };
          return { at, accountId, actor, kind: "credential_used", subject, client: "", detail };
        },
      });
    },

    /** Completes the request of an owner's test of a credential. Throws `not_found`, and `forbidden` if it can't be made. */
    async forTry(caller: Caller, name: string, request: SentRequest & { readonly host: string }) {
      const { accountId } = caller;
      await known.refresh(accountId);
      const credential = known.find(accountId, name);
      if (credential === null || !mayUse(caller, credential)) throw notFound("credential");
      const refused = refusal(credential, request);
      if (refused !== null) throw refused;
      const { host, method } = request;
      return attemptWith({
        accountId,
        keyId: caller.keyId ?? "",
        id: credential.id,
        others: [],
        host,
        detail: {},
        check: (now, at) => stateFault(now, at) ?? (outOfBounds(now, request) === null ? null : "credential_bounds"),
        entry: ({ id: subject }, at) =>
          auditEntry(caller, { kind: "credential_tested", subject, detail: { name, host, method } }, at),
      });
    },
  };
}

/** One use of a credential, which is read from the store in the last step. */
interface Use extends EchoLane {
  readonly id: string;
  /** The ids of other credentials that its host may know. */
  readonly others: readonly string[];
  readonly host: string;
  /** Further details for the audit entry of an echo. */
  readonly detail: AuditDetail;
  /** Why the credential, as it is then, may not be sent; null: it may. */
  readonly check: (credential: Credential, now: Date) => Fault | null;
  readonly entry: (credential: Credential, at: Date) => AuditEntry;
}

interface AttemptCredential {
  /** Adds the credential to the request and notes its use, or says why it can't. Rejects when the store is unavailable. */
  complete(request: OutboundRequest, route: Route): Promise<Masked | Fault>;
  /** Notes the host if its answer contained the secret, which was masked. */
  answered(): Promise<void>;
}

/** Why a credential may not be sent with an action now, or null. */
function findFault(credential: Credential, action: Action, now: Date): Fault | null {
  const fault = stateFault(credential, now);
  if (fault !== null) return fault;
  const { keyId, creator, headers } = action;
  if (keyId !== "" && creator.role === "agent" && !credential.keys.includes(keyId)) return "credential_key";
  const isOutside = outOfBounds(credential, action) !== null || clashingHeader(credential.settings, headers) !== null;
  return isOutside ? "credential_bounds" : null;
}

function lastUseMs({ lastUsedAt }: Pick<Credential, "lastUsedAt">): number {
  return lastUsedAt?.getTime() ?? 0;
}

function stateFault(credential: Credential, now: Date): Fault | null {
  if (!credential.enabled) return "credential_disabled";
  return isExpired(credential, now) ? "credential_expired" : null;
}

/** What an action stores about its credential. */
function toRequested({ id, name, settings, hint, hosts, paths, methods }: Credential): RequestedCredential {
  return {
    id,
    name,
    kind: settings.kind,
    ...(hint !== null && { hint }),
    hosts: [...hosts],
    ...(paths !== null && { paths: [...paths] }),
    ...(methods !== null && { methods: [...methods] }),
  };
}

/** Whether the bounds have changed since the action was requested. */
function boundsChanged(requested: Pick<RequestedCredential, keyof CredentialBounds>, now: CredentialBounds): boolean {
  const text = ({
    hosts,
    paths = null,
    methods = null,
  }: Partial<Record<keyof CredentialBounds, readonly string[] | null>>) =>
    JSON.stringify([hosts, paths, methods].map((list) => list?.toSorted() ?? null));
  return text(requested) !== text(now);
}

/** The same message whether the name is unknown or the caller may not use it. */
function unusable({ role, keyId }: Caller, all: readonly Credential[]): string {
  const own = all.filter((one) => mayUse({ role, keyId }, one)).map(({ name }) => name);
  const may = own.length === 0 ? "It may use none" : `It may use ${own.join(", ")}`;
  return role === "agent"
    ? `This key may use no credential of this name. ${may}. An owner can let it use more: on the page Credentials, or by PATCH /v1/credentials/{name} with keys.`
    : "This account has no credential of this name. Add it on the page Credentials, or by `outgate credentials add`.";
}

function forbidden(message: string): DomainError {
  return new DomainError("forbidden", message);
}

export const credentialPlace = (id: string): SealedPlace => ({
  table: "credentials",
  row: id,
  column: "sealed_secret",
});
