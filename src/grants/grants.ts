import Type from "typebox";
import * as t from "../api/schema-helpers.ts";
import { toJson } from "../api/serializer.ts";
import { policySource } from "../core/action-policy.ts";
import { AccountCache } from "../core/account-settings.ts";
import { type Action, type ActionRequest, unknownExtras } from "../core/action.ts";
import type { HashText } from "../core/dedupe.ts";
import { auditEntry } from "../core/audit.ts";
import type { Clock } from "../core/clock.ts";
import { accountFull, DomainError, invalidFields, type Issue, notFound } from "../core/domain-error.ts";
import { type FindGrant, type Grant, type Granted, type GrantTerms, isInForce } from "../core/grant.ts";
import {
  GRANT_CALLS_MAX,
  GRANT_MINUTES_MAX,
  GRANT_VARY_MAX,
  GRANTS_LISTED_MAX,
  GRANTS_MAX,
  GRANT_BODY_CHARS_MAX,
  GRANT_FIELDS_MAX,
} from "../core/limits.ts";
import { hasEnded } from "../core/account-store.ts";
import { authorize, type Caller, mayDo } from "../core/roles.ts";
import type { Store } from "../core/store.ts";
import { createApiRoutes, operation, pathParams } from "../http/operation.ts";
import { jsonResponse, noContent } from "../http/response.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { usedBodyMember, bodyContentType, isJsonMember } from "../core/body.ts";
import { type JsonLeaf, jsonLeaves } from "../core/json-tree.ts";
import { sentTarget } from "../core/target.ts";

const grantIdSchema = t.idSchema("grt", "Id of a grant.", "GrantId");

const varies = Type.Array(Type.String({ minLength: 1, maxLength: 200 }), {
  maxItems: GRANT_VARY_MAX,
  uniqueItems: true,
  description: "Members of the JSON body that may differ, by their paths. All else has to be equal.",
  examples: [["body.amount"]],
});

// Not `Type.Record`, since client generators don't read its patterns.
const maxima = Type.Unsafe<Readonly<Record<string, number>>>({
  type: "object",
  additionalProperties: { type: "number", minimum: 0, maximum: 999_999_999_999 },
  maxProperties: GRANT_VARY_MAX,
  description: "The most that a number among them may be.",
  examples: [{ "body.amount": 5000 }],
});

/** What else an approval lets pass. */
export const GrantTermsBody = t.requestObject(
  "GrantTerms",
  "Allow more calls of the key like this one, for a while.",
  {
    minutes: t.integer(1, GRANT_MINUTES_MAX, "For how long.", 60),
    calls: t.integer(1, GRANT_CALLS_MAX, "For how many calls.", 20),
    vary: Type.Optional(varies),
    max: Type.Optional(maxima),
  },
  { examples: [{ minutes: 60, calls: 20, vary: ["body.amount"], max: { "body.amount": 5000 } }] },
);

const GrantJson = t.answerObject(
  "Grant",
  "What a person allows an agent for a while: calls like one that they approved.",
  {
    id: grantIdSchema,
    key_id: t.plainText("The key whose calls it lets pass.", "key_01kjwa5v00e7v8c9x2m4n6p8qr"),
    action_id: t.plainText("The action that was approved.", "act_01kjwa5v00e7v8c9x2m4n6p8qr"),
    vary: varies,
    max: maxima,
    calls: t.quantity("How many calls it lets pass.", 20),
    used: t.quantity("How many it has let pass. With `calls` of them it is used up: no more pass.", 3),
    expires_at: t.dateTime("Nothing passes by it from this time on."),
    created_at: t.dateTime("When it was made."),
    created_by: t.plainText("Who made it. It ends where they may no longer approve.", "user:dana@example.com"),
  },
);

export const GrantListJson = t.answerObject("GrantList", "The grants that can be ended.", {
  data: Type.Array(GrantJson, { description: "Those in force, then those that are used up; each newest first." }),
});

/** The grants of all accounts that may be in force. The store counts their uses. */
export class KnownGrants extends AccountCache<Grant, ReadonlyMap<string, readonly Grant[]>> implements FindGrant {
  readonly #store: Pick<Store, "accounts" | "team">;
  readonly #clock: Pick<Clock, "now">;
  readonly #hashText: HashText;

  constructor(store: Pick<Store, "grants" | "accounts" | "team">, clock: Pick<Clock, "now">, hashText: HashText) {
    const { grants } = store;
    const listed = { version: () => grants.version(), list: (id: string | null) => grants.list(id, clock.now()) };
    super(listed, (rows) => Map.groupBy(rows, ({ keyId }) => keyId));
    this.#store = store;
    this.#clock = clock;
    this.#hashText = hashText;
  }

  /** See `FindGrant`. The maker of the grant must still be allowed to approve. */
  async find(caller: Caller, request: ActionRequest, over: ReadonlySet<string>): Promise<Granted | null> {
    const { accountId, keyId } = caller;
    const own = keyId === null ? undefined : this.view(accountId)?.get(keyId);
    if (own === undefined) return null;
    const now = this.#clock.now();
    const likenesses = new Map<string, string | null>();
    for (const grant of own) {
      if (over.has(grant.id) || !isInForce(grant, now)) continue;
      const { vary } = grant;
      const name = JSON.stringify(vary);
      const likeness = likenesses.get(name) ?? describeLikeness(request, vary, this.#hashText);
      likenesses.set(name, likeness);
      if (likeness !== grant.likeness || !isWithin(grant, request) || !(await this.#isByApprover(grant, now))) continue;
      const detail = { grant: grant.id, calls: grant.calls, method: request.method, host: request.host };
      return {
        grant,
        use: { id: grant.id, audit: auditEntry(caller, { kind: "grant_used", subject: grant.id, detail }, now) },
      };
    }
    return null;
  }

  async #isByApprover({ accountId, createdBy, createdById }: Grant, now: Date): Promise<boolean> {
    if (createdBy.startsWith("user:")) {
      const member = await this.#store.team.member(accountId, createdById);
      return member !== null && mayDo(member.role, "approve");
    }
    const key = await this.#store.accounts.findKey(accountId, createdById);
    return key !== null && !hasEnded(key, now) && mayDo(key.role, "approve");
  }
}

/** Whether each value with a maximum is a number and does not exceed it. */
function isWithin({ vary, max }: Grant, request: ActionRequest): boolean {
  return vary.every((path) => {
    const most = max[path];
    if (most === undefined) return true;
    const number = plainNumber(fieldText(request, path));
    return number !== null && number <= most;
  });
}

/** A grant with the name of its key. */
export interface NamedGrant extends Grant {
  readonly keyName: string;
}

/** Every use case of grants: callers who may approve make them with an approval, list them and end them. */
export type GrantService = ReturnType<typeof createGrantService>;

export function createGrantService({ clock, ids, store }: AppContext, known: KnownGrants, hashText: HashText) {
  const { grants, accounts } = store;
  const list = async (caller: Caller): Promise<readonly Grant[]> => {
    authorize(caller, "approve");
    return grants.listOpen(caller.accountId, clock.now(), GRANTS_LISTED_MAX);
  };
  return {
    /** The grants that can be ended, those in force first. */
    list,

    /** The same grants with the names of their keys, which approvers can't list. */
    async listNamed(caller: Caller): Promise<readonly NamedGrant[]> {
      const found = await list(caller);
      const keyIds = [...new Set(found.map(({ keyId }) => keyId))];
      const keys = await Promise.all(keyIds.map((id) => accounts.findKey(caller.accountId, id)));
      const names = new Map(keys.flatMap((key) => (key === null ? [] : [[key.id, key.name]])));
      return found.map((grant) => ({ ...grant, keyName: names.get(grant.keyId) ?? grant.keyId }));
    },

    /**
     * Ends a grant. After this resolves, nothing passes by it; what passed before and was not sent yet is decided again when it
     * is due. Throws `not_found` unless it has time left.
     */
    async end(caller: Caller, id: string): Promise<void> {
      authorize(caller, "approve");
      const at = clock.now();
      const { accountId, actor: by } = caller;
      const audit = auditEntry(caller, { kind: "grant_ended", subject: id }, at);
      if ((await grants.end(accountId, id, { at, by, audit })) === null) throw notFound("grant, or it has ended");
      await known.refresh(accountId);
    },

    /**
     * Makes the grant that the approval of an action stores. Throws `forbidden` for callers who only pass on an answer, and
     * `validation_error` if the terms don't fit the action, or if it was held because its caller asked for it.
     */
    async make(caller: Caller, action: Action, terms: GrantTerms): Promise<Grant> {
      authorize(caller, "approve");
      const maker = caller.keyId ?? caller.personId;
      // Links and agents' clients only pass on an answer: nobody has signed in there.
      if (maker === undefined || caller.via !== undefined) {
        const who = "Only people who are signed in, and approver and owner keys";
        throw new DomainError("forbidden", `${who}, can allow more calls like this.`);
      }
      const { minutes, calls, vary = [], max = {} } = terms;
      const issues = termIssues(action, terms);
      if (issues.length > 0) throw invalidFields(issues);
      const likeness = describeLikeness(action, vary, hashText);
      if (likeness === null) {
        const message = "The body of this action can't be compared with others: it is not JSON, or too large.";
        throw invalidFields([{ field: "grant.vary", message }]);
      }
      const now = clock.now();
      if ((await grants.list(action.accountId, now)).length >= GRANTS_MAX) {
        throw accountFull(GRANTS_MAX, "grants in force", "End one first.");
      }
      return {
        id: ids.grant(now),
        accountId: action.accountId,
        keyId: action.keyId,
        actionId: action.id,
        likeness,
        vary,
        max,
        calls,
        used: 0,
        expiresAt: new Date(now.getTime() + minutes * 60_000),
        createdAt: now,
        createdBy: caller.actor,
        createdById: maker,
        endedAt: null,
        endedBy: null,
      };
    },

    /** Reads the grants of the account again, after one was stored. */
    stored: (accountId: string) => known.refresh(accountId),
  };
}

function termIssues(action: Action, { vary = [], max = {} }: GrantTerms): readonly Issue[] {
  const { policy, keyId } = action;
  if (keyId === "")
    return [{ field: "grant", message: "A grant is for the calls of a key, and no key created this action." }];
  if (policy === null || !policySource(policy).isLiftedByGrants) {
    const message = "Would change nothing: the requester itself asks for approval of these calls.";
    return [{ field: "grant", message }];
  }
  return [
    ...vary.flatMap((path, n) => {
      const text = fieldText(action, path);
      const message =
        "The body of this action has no plain value there. Paths look like body.amount or body.items[0].id.";
      return text === null ? [{ field: `grant.vary.${n}`, message }] : [];
    }),
    ...Object.entries(max).flatMap(([path, most]): readonly Issue[] => {
      const field = `grant.max.${path}`;
      if (!vary.includes(path)) return [{ field, message: "Must be one of `vary`." }];
      const number = plainNumber(fieldText(action, path));
      if (number === null)
        return [{ field, message: "Is not a number from 0 with at most 3 decimals in this action." }];
      return number > most ? [{ field, message: `Must be at least ${number}, which this action has.` }] : [];
    }),
  ];
}

export const GrantParams = pathParams(Type.Object({ id: grantIdSchema }), "There is no such grant, or it has ended.");

/** What people allow agents for a while: an approval makes a grant. */
export function grantRoutes({ grantService }: { readonly grantService: Pick<GrantService, "list" | "end"> }) {
  return createApiRoutes()
    .get(
      "/v1/grants",
      async ({ caller }) =>
        jsonResponse({ data: (await grantService.list(caller)).map((row) => toJson(GrantJson, row)) }),
      operation({
        operationId: "listGrants",
        permission: "approve",
        tag: "Auth",
        summary: "List what people allow agents for a while",
        description: "Lists the grants in force, then those that are used up and have time left; each newest first.",
        notes: ["An approval with `grant` makes one. Each use of it is an entry of the audit log."],
        answers: { 200: { description: "The grants.", schema: GrantListJson } },
      }),
    )
    .delete(
      "/v1/grants/:id",
      ({ caller, params }) => noContent(grantService.end(caller, params.id)),
      operation({
        operationId: "endGrant",
        permission: "approve",
        tag: "Auth",
        summary: "End a grant",
        description: "Ends a grant: calls like that are held again, on every node.",
        notes: [
          "What it let pass and was not sent yet is held again too, or decided by the rules, when it is due. So a grant that is used up can be ended until it expires.",
        ],
        params: GrantParams,
        answers: { 204: { description: "It no longer lets calls pass.", schema: null } },
      }),
    );
}

/**
 * A digest of everything in a request that must be equal: the target as it is sent, method, headers, callback, when it is sent
 * and how it is retried, and the body without the members that may differ. The requester's texts may differ. Null: its body
 * can't be compared.
 */
export function describeLikeness(
  request: ActionRequest,
  vary: readonly string[],
  hashText: (text: string) => string,
): string | null {
  const { method, url, headers, callback, onUnknown, retries, extras } = request;
  const body = bodyParts(request, new Set(vary));
  if (body === null) return null;
  const { hostname, host, path, query } = sentTarget(url);
  const pairs = Object.entries(headers ?? {}).map(([name, value]) => [name.toLowerCase(), value] as const);
  const sorted = pairs.toSorted(([one], [other]) => (one < other ? -1 : 1));
  const { bodyKind, runAt, delaySeconds, timeoutMs, backoff, giveUpOn, credential } = extras;
  const repeating = [timeoutMs, onUnknown, retries, backoff, giveUpOn];
  const sending = [delaySeconds === undefined ? runAt : null, delaySeconds, ...repeating, unknownExtras(extras)];
  const scheme = url.slice(0, url.indexOf(":")).toLowerCase();
  const sent = [method, scheme, hostname, host, path, query, sorted, bodyKind, bodyContentType(request), body];
  // Left out without a credential, so that digests of earlier versions stay the same.
  const by = credential === undefined ? [] : [{ credential: credential.id }];
  return hashText(JSON.stringify([...sent, callback, ...sending, ...by]));
}

/** The value of a member that may differ, as it is written; null: it is missing, or no plain value. */
function fieldText(request: ActionRequest, path: string): string | null {
  return requestFields(request)?.find((field) => field.path === path)?.text ?? null;
}

/** The number in a JSON text; null: it is none, or can't be compared exactly. */
export function plainNumber(text: string | null): number | null {
  return text !== null && PLAIN_NUMBER.test(text) ? Number(text) : null;
}

/** A decimal that is short enough for a double to hold exactly. */
const PLAIN_NUMBER = /^(0|[1-9]\d{0,11})(\.\d{1,3})?$/;

/** The body to compare, without the values of members that may differ, each of which must be there once. */
function bodyParts(request: ActionRequest, vary: ReadonlySet<string>): unknown {
  if (vary.size === 0) return [request.body];
  const fields = requestFields(request);
  if (fields === null || fields.filter(({ path }) => vary.has(path)).length !== vary.size) return null;
  return fields.map(({ path, text }) => (vary.has(path) ? [path] : [path, text]));
}

/** The plain values of a JSON body with their paths; null: it is no JSON body, or too large to compare. */
export function requestFields(request: ActionRequest): readonly JsonLeaf[] | null {
  const { body } = request;
  const member = usedBodyMember(request);
  if (body === null || member === null || !isJsonMember(member) || body.length > GRANT_BODY_CHARS_MAX) return null;
  const fields = jsonLeaves(body, "body", GRANT_FIELDS_MAX);
  return fields === null || fields.length > GRANT_FIELDS_MAX ? null : fields;
}
