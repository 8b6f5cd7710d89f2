import type { RuleRow } from "../core/account-rules.ts";
import { type AuditDetail, auditEntry, type AuditRow } from "../core/audit.ts";
import { accountFull, DomainError, invalidField, invalidFields, type Issue, notFound } from "../core/domain-error.ts";
import { toRequester } from "../core/judge.ts";
import {
  DRY_RUN_ACTIONS_DEFAULT,
  DRY_RUN_PAGE_ACTIONS,
  RULE_DRAFT_ACTIONS,
  RULE_HITS_MAX,
  RULE_HITS_MS,
  RULE_LIST_MAX,
  RULE_TRIES_MAX,
  RULE_UNDO_MS_MAX,
  RULES_CHARS_MAX,
  RULES_MAX,
} from "../core/limits.ts";
import { rulesChange } from "../core/policy.ts";
import { authorize, type Caller, describeActor, madeBy, notManager } from "../core/roles.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createYield } from "../runtime/fair-share.ts";
import { createDryRun, type DryRunRange, type DryRunStep, newest, refusalsSince } from "./dry-run.ts";
import type { KnownRules } from "./known.ts";
import { type CompiledRule, deadRules, ruleFrom, CompiledRules, saysUndecidable } from "./rule.ts";
import {
  type ChangeRuleBody,
  ruleDefinition,
  type DryRunJson,
  LOOP_BRAKE,
  type PlacedRule,
  type RuleDefinition,
  type RuleEffect,
  ruleText,
} from "./schemas.ts";

/** When rules are changed, and by whom. */
type EditedAt = Pick<RuleRow, "changedAt" | "changedBy">;

/** Every use case of rules: owners change them; everybody in the account reads as much of them as they may. */
export type RuleService = ReturnType<typeof createRuleService>;

export type RuleHits = Awaited<ReturnType<RuleService["hits"]>>;

export function createRuleService({ clock, ids, store }: AppContext, known: KnownRules) {
  const { rules, actions } = store;
  const tryOn = createDryRun(clock, store, known);

  /**
   * Writes all rules of the account at once, so that no change is partly in force. `edit` computes them from the stored ones; null:
   * nothing changes. Without `detail`, the audit log gets the one rule that differs.
   */
  const write = async (
    caller: Caller,
    edit: (rows: readonly RuleRow[], at: EditedAt) => readonly RuleRow[] | null,
    detail?: AuditDetail,
  ): Promise<readonly RuleRow[]> => {
    authorize(caller, "manage");
    const { accountId, actor: changedBy } = caller;
    for (let tries = 0; tries < RULE_TRIES_MAX; tries += 1) {
      const expected = await rules.findVersion(accountId);
      const stored = await rules.list(accountId);
      const changedAt = clock.now();
      const rows = edit(stored, { changedAt, changedBy });
      if (rows === null) return stored;
      if (rows.length > RULES_MAX) throw accountFull(RULES_MAX, "rules");
      // Rules that are too long already, from before this bound, can be made shorter one by one.
      if (countChars(rows) > Math.max(RULES_CHARS_MAX, countChars(stored))) {
        throw accountFull(RULES_CHARS_MAX, "characters of rules", "Shorten or remove some.");
      }
      const audited = detail === undefined ? describeChange(stored, rows) : { subject: "", detail };
      const audit = auditEntry(caller, { kind: "rules_changed", ...audited }, changedAt);
      const written = await rules.replace({ accountId, rules: rows, expected, audit, by: madeBy(caller) });
      if (written === "not_manager") throw notManager(caller);
      if (written) {
        await known.compiledRules(accountId);
        return rows;
      }
    }
    throw rulesChange();
  };

  const newRow = ({ accountId }: Caller, definition: string, at: EditedAt, id = ids.rule(at.changedAt)): RuleRow => {
    const { changedAt: createdAt, changedBy: createdBy } = at;
    return { id, accountId, version: 1, definition, createdAt, createdBy, ...at };
  };

  /** Compiles definitions, with their indexes as ids. Throws `validation_error` with the index of each one that is wrong. */
  const rulesFrom = async (definitions: readonly RuleDefinition[]): Promise<readonly CompiledRule[]> => {
    const yieldTurn = createYield(clock);
    const issues: Issue[] = [];
    const compiled: CompiledRule[] = [];
    for (const [n, definition] of definitions.entries()) {
      await yieldTurn();
      try {
        compiled.push(ruleFrom(definition, `rul_draft${n}`, 1));
      } catch (error) {
        if (!(error instanceof DomainError)) throw error;
        issues.push(...error.issues.map(({ field, message }) => ({ field: `rules.${n}.${field}`, message })));
      }
    }
    if (issues.length > 0) throw invalidFields(issues);
    return compiled;
  };

  const lastEntry = async ({ accountId }: Caller): Promise<AuditRow | undefined> => {
    const since = new Date(clock.now().getTime() - RULE_UNDO_MS_MAX);
    const filter = { accountId, kinds: ["rules_changed"] as const, actors: [], since, until: null };
    return (await store.audit.page({ ...filter, before: null, limit: 1 })).rows[0];
  };

  /**
   * Warns if a rule is undecidable on some of the newest requests, which it would hold: often because it reads a member that their
   * bodies don't have. Null: it can be decided on each.
   */
  const undecidableOn = async (accountId: string, rule: CompiledRule): Promise<string | null> => {
    const yieldTurn = createYield(clock);
    const reasons: string[] = [];
    const list = new CompiledRules([rule]);
    let tried = 0;
    for await (const page of newest(actions, accountId, { last: RULE_DRAFT_ACTIONS, since: null })) {
      for (const action of page) {
        await yieldTurn();
        tried += 1;
        const [walk] = await known.walksFor(toRequester(action), action, { now: action.createdAt }, list);
        if (walk?.ruling?.isUndecidable === true) reasons.push(walk.ruling.reason ?? "");
      }
    }
    const [most] = [...Map.groupBy(reasons, String).values()].toSorted((one, other) => other.length - one.length);
    if (most === undefined) return null;
    return `Undecidable on ${reasons.length} of the newest ${tried} requests, which it would hold: ${most[0]}`;
  };

  /** A rule that was just written, with warnings from trying it on past requests. */
  const placed = async ({ accountId }: Caller, rows: readonly RuleRow[], id: string): Promise<PlacedRule> => {
    const position = rows.findIndex((one) => one.id === id);
    const row = rows[position];
    if (row === undefined) throw notFound("rule");
    // Without the owner's message to agents, every reason is about the request.
    const { message: _message, explain: _explain, ...conditions } = ruleDefinition(row);
    const undecidable = await undecidableOn(accountId, ruleFrom(conditions, id, row.version));
    const warnings = [deadRules(known.knownRules(accountId), id).get(id), undecidable];
    return { row, position, warnings: warnings.filter((text) => typeof text === "string") };
  };

  return {
    /** What is probably wrong with rules, by their ids. */
    warnings: ({ accountId }: Caller): ReadonlyMap<string, string> => deadRules(known.knownRules(accountId)),

    /** Lists the rules in the order in which they judge a request. */
    async list(caller: Caller): Promise<readonly RuleRow[]> {
      authorize(caller, "read");
      return rules.list(caller.accountId);
    },

    /** Tries these rules on past requests; null: the rules in force. See `createDryRun`. Throws `validation_error`, too. */
    async dryRun(
      caller: Caller,
      definitions: readonly RuleDefinition[] | null,
      range: DryRunRange,
    ): Promise<AsyncGenerator<DryRunStep>> {
      authorize(caller, "approve");
      const inForce = () => known.compiledRules(caller.accountId);
      return tryOn(caller, await (definitions === null ? inForce() : rulesFrom(definitions)), range);
    },

    /**
     * What the rules would have done with the newest requests if this rule replaced the rule `id`, or stood before the rule `before`,
     * or after all others. Throws `validation_error`, `rate_limited`.
     */
    async tryRule(
      caller: Caller,
      definition: RuleDefinition,
      { id, before }: Readonly<Record<"id" | "before", string | null>>,
    ): Promise<DryRunJson> {
      authorize(caller, "manage");
      const draft = ruleFrom(definition, id ?? "rul_draft", 1);
      const inForce = await known.compiledRules(caller.accountId);
      const at = inForce.findIndex((rule) => rule.id === (id ?? before));
      const tried = at === -1 ? [...inForce, draft] : inForce.toSpliced(at, id === null ? 0 : 1, draft);
      for await (const step of tryOn(caller, tried, { last: DRY_RUN_ACTIONS_DEFAULT, since: null })) {
        if ("differences" in step) return step;
      }
      throw new Error("A dry run ended without a result.");
    },

    /**
     * Adds a rule at the end, or before another one. `isForm`: returns an equal rule in that place, as a form may be sent twice. Throws
     * `validation_error`.
     */
    async add(caller: Caller, definition: RuleDefinition, before: string | null, isForm = false): Promise<PlacedRule> {
      let id = ids.rule(clock.now());
      const rows = await write(caller, (stored, at) => {
        const place = before === null ? stored.length : stored.findIndex((row) => row.id === before);
        const row = newRow(caller, checked(definition), at, id);
        const previous = stored[place - 1];
        if (
          isForm &&
          previous !== undefined &&
          differingMembers(ruleDefinition(previous), ruleDefinition(row)).length === 0
        ) {
          id = previous.id;
          return null;
        }
        if (place === -1) throw invalidField("before", "There is no such rule.");
        return stored.toSpliced(place, 0, row);
      });
      return placed(caller, rows, id);
    },

    /** Replaces the given members of a rule. Throws `not_found`, `validation_error`. */
    async change(caller: Caller, id: string, { unset = [], ...patch }: ChangeRuleBody): Promise<PlacedRule> {
      const gone: readonly string[] = unset;
      const both = gone.filter((field) => field in patch);
      if (both.length > 0) throw invalidFields(both.map((field) => ({ field, message: "Is also in unset." })));
      const rows = await write(caller, (stored, at) => {
        const row = rowIn(stored, id);
        const members = Object.entries({ ...ruleDefinition(row), ...patch }).filter(([name]) => !gone.includes(name));
        return redefined(stored, row, checked(Object.fromEntries(members)), at);
      });
      return placed(caller, rows, id);
    },

    /** Replaces a rule unless it is equal. Throws `not_found`, and `validation_error`, also if its version is another one by now. */
    async replace(caller: Caller, id: string, definition: RuleDefinition, version: number): Promise<void> {
      await write(caller, (stored, at) => {
        const row = rowIn(stored, id);
        requireVersion(row, version, "Save again to replace that one.");
        const before = ruleDefinition(row);
        const differing = differingMembers(before, definition);
        if (differing.length === 0) return null;
        // Keep the order of everything that doesn't differ.
        const same = Object.entries(before).filter(([name]) => !differing.includes(name));
        const wanted = Object.entries(definition).filter(([name]) => differing.includes(name));
        return redefined(stored, row, checked(Object.fromEntries([...same, ...wanted])), at);
      });
    },

    /** `version`: the one that was shown; null: it doesn't matter. Throws `not_found`, and `validation_error` for another version. */
    async remove(caller: Caller, id: string, version: number | null = null): Promise<void> {
      await write(caller, (stored) => {
        const row = rowIn(stored, id);
        if (version !== null) requireVersion(row, version, "Look at it before you remove it.");
        return stored.filter((one) => one !== row);
      });
    },

    /**
     * Holds loops of a new key: adds the key to the rule that does so for others, or adds that rule after the leading rules that refuse.
     * Further down, a rule that allows could decide before it.
     */
    async brakeLoops(caller: Caller, keyId: string): Promise<void> {
      await write(caller, (stored, at) => {
        const brake = stored.find((row) => isLoopBrake(ruleDefinition(row)));
        const keys = brake === undefined ? [] : (ruleDefinition(brake).keys ?? []);
        const text = checked({ ...LOOP_BRAKE, keys: [...keys, keyId] });
        if (brake !== undefined) return redefined(stored, brake, text, at);
        const place = stored.findIndex((row) => ruleDefinition(row).effect !== "refuse");
        return stored.toSpliced(place === -1 ? stored.length : place, 0, newRow(caller, text, at));
      });
    },

    /** What each rule did lately with the newest calls, up to a limit. `isWhole`: these are all calls. */
    async hits(caller: Caller) {
      authorize(caller, "approve");
      const { accountId } = caller;
      const since = new Date(clock.now().getTime() - RULE_HITS_MS);
      const [ruled, refused] = await Promise.all([
        rules.ruled(accountId, since, RULE_HITS_MAX),
        refusalsSince(store.audit, accountId, since, RULE_HITS_MAX / DRY_RUN_PAGE_ACTIONS),
      ]);
      const hits: (readonly [id: string, effect: RuleEffect])[] = refused.ruleIds.map((id) => [id, "refuse"]);
      const inForce = await known.compiledRules(accountId);
      // What a rule refuses when its time comes is stored like what it holds.
      const refusing = new Set(
        inForce.flatMap((rule) => (rule.definition.effect === "refuse" ? versionKey(rule) : [])),
      );
      for (const policy of ruled) {
        const { by, id, effect } = policy;
        if (by !== "rule" || id === null) continue;
        const isRefused = refusing.has(versionKey({ ...policy, id })) && !saysUndecidable(policy);
        hits.push([id, isRefused ? "refuse" : effect]);
      }
      const byRule = Map.groupBy(hits, ([id]) => id);
      return { byRule, isWhole: ruled.length < RULE_HITS_MAX && refused.isWhole };
    },

    /** The audit entry of the last change if `undo` can undo it: of a single rule, and not older than `RULE_UNDO_MS_MAX`. */
    async lastChange(caller: Caller): Promise<AuditRow | null> {
      authorize(caller, "manage");
      const entry = await lastEntry(caller);
      if (entry === undefined) return null;
      const at = { changedAt: entry.at, changedBy: "system" } as const;
      return undone(entry, await rules.list(caller.accountId), at) === null ? null : entry;
    },

    /** Undoes the last change if it is the audit entry `seq`. Otherwise throws `not_found`. */
    async undo(caller: Caller, seq: number): Promise<void> {
      authorize(caller, "manage");
      const entry = await lastEntry(caller);
      await write(caller, (stored, at) => {
        const before = entry?.seq === seq ? undone(entry, stored, at) : null;
        if (before === null)
          throw new DomainError("not_found", "The rules have changed since then. Look at them again.");
        return before;
      });
    },

    /** Reorders the rules. Throws `validation_error` unless each id is named exactly once. */
    reorder(caller: Caller, order: readonly string[]): Promise<readonly RuleRow[]> {
      const edit = (stored: readonly RuleRow[]) => {
        const rows = order.flatMap((id) => stored.find((one) => one.id === id) ?? []);
        if (rows.length !== stored.length || order.length !== stored.length || new Set(order).size !== order.length) {
          throw invalidField("ids", `Must name each of the ${stored.length} rules once.`);
        }
        return rows;
      };
      return write(caller, edit, { change: "reordered" });
    },

    /** Replaces all rules of the account. A rule of the same name keeps its id; if it is equal, also its version. */
    async replaceAll(caller: Caller, definitions: readonly RuleDefinition[]): Promise<readonly RuleRow[]> {
      authorize(caller, "manage");
      await rulesFrom(definitions);
      const edit = (stored: readonly RuleRow[], at: EditedAt) => {
        const left = new Map(stored.map((row) => [ruleDefinition(row).name, row]));
        return definitions.map((definition) => {
          const text = ruleText(definition);
          const row = left.get(definition.name);
          left.delete(definition.name);
          if (row === undefined) return newRow(caller, text, at);
          return row.definition === text ? row : { ...row, ...at, version: row.version + 1, definition: text };
        });
      };
      return write(caller, edit, { change: "replaced", rules: definitions.length });
    },
  };
}

/** A version of a rule. */
function versionKey({ id, version }: { readonly id: string; readonly version: number | null }): string {
  return `${id} ${version}`;
}

function countChars(rows: readonly RuleRow[]): number {
  return rows.reduce((sum, { definition }) => sum + definition.length, 0);
}

function rowIn(rows: readonly RuleRow[], id: string): RuleRow {
  const row = rows.find((one) => one.id === id);
  if (row === undefined) throw notFound("rule");
  return row;
}

function requireVersion({ version, changedBy }: RuleRow, shown: number, then: string): void {
  if (version === shown) return;
  const { name } = describeActor(changedBy);
  const message = `${name} has changed this rule since you opened it: it has version ${version} now. ${then}`;
  throw invalidField("version", message);
}

/** The members that two definitions say differently. Lists of rules have no order. */
function differingMembers(one: RuleDefinition, other: RuleDefinition): readonly string[] {
  const valueIn = (rule: RuleDefinition, name: string): unknown => {
    const value: unknown = Reflect.get(rule, name);
    return Array.isArray(value) ? new Set(value) : value;
  };
  return Object.keys({ ...one, ...other }).filter((name) => !Bun.deepEquals(valueIn(one, name), valueIn(other, name)));
}

/** Whether the form for new keys has made this rule, and it has room for one more key. */
function isLoopBrake({ keys, ...definition }: RuleDefinition): boolean {
  return keys !== undefined && keys.length < RULE_LIST_MAX && ruleText(definition) === ruleText(LOOP_BRAKE);
}

/** The text of a definition, if it makes a rule. Throws `validation_error`. */
function checked(given: unknown): string {
  // The check doesn't use the id and version.
  ruleFrom(given, "", 1);
  // Safe: `ruleFrom` throws unless it is a definition.
  return ruleText(given as RuleDefinition);
}

function redefined(rows: readonly RuleRow[], row: RuleRow, definition: string, at: EditedAt): readonly RuleRow[] {
  const next = { ...row, ...at, version: row.version + 1, definition };
  return rows.map((one) => (one === row ? next : one));
}

/** What the audit log says about a change of one rule, with what it was before, so that it can be undone. */
function describeChange(before: readonly RuleRow[], after: readonly RuleRow[]) {
  const was = before.find((row) => !after.includes(row));
  const row = after.find((one) => !before.includes(one)) ?? was;
  if (row === undefined) throw new Error("No rule differs.");
  const { id: subject, version } = row;
  const { name, effect } = ruleDefinition(row);
  if (was === undefined) return { subject, detail: { change: "added", name, effect, ...(version > 1 && { version }) } };
  const undo = { version: was.version, before: was.definition };
  if (was === row) return { subject, detail: { change: "removed", name, position: before.indexOf(was), ...undo } };
  const changed = differingMembers(ruleDefinition(was), ruleDefinition(row)).join(", ");
  return { subject, detail: { change: "changed", name, ...(changed !== "" && { changed }), ...undo } };
}

/** The rules without the change of an audit entry. Null: it changed several rules, or its rule was changed again since. */
function undone({ accountId, subject, detail }: AuditRow, rows: readonly RuleRow[], at: EditedAt) {
  const { change, before } = detail;
  const version = Number(detail["version"] ?? 1);
  const row = rows.find(({ id }) => id === subject);
  if (change === "added" && row?.version === version) return rows.filter((one) => one !== row);
  if (typeof before !== "string") return null;
  if (change === "changed" && row?.version === version + 1) return redefined(rows, row, before, at);
  if (change !== "removed" || row !== undefined) return null;
  const { changedAt: createdAt, changedBy: createdBy } = at;
  const back = { id: subject, accountId, version: version + 1, definition: before, createdAt, createdBy, ...at };
  return rows.toSpliced(Number(detail["position"] ?? rows.length), 0, back);
}
