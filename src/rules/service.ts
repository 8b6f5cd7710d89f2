import type { RuleRow } from "../core/account-rules.ts";
import { type AuditDetail, auditOf, type AuditRow } from "../core/audit.ts";
import { accountFull, DomainError, invalidField, invalidFields, type Issue, notFound } from "../core/domain-error.ts";
import { requesterOf } from "../core/judge.ts";
import {
  DRY_RUN_ACTIONS_DEFAULT,
  DRY_RUN_PAGE_ACTIONS,
  RULE_DRAFT_ACTIONS,
  RULE_HITS_MAX,
  RULE_HITS_MS,
  RULE_LIST_MAX,
  RULE_TRIES_MAX,
  RULE_UNDO_MS_MAX,
  RULES_MAX,
} from "../core/limits.ts";
import { rulesChange } from "../core/policy.ts";
import { authorize, type Caller, describeActor } from "../core/roles.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createYield } from "../runtime/fair-share.ts";
import { createDryRun, type DryRunRange, type DryRunStep, newest, refusalsSince } from "./dry-run.ts";
import type { KnownRules } from "./known.ts";
import { type CompiledRule, deadRules, ruleFrom, RuleList } from "./rule.ts";
import {
  type ChangeRuleBody,
  definitionOf,
  type DryRunJson,
  LOOP_BRAKE,
  type PlacedRule,
  type RuleDefinition,
  type RuleEffect,
  ruleText,
} from "./schemas.ts";

/** When rules are changed, and by whom. */
type EditedAt = Pick<RuleRow, "changedAt" | "changedBy">;

/** Every use case of rules: owners change them, everybody of the account reads them as far as they may. */
export type RuleService = ReturnType<typeof createRuleService>;

export type RuleHits = Awaited<ReturnType<RuleService["hits"]>>;

export function createRuleService({ clock, ids, store }: AppContext, known: KnownRules) {
  const { rules, actions } = store;
  const tryOn = createDryRun(clock, store, known);

  /**
   * All rules of the account are written at once, so that none is in force without the others of a change. `edit` computes them from
   * those that are stored; null: nothing changes. Without a `detail` for the audit log, one of them is another.
   */
  const write = async (
    caller: Caller,
    edit: (rows: readonly RuleRow[], at: EditedAt) => readonly RuleRow[] | null,
    detail?: AuditDetail,
  ): Promise<readonly RuleRow[]> => {
    authorize(caller, "manage");
    const { accountId, actor: changedBy } = caller;
    for (let tries = 0; tries < RULE_TRIES_MAX; tries += 1) {
      const expected = await rules.versionOf(accountId);
      const stored = await rules.list(accountId);
      const changedAt = clock.now();
      const rows = edit(stored, { changedAt, changedBy });
      if (rows === null) return stored;
      if (rows.length > RULES_MAX) throw accountFull(RULES_MAX, "rules");
      const audited = detail === undefined ? changeOf(stored, rows) : { subject: "", detail };
      const audit = auditOf(caller, { kind: "rules_changed", ...audited }, changedAt);
      if (await rules.replace({ accountId, rules: rows, expected, audit })) {
        await known.compiledRules(accountId, createYield(clock));
        return rows;
      }
    }
    throw rulesChange();
  };

  const newRow = ({ accountId }: Caller, definition: string, at: EditedAt, id = ids.rule()): RuleRow => {
    const { changedAt: createdAt, changedBy: createdBy } = at;
    return { id, accountId, version: 1, definition, createdAt, createdBy, ...at };
  };

  /** The rules that definitions make, named by their places. Throws `validation_error` with the place of whatever is wrong. */
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
   * That a rule can't be decided on some of the newest requests, which it would hold: of a draft that names a member of another body,
   * on most of them. Null: it can be decided on each.
   */
  const undecidableOn = async (accountId: string, rule: CompiledRule): Promise<string | null> => {
    const yieldTurn = createYield(clock);
    const reasons: string[] = [];
    const list = new RuleList([rule]);
    let tried = 0;
    for await (const page of newest(actions, accountId, { last: RULE_DRAFT_ACTIONS, since: null })) {
      for (const action of page) {
        await yieldTurn();
        tried += 1;
        const [walk] = known.walksFor(requesterOf(action), action, { now: action.createdAt }, list);
        if (walk?.ruling?.isUndecidable === true) reasons.push(walk.ruling.reason ?? "");
      }
    }
    const [most] = [...Map.groupBy(reasons, String).values()].toSorted((one, other) => other.length - one.length);
    if (most === undefined) return null;
    return `Undecidable on ${reasons.length} of the newest ${tried} requests, which it would hold: ${most[0]}`;
  };

  /** What is probably wrong with a rule that was just written: it is tried on what was requested. */
  const placed = async ({ accountId }: Caller, rows: readonly RuleRow[], id: string): Promise<PlacedRule> => {
    const position = rows.findIndex((one) => one.id === id);
    const row = rows[position];
    if (row === undefined) throw notFound("rule");
    // Without what its owner says to agents, every reason is about the request.
    const { message: _message, explain: _explain, ...conditions } = definitionOf(row);
    const undecidable = await undecidableOn(accountId, ruleFrom(conditions, id, row.version));
    const warnings = [deadRules(known.rulesOf(accountId)).get(id), undecidable];
    return { row, position, warnings: warnings.filter((text) => typeof text === "string") };
  };

  return {
    /** Of rules, by their ids, what is probably wrong with them. */
    warnings: ({ accountId }: Caller): ReadonlyMap<string, string> => deadRules(known.rulesOf(accountId)),

    /** In the order in which they are asked. */
    async list(caller: Caller): Promise<readonly RuleRow[]> {
      authorize(caller, "read");
      return rules.list(caller.accountId);
    },

    /** Tries rules on the past, or those in force without them; see `createDryRun`. Throws `validation_error` too. */
    async dryRun(
      caller: Caller,
      definitions: readonly RuleDefinition[] | null,
      range: DryRunRange,
    ): Promise<AsyncGenerator<DryRunStep>> {
      authorize(caller, "approve");
      const inForce = () => known.compiledRules(caller.accountId, createYield(clock));
      return tryOn(caller, await (definitions === null ? inForce() : rulesFrom(definitions)), range);
    },

    /**
     * What the rules would have done with the newest requests if this one were in place of the rule `id`, or before the rule `before`,
     * or behind all others. Throws `validation_error`, `rate_limited`.
     */
    async tryRule(
      caller: Caller,
      definition: RuleDefinition,
      { id, before }: Readonly<Record<"id" | "before", string | null>>,
    ): Promise<DryRunJson> {
      authorize(caller, "manage");
      const draft = ruleFrom(definition, id ?? "rul_draft", 1);
      const inForce = await known.compiledRules(caller.accountId, createYield(clock));
      const at = inForce.findIndex((rule) => rule.id === (id ?? before));
      const tried = at === -1 ? [...inForce, draft] : inForce.toSpliced(at, id === null ? 0 : 1, draft);
      for await (const step of tryOn(caller, tried, { last: DRY_RUN_ACTIONS_DEFAULT, since: null })) {
        if ("differences" in step) return step;
      }
      throw new Error("A dry run ended without a result.");
    },

    /** Adds a rule at the end, or before another one. Throws `validation_error`. */
    async add(caller: Caller, definition: RuleDefinition, before: string | null): Promise<PlacedRule> {
      const id = ids.rule();
      const rows = await write(caller, (stored, at) => {
        const place = before === null ? stored.length : stored.findIndex((row) => row.id === before);
        const row = newRow(caller, checked(definition), at, id);
        if (place === -1) throw invalidField("before", "There is no such rule.");
        return stored.toSpliced(place, 0, row);
      });
      return placed(caller, rows, id);
    },

    /** Replaces what is given of a rule. Throws `not_found`, `validation_error`. */
    async change(caller: Caller, id: string, { unset = [], ...patch }: ChangeRuleBody): Promise<PlacedRule> {
      const gone: readonly string[] = unset;
      const rows = await write(caller, (stored, at) => {
        const row = rowIn(stored, id);
        const members = Object.entries({ ...definitionOf(row), ...patch }).filter(([name]) => !gone.includes(name));
        return redefined(stored, row, checked(Object.fromEntries(members)), at);
      });
      return placed(caller, rows, id);
    },

    /** Replaces a rule that has this version, unless it is equal. Throws `not_found`, and `validation_error` for another version too. */
    async replace(caller: Caller, id: string, definition: RuleDefinition, version: number): Promise<void> {
      await write(caller, (stored, at) => {
        const row = rowIn(stored, id);
        if (row.version !== version) {
          const { name } = describeActor(row.changedBy);
          const message = `${name} has changed this rule since you opened it: it has version ${row.version} now. Save again to replace that one.`;
          throw invalidField("version", message);
        }
        const before = definitionOf(row);
        const differing = differingMembers(before, definition);
        if (differing.length === 0) return null;
        // Nothing else is written in another order.
        const same = Object.entries(before).filter(([name]) => !differing.includes(name));
        const wanted = Object.entries(definition).filter(([name]) => differing.includes(name));
        return redefined(stored, row, checked(Object.fromEntries([...same, ...wanted])), at);
      });
    },

    /** Throws `not_found`. */
    async remove(caller: Caller, id: string): Promise<void> {
      await write(caller, (stored) => {
        const row = rowIn(stored, id);
        return stored.filter((one) => one !== row);
      });
    },

    /**
     * Has loops of a new key held: by the rule that does so for others, or by one behind those that refuse and stand first. A later rule
     * that allows would end the list before it.
     */
    async brakeLoops(caller: Caller, keyId: string): Promise<void> {
      await write(caller, (stored, at) => {
        const brake = stored.find((row) => isLoopBrake(definitionOf(row)));
        const keys = brake === undefined ? [] : (definitionOf(brake).keys ?? []);
        const text = checked({ ...LOOP_BRAKE, keys: [...keys, keyId] });
        if (brake !== undefined) return redefined(stored, brake, text, at);
        const place = stored.findIndex((row) => definitionOf(row).effect !== "refuse");
        return stored.toSpliced(place === -1 ? stored.length : place, 0, newRow(caller, text, at));
      });
    },

    /** What each rule, by its id, did lately with the newest calls, at most so many. `isWhole`: every call is among them. */
    async hits(caller: Caller) {
      authorize(caller, "approve");
      const { accountId } = caller;
      const since = new Date(clock.now().getTime() - RULE_HITS_MS);
      const [ruled, refused] = await Promise.all([
        rules.ruled(accountId, since, RULE_HITS_MAX),
        refusalsSince(store.audit, accountId, since, RULE_HITS_MAX / DRY_RUN_PAGE_ACTIONS),
      ]);
      const hits: (readonly [id: string, effect: RuleEffect])[] = refused.ruleIds.map((id) => [id, "refuse"]);
      for (const { by, id, effect } of ruled) if (by === "rule" && id !== null) hits.push([id, effect]);
      const byRule = Map.groupBy(hits, ([id]) => id);
      return { byRule, isWhole: ruled.length < RULE_HITS_MAX && refused.isWhole };
    },

    /** The entry of the last change of the rules if `undo` can undo it: it is one of a single rule, and not older than `RULE_UNDO_MS_MAX`. */
    async lastChange(caller: Caller): Promise<AuditRow | null> {
      authorize(caller, "manage");
      const entry = await lastEntry(caller);
      if (entry === undefined) return null;
      const at = { changedAt: entry.at, changedBy: "system" } as const;
      return undone(entry, await rules.list(caller.accountId), at) === null ? null : entry;
    },

    /** Undoes the last change, which is the entry of the audit log with that number. Throws `not_found` if it is another one by now. */
    async undo(caller: Caller, seq: number): Promise<void> {
      authorize(caller, "manage");
      const entry = await lastEntry(caller);
      await write(caller, (stored, at) => {
        const before = entry?.seq === seq ? undone(entry, stored, at) : null;
        if (before === null) throw new DomainError("not_found", "The rules were changed since. Look at them again.");
        return before;
      });
    },

    /** Puts all rules into another order. Throws `validation_error` unless each id is named once. */
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

    /** Replaces all rules of the account. One of the same name as before keeps its id, and its version if it is equal. */
    async replaceAll(caller: Caller, definitions: readonly RuleDefinition[]): Promise<readonly RuleRow[]> {
      authorize(caller, "manage");
      await rulesFrom(definitions);
      const edit = (stored: readonly RuleRow[], at: EditedAt) => {
        const left = new Map(stored.map((row) => [definitionOf(row).name, row]));
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

function rowIn(rows: readonly RuleRow[], id: string): RuleRow {
  const row = rows.find((one) => one.id === id);
  if (row === undefined) throw notFound("rule");
  return row;
}

/** The members that two definitions say differently. Lists of rules have no order. */
function differingMembers(one: RuleDefinition, other: RuleDefinition): readonly string[] {
  const valueIn = (rule: RuleDefinition, name: string): unknown => {
    const value: unknown = Reflect.get(rule, name);
    return Array.isArray(value) ? new Set(value) : value;
  };
  return Object.keys({ ...one, ...other }).filter((name) => !Bun.deepEquals(valueIn(one, name), valueIn(other, name)));
}

/** Whether it is one of the form for new keys that can have one key more. */
function isLoopBrake({ keys, ...definition }: RuleDefinition): boolean {
  return keys !== undefined && keys.length < RULE_LIST_MAX && ruleText(definition) === ruleText(LOOP_BRAKE);
}

/** The text of a definition that can be a rule. Throws `validation_error`. */
function checked(given: unknown): string {
  // Its id and version are nothing to a check.
  ruleFrom(given, "", 1);
  // Safe: it is a definition, or it was refused.
  return ruleText(given as RuleDefinition);
}

function redefined(rows: readonly RuleRow[], row: RuleRow, definition: string, at: EditedAt): readonly RuleRow[] {
  const next = { ...row, ...at, version: row.version + 1, definition };
  return rows.map((one) => (one === row ? next : one));
}

/** What the audit log says of a change of one rule: with what it was, so that it can be undone. */
function changeOf(before: readonly RuleRow[], after: readonly RuleRow[]) {
  const was = before.find((row) => !after.includes(row));
  const row = after.find((one) => !before.includes(one)) ?? was;
  if (row === undefined) throw new Error("No rule differs.");
  const { id: subject, version } = row;
  const { name, effect } = definitionOf(row);
  if (was === undefined) return { subject, detail: { change: "added", name, effect, ...(version > 1 && { version }) } };
  const undo = { version: was.version, before: was.definition };
  if (was === row) return { subject, detail: { change: "removed", name, position: before.indexOf(was), ...undo } };
  const changed = differingMembers(definitionOf(was), definitionOf(row)).join(", ");
  return { subject, detail: { change: "changed", name, ...(changed !== "" && { changed }), ...undo } };
}

/** The rules without the change that the entry is about; null: it is no change of a single rule, or that rule was changed since. */
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
