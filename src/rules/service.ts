import type { RuleRow, RuleStore } from "../core/account-rules.ts";
import { auditOf, type AuditRow } from "../core/audit.ts";
import { DomainError, invalidField, invalidFields, type Issue, notFound, accountFull } from "../core/domain-error.ts";
import {
  DRY_RUN_ACTIONS_DEFAULT,
  DRY_RUN_PAGE_ACTIONS,
  RULE_HITS_MAX,
  RULE_HITS_MS,
  RULE_DRAFT_ACTIONS,
  RULE_LIST_MAX,
  RULE_TRIES_MAX,
  RULE_UNDO_MS_MAX,
  RULES_MAX,
} from "../core/limits.ts";
import { rulesChange } from "../core/policy.ts";
import { authorize, type Caller } from "../core/roles.ts";
import type { Store } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { createDryRun, type RulesDryRun, type DryRunRange, type DryRunStep, pagesOf } from "./dry-run.ts";
import { hitsOf, refusalsSince, type RuleHits } from "./hits.ts";
import type { KnownRules } from "./known.ts";
import { type CompiledRule, type RuleDefinition, ruleFrom } from "./rule.ts";
import { type ChangeRule, definitionOf, LOOP_BRAKE, type PlacedRule, ruleText } from "./schemas.ts";
import { type Edited, type LastChange, lastChangeOf, pastOf, undone } from "./undo.ts";
import { deadRules, undecidableOn } from "./warnings.ts";

interface RuleServiceDeps extends Pick<AppContext, "clock" | "ids">, Pick<Store, "actions" | "audit"> {
  readonly rules: RuleStore;
  readonly known: Pick<KnownRules, "requesterOf" | "reloadOf" | "walksFor" | "rulesOf">;
}

/** A change of the rules of an account, computed from those that are stored. */
type Edit = (rows: readonly RuleRow[], at: Pick<RuleRow, "changedAt" | "changedBy">) => Edited;

/** Where a rule is tried: in place of that one, or before that one; both null: behind all others. */
interface RulePlace {
  readonly id: string | null;
  readonly before: string | null;
}

/** Every use case of rules: owners change them, everybody of the account reads them as far as they may. */
export type RuleService = ReturnType<typeof createRuleService>;

export function createRuleService(deps: RuleServiceDeps) {
  const { rules, known, actions, clock, ids } = deps;
  const tryOn = createDryRun(deps);

  /** All rules of the account are written at once, so that none is in force without the others of a change. */
  const write = async (caller: Caller, edit: Edit): Promise<readonly RuleRow[]> => {
    authorize(caller, "manage");
    const { accountId, actor: changedBy } = caller;
    for (let tries = 0; tries < RULE_TRIES_MAX; tries += 1) {
      const expected = await rules.versionOf(accountId);
      const changedAt = clock.now();
      const edited = edit(await rules.list(accountId), { changedAt, changedBy });
      if (edited.rows.length > RULES_MAX) {
        throw accountFull(RULES_MAX, "rules");
      }
      const { subject, detail } = edited;
      const audit = auditOf(caller, { kind: "rules_changed", subject, detail }, changedAt);
      if (await rules.replace({ accountId, rules: edited.rows, expected, audit })) {
        await known.reloadOf(accountId);
        return edited.rows;
      }
    }
    throw rulesChange();
  };

  const newRow = (caller: Caller, definition: string, at: Pick<RuleRow, "changedAt" | "changedBy">): RuleRow => {
    const { changedAt: createdAt, changedBy: createdBy } = at;
    return { id: ids.rule(), accountId: caller.accountId, version: 1, definition, createdAt, createdBy, ...at };
  };

  const lastEntry = async ({ accountId }: Caller): Promise<AuditRow | undefined> => {
    const since = new Date(clock.now().getTime() - RULE_UNDO_MS_MAX);
    const filter = { accountId, kinds: ["rules_changed"] as const, actors: [], since, until: null };
    return (await deps.audit.page({ ...filter, before: null, limit: 1 })).rows[0];
  };

  /** Of rules as they are known: until they change, it is computed once. */
  const dead = new WeakMap<readonly CompiledRule[], ReadonlyMap<string, string>>();
  const deadOf = (all: readonly CompiledRule[]): ReadonlyMap<string, string> => {
    const found = dead.get(all) ?? deadRules(all);
    dead.set(all, found);
    return found;
  };

  /** What is probably wrong with a rule that was just written: it is tried on what was requested. */
  const placed = async ({ accountId }: Caller, rows: readonly RuleRow[], row: RuleRow | null): Promise<PlacedRule> => {
    if (row === null) throw notFound("rule");
    const { id, version } = row;
    const compiled = ruleFrom(definitionOf(row), id, version);
    const neverApplies = deadOf(known.rulesOf(accountId)).get(id);
    let undecidable: string | null = null;
    for await (const page of pagesOf(actions, accountId, { last: RULE_DRAFT_ACTIONS, since: null })) {
      undecidable = await undecidableOn(compiled, page);
    }
    const warnings = [neverApplies, undecidable].filter((text) => typeof text === "string");
    return { row, position: rows.indexOf(row), warnings };
  };

  return {
    /** Of rules, by their ids, what is probably wrong with them. */
    warnings({ accountId }: Caller): ReadonlyMap<string, string> {
      return deadOf(known.rulesOf(accountId));
    },

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
      const stored = definitions === null ? await rules.list(caller.accountId) : [];
      return tryOn(caller, rulesFrom(definitions ?? stored.map(definitionOf)), range);
    },

    /** What the rules would have done with the newest requests if this one were among them. Throws `validation_error`, `rate_limited`. */
    async tryRule(caller: Caller, definition: RuleDefinition, { id, before }: RulePlace): Promise<RulesDryRun> {
      authorize(caller, "manage");
      checked(definition);
      const stored = await rules.list(caller.accountId);
      const at = stored.findIndex((row) => row.id === (id ?? before));
      const others = stored.map(definitionOf);
      const place = at === -1 ? others.length : at;
      const tried = others.toSpliced(place, id === null || at === -1 ? 0 : 1, definition);
      for await (const step of tryOn(caller, rulesFrom(tried), { last: DRY_RUN_ACTIONS_DEFAULT, since: null })) {
        if ("effects" in step) return step;
      }
      throw new Error("A dry run ended without a result.");
    },

    /** Adds a rule at the end, or before another one. Throws `validation_error`. */
    async add(caller: Caller, definition: RuleDefinition, before: string | null): Promise<PlacedRule> {
      authorize(caller, "manage");
      const text = checked(definition);
      let added: RuleRow | null = null;
      const rows = await write(caller, (stored, at) => {
        const place = before === null ? stored.length : stored.findIndex(({ id }) => id === before);
        if (place === -1) throw invalidField("before", "There is no such rule.");
        added = newRow(caller, text, at);
        const detail = { change: "added", name: definition.name, effect: definition.effect };
        return { rows: stored.toSpliced(place, 0, added), subject: added.id, detail };
      });
      return placed(caller, rows, added);
    },

    /** Replaces what is given of a rule. Throws `not_found`, `validation_error`. */
    async change(caller: Caller, id: string, { unset = [], ...patch }: ChangeRule): Promise<PlacedRule> {
      authorize(caller, "manage");
      const rows = await write(caller, (stored, at) => {
        const row = stored.find((one) => one.id === id);
        if (row === undefined) throw notFound("rule");
        const members = Object.entries({ ...definitionOf(row), ...patch }).filter(
          ([name]) => !unset.some((one) => one === name),
        );
        const changed = { ...row, ...at, version: row.version + 1, definition: checked(Object.fromEntries(members)) };
        const { name } = definitionOf(changed);
        const named = [...Object.keys(patch), ...unset].join(", ");
        const detail = { change: "changed", name, changed: named, ...pastOf(row) };
        return { rows: stored.map((one) => (one.id === id ? changed : one)), subject: id, detail };
      });
      return placed(caller, rows, rows.find((one) => one.id === id) ?? null);
    },

    /** Throws `not_found`. */
    async remove(caller: Caller, id: string): Promise<void> {
      await write(caller, (stored) => {
        const row = stored.find((one) => one.id === id);
        if (row === undefined) throw notFound("rule");
        return {
          rows: stored.filter((one) => one !== row),
          subject: id,
          detail: { change: "removed", name: definitionOf(row).name, position: stored.indexOf(row), ...pastOf(row) },
        };
      });
    },

    /**
     * Has loops of a new key held: by the rule that does so for others, or by one behind those that refuse and stand first. A later rule
     * that allows would end the list before it.
     */
    async brakeLoops(caller: Caller, keyId: string): Promise<void> {
      await write(caller, (stored, at) => {
        const detail = { change: "changed", name: LOOP_BRAKE.name, changed: "keys" };
        const brake = stored.find((row) => isLoopBrake(definitionOf(row)));
        if (brake !== undefined) {
          const definition = definitionOf(brake);
          const text = checked({ ...definition, keys: [...(definition.keys ?? []), keyId] });
          const changed = { ...brake, ...at, version: brake.version + 1, definition: text };
          return {
            rows: stored.map((row) => (row === brake ? changed : row)),
            subject: brake.id,
            detail: { ...detail, ...pastOf(brake) },
          };
        }
        const added = newRow(caller, checked({ ...LOOP_BRAKE, keys: [keyId] }), at);
        const place = stored.findIndex((row) => definitionOf(row).effect !== "refuse");
        const rows = stored.toSpliced(place === -1 ? stored.length : place, 0, added);
        const { name, effect } = LOOP_BRAKE;
        return { rows, subject: added.id, detail: { change: "added", name, effect } };
      });
    },

    /** How often each rule held, refused or allowed a call lately: of the newest such calls, each effect counted up to its bound. */
    async hits(caller: Caller): Promise<RuleHits> {
      authorize(caller, "approve");
      const { accountId } = caller;
      const since = new Date(clock.now().getTime() - RULE_HITS_MS);
      const [ruled, refused] = await Promise.all([
        rules.ruled(accountId, since, RULE_HITS_MAX),
        refusalsSince(deps.audit, { accountId, since, pagesMax: RULE_HITS_MAX / DRY_RUN_PAGE_ACTIONS }),
      ]);
      return hitsOf(ruled, refused);
    },

    /** The last change of the rules if it is one of a single rule and not older than `RULE_UNDO_MS_MAX`; null: there is none to undo. */
    async lastChange(caller: Caller): Promise<LastChange | null> {
      authorize(caller, "manage");
      return lastChangeOf(await lastEntry(caller), await rules.list(caller.accountId));
    },

    /** Undoes the last change, which is the entry of the audit log with that number. Throws `not_found` if it is another one by now. */
    async undo(caller: Caller, seq: number): Promise<void> {
      authorize(caller, "manage");
      const entry = await lastEntry(caller);
      await write(caller, (stored, at) => {
        const edited = entry?.seq === seq ? undone(entry, stored, at) : null;
        if (edited === null) throw new DomainError("not_found", "The rules were changed since. Look at them again.");
        return edited;
      });
    },

    /** Puts all rules into another order. Throws `validation_error` unless each id is named once. */
    reorder(caller: Caller, order: readonly string[]): Promise<readonly RuleRow[]> {
      return write(caller, (stored) => {
        const rows = order.flatMap((id) => stored.find((one) => one.id === id) ?? []);
        if (rows.length !== stored.length || order.length !== stored.length || new Set(order).size !== order.length) {
          throw invalidField("ids", `Must name each of the ${stored.length} rules once.`);
        }
        return { rows, subject: "", detail: { change: "reordered" } };
      });
    },

    /** Replaces all rules of the account. One of the same name as before keeps its id, and its version if it is equal. */
    replaceAll(caller: Caller, definitions: readonly RuleDefinition[]): Promise<readonly RuleRow[]> {
      const texts = checkedAll(definitions).map((text, n) => ({ name: definitions[n]?.name ?? "", text }));
      return write(caller, (stored, at) => {
        const left = new Map(stored.map((row) => [definitionOf(row).name, row]));
        const rows = texts.map(({ name, text }) => {
          const row = left.get(name);
          left.delete(name);
          if (row === undefined) return newRow(caller, text, at);
          return row.definition === text ? row : { ...row, ...at, version: row.version + 1, definition: text };
        });
        return { rows, subject: "", detail: { change: "replaced", rules: rows.length } };
      });
    },
  };
}

/** Whether it is one of the form for new keys that can have one key more. */
function isLoopBrake({ keys, ...definition }: RuleDefinition): boolean {
  return keys !== undefined && keys.length < RULE_LIST_MAX && ruleText(definition) === ruleText(LOOP_BRAKE);
}

/** The rules that definitions make, named by their places. Throws `validation_error`. */
function rulesFrom(definitions: readonly RuleDefinition[]): readonly CompiledRule[] {
  return checkedAll(definitions).map((text, n) => ruleFrom(JSON.parse(text), `rul_draft${n}`, 1));
}

/** The text of a definition that can be a rule. Throws `validation_error`. */
function checked(given: unknown): string {
  // Its id and version are nothing to a check.
  ruleFrom(given, "", 1);
  // Safe: it is a definition, or it was refused.
  return ruleText(given as RuleDefinition);
}

/** The same of a list, with the place of whatever is wrong. */
function checkedAll(given: readonly unknown[]): readonly string[] {
  const issues: Issue[] = [];
  const texts = given.map((one, n) => {
    try {
      return checked(one);
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      issues.push(...error.issues.map(({ field, message }) => ({ field: `rules.${n}.${field}`, message })));
      return "";
    }
  });
  if (issues.length > 0) throw invalidFields(issues);
  return texts;
}
