import type { MatchedActions } from "../core/search.ts";
import { setImmediate as nextTurn } from "node:timers/promises";
import { callerOfKey } from "../accounts/authenticate.ts";
import type { ActionService, CountFilter } from "../actions/service.ts";
import { checkFilters, type FilterParameters } from "../api/list-schemas.ts";
import { sources } from "../core/action.ts";
import { auditEntry, auditOfSystem } from "../core/audit.ts";
import type { BulkJob, BulkOperation, BulkResult, BulkResultFilter, BulkAction, BulkEnd } from "../core/bulk-job.ts";
import { DomainError, invalidFields, notFound, type ErrorCode } from "../core/domain-error.ts";
import {
  BULK_ACTIONS_MAX,
  BULK_GROUPS_SHOWN_MAX,
  BULK_RUNNING_MAX,
  BULK_SCAN_ROWS_MAX,
  BULK_ROUND_JOBS_MAX,
  BULK_STEP_ACTIONS,
} from "../core/limits.ts";
import { hasEnded } from "../core/account-store.ts";
import { authorize, type Caller, hasScope, mayChange, roleViewer, SYSTEM } from "../core/roles.ts";
import { StoreUnavailable } from "../core/store.ts";
import { searchedAs } from "../receipts/masked-action.ts";
import { maskText } from "../receipts/masking.ts";
import type { AppContext } from "../runtime/app-context.ts";
import { type JobLeases, NO_JOB_LEASES } from "../runtime/jobs.ts";
import type { Decide } from "../core/changes.ts";
import type { Log } from "../observability/log.ts";

export interface BulkRequest {
  readonly operation: BulkOperation;
  readonly filter: FilterParameters;
  readonly reason: string | null;
}

export type BulkService = ReturnType<typeof createBulkService>;

export type BulkPreview = Awaited<ReturnType<BulkService["dryRun"]>>;

function createBulkService({ store: { bulk, actions }, clock, ids }: AppContext, runner: BulkRunner) {
  const matching = async (caller: Caller, { operation, filter }: BulkRequest): Promise<MatchedActions> => {
    authorize(caller, operation);
    const asked = filterFor(operation, filter);
    const found: MatchedActions[] = [];
    for (const createdBy of creatorsFor(caller, asked)) {
      if (found.length > 0) await nextTurn();
      const own = { createdBy, accountId: caller.accountId, seenAs: searchedAs(caller) };
      const query = { ...asked, ...own, before: null, limit: BULK_ACTIONS_MAX };
      found.push(await actions.matching(query, BULK_SCAN_ROWS_MAX));
    }
    const all = found.flatMap((one) => one.actions).toSorted((one, other) => (one.id < other.id ? 1 : -1));
    return {
      actions: all.slice(0, BULK_ACTIONS_MAX),
      isMore: all.length > BULK_ACTIONS_MAX || found.some(({ isMore }) => isMore),
    };
  };

  const find = async (caller: Caller, id: string): Promise<BulkJob> => {
    authorize(caller, "read");
    const job = await bulk.find(caller.accountId, id);
    if (job === null) throw notFound("bulk job");
    return job;
  };

  return {
    /** What a job would cover. Changes nothing. */
    async dryRun(caller: Caller, request: BulkRequest) {
      const found = await matching(caller, request);
      const matched = found.actions.map(({ id }) => id);
      const [unknown, late] = await Promise.all([actions.withUnknown(matched), actions.withLateSuccess(matched)]);
      const viewer = roleViewer(caller.role);
      const byAnswer = Map.groupBy(found.actions, ({ host, responseCode }) => `${responseCode} ${host}`);
      const largest = [...byAnswer.values()].toSorted((one, other) => other.length - one.length);
      return {
        matching: found.actions.length,
        isMore: found.isMore,
        unknownOutcomes: unknown.size,
        lateSuccesses: late.size,
        groups: largest.slice(0, BULK_GROUPS_SHOWN_MAX).flatMap((same) => {
          const [first] = same;
          if (first === undefined) return [];
          return { host: maskText(first.host, viewer), responseCode: first.responseCode, count: same.length };
        }),
      };
    },

    /**
     * Begins a job on the actions that match now. Throws `too_many_jobs`, and `validation_error` if more match than the
     * `atMost`, the number that somebody was shown.
     */
    async start(caller: Caller, request: BulkRequest, atMost = BULK_ACTIONS_MAX): Promise<BulkJob> {
      const found = await matching(caller, request);
      const count = found.actions.length;
      if (count > atMost)
        throw new DomainError(
          "validation_error",
          `${count} actions match now, ${atMost} when you looked. Check again.`,
        );
      const now = clock.now();
      const { operation, reason } = request;
      const job: BulkJob = {
        id: ids.bulk(now),
        accountId: caller.accountId,
        operation,
        filter: JSON.stringify(request.filter),
        reason,
        status: "running",
        matching: count,
        done: 0,
        failed: 0,
        createdAt: now,
        createdBy: caller.actor,
        keyId: caller.keyId ?? "",
        personId: caller.personId ?? "",
        client: caller.client ?? "",
        finishedAt: null,
        stoppedBy: null,
      };
      // A reason may contain secrets.
      const why = reason === null ? {} : { reason: maskText(reason, "public") };
      const detail = { operation, matching: job.matching, ...why };
      const audit = auditEntry(caller, { kind: "bulk_started", subject: job.id, detail }, now);
      if (!(await bulk.add(job, found.actions, audit))) {
        throw new DomainError(
          "too_many_jobs",
          `The account has ${BULK_RUNNING_MAX} bulk jobs running, or too many that ended lately. Wait for one to end, or stop one.`,
        );
      }
      // It never rejects.
      void runner.run().catch(() => {});
      return job;
    },

    find,

    /** Lists jobs, newest first. One more than `limit` means that there are more. */
    async list(caller: Caller, before: string | null, limit: number): Promise<readonly BulkJob[]> {
      authorize(caller, "read");
      return bulk.list(caller.accountId, before, limit + 1);
    },

    /** Lists the actions of a job in the same way. */
    async results(caller: Caller, id: string, asked: BulkResultFilter): Promise<readonly BulkResult[]> {
      await find(caller, id);
      return bulk.results(id, { ...asked, limit: asked.limit + 1 });
    },

    /** Ends a job. What is done stays done. Idempotent. */
    async stop(caller: Caller, id: string): Promise<void> {
      const job = await find(caller, id);
      authorize(caller, job.operation);
      if (!mayChange(caller, job)) {
        throw new DomainError("forbidden", `Bulk job ${id} was begun by another key. Ask an owner to stop it.`);
      }
      const at = clock.now();
      const audited = { kind: "bulk_stopped", subject: id, detail: { operation: job.operation } } as const;
      await bulk.end(id, { status: "stopped", at, by: caller.actor }, auditEntry(caller, audited, at));
    },
  };
}

/** The filter with only those statuses, named or by default, to which the operation applies. */
function filterFor(operation: BulkOperation, filter: FilterParameters): CountFilter {
  const asked = checkFilters(filter);
  // Somebody decided against a cancelled action, so it is retried only if the filter names it or its status.
  const isNamed = asked.search.ids.length > 0;
  const usual = operation === "retry" && !isNamed ? (["failed"] as const) : sources(operation);
  const statuses =
    asked.statuses.length === 0 ? usual : sources(operation).filter((one) => asked.statuses.includes(one));
  if (statuses.length > 0) return { ...asked, statuses };
  const message = `Name a status that ${operation} is for: ${sources(operation).join(", ")}.`;
  throw invalidFields([{ field: "filter.status", message }]);
}

/** The keys whose actions a caller may change, one query each; null: any. */
function creatorsFor(caller: Caller, { createdBy }: CountFilter): readonly (string | null)[] {
  if (!hasScope(caller.role) || caller.scope === "account") return [createdBy];
  const own = [caller.keyId ?? "", ...(caller.replaced ?? [])];
  return createdBy === null ? own : own.filter((keyId) => keyId === createdBy);
}

/** Creates the service of bulk jobs, and the runner that carries them out. */
export function createBulk(
  app: AppContext,
  actionService: ActionService,
  isStopped: (accountId: string) => boolean,
  leases: JobLeases = NO_JOB_LEASES,
) {
  const { store, clock } = app;
  const { accounts, team } = store;
  /** The caller that began a job, with present rights; null: the key was revoked or has expired, or the person has left. */
  const findCaller = async ({ accountId, keyId, personId, createdBy, client }: BulkJob): Promise<Caller | null> => {
    if (isStopped(accountId)) return null;
    if (keyId === "") {
      const person = await team.member(accountId, personId);
      if (person === null) return null;
      const named = { keyId: null, keyName: person.email, personId, actor: createdBy };
      return { accountId, ...named, role: person.role, hold: "none", client };
    }
    const key = await accounts.findKey(accountId, keyId);
    if (key === null || hasEnded(key, clock.now())) return null;
    const replaced = key.replaces === null ? [] : await accounts.replacedBy(keyId);
    // The caller is read again before each step, so a revocation needs no signal.
    return { ...callerOfKey(key, replaced, new AbortController().signal), client };
  };
  const bulkRunner = new BulkRunner(app, { decide: actionService, findCaller, leases });
  return { bulkService: createBulkService(app, bulkRunner), bulkRunner };
}

interface RunnerNeeds {
  readonly decide: Readonly<Record<BulkJob["operation"], Decide>>;
  /** The caller that began a job, with their present rights; null: they may not act any more. */
  readonly findCaller: (job: BulkJob) => Promise<Caller | null>;
  readonly leases: JobLeases;
}

/**
 * Carries out bulk jobs: a step of each in turn, on one node at a time. Every action follows the rules of the single operation,
 * in the run that it was in when the job began. Progress is stored, so that a job continues after a restart. If an action was
 * done but not noted, its timeline shows it.
 */
class BulkRunner {
  readonly #app: AppContext;
  readonly #needs: RunnerNeeds;
  readonly #stopping = new AbortController();
  #running: Promise<void> | null = null;
  #isAskedAgain = false;

  constructor(app: AppContext, needs: RunnerNeeds) {
    this.#app = app;
    this.#needs = needs;
  }

  /** Continues all jobs, unless another node does. Resolves when no job runs any more; never rejects. */
  run(): Promise<void> {
    this.#isAskedAgain = this.#running !== null;
    this.#running ??= this.#runAll().finally(() => (this.#running = null));
    return this.#running;
  }

  /** Begins no further step. Resolves when the present one has ended. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #runAll(): Promise<void> {
    const { leases } = this.#needs;
    try {
      do {
        this.#isAskedAgain = false;
        await leases.run("bulk", (stop) => this.#rounds(stop), { stop: this.#stopping.signal });
      } while (this.#isAskedAgain && !this.#stopping.signal.aborted);
    } catch (error) {
      // The next run continues. `Outage` logs that the store is unavailable.
      if (!(error instanceof StoreUnavailable))
        this.#app.log.error("bulk.interrupted", { error: error instanceof Error ? error.name : "unknown" });
    }
  }

  async #rounds(stop: AbortSignal): Promise<void> {
    for (;;) {
      const jobs = await this.#app.store.bulk.running(BULK_ROUND_JOBS_MAX);
      for (const job of jobs) {
        if (stop.aborted) return;
        await this.#step(job);
      }
      if (jobs.length === 0) return;
    }
  }

  async #step(job: BulkJob): Promise<void> {
    const { store, clock } = this.#app;
    const { bulk } = store;
    const caller = await this.#needs.findCaller(job);
    if (caller === null) return this.#giveUp(job);
    const waiting = await bulk.waiting(job.id, BULK_STEP_ACTIONS);
    if (waiting.length === 0) {
      await bulk.end(job.id, { status: "finished", at: clock.now(), by: null });
      return;
    }
    // Concurrently, so that they share commits.
    const ends = await Promise.all(waiting.map((action) => this.#carryOut(job, caller, action)));
    await bulk.settle(job.id, ends);
  }

  async #carryOut(job: BulkJob, caller: Caller, { id, run }: BulkAction): Promise<BulkEnd> {
    try {
      const done = await this.#needs.decide[job.operation](caller, id, job.reason, { run, isHeld: false });
      return { id, status: "done", actionStatus: done.status };
    } catch (error) {
      if (error instanceof StoreUnavailable) throw error;
      const { code, message } = asRefusal(error, this.#app.log);
      if (REFUSED.has(code)) {
        const actionStatus = await this.#doneBefore(job, { id, run });
        if (actionStatus !== null) return { id, status: "done", actionStatus };
      }
      return { id, status: "failed", code, message };
    }
  }

  /** The status that this job gave the action before a restart; null: it hadn't. */
  async #doneBefore({ accountId, operation, createdBy, createdAt }: BulkJob, { id, run }: BulkAction) {
    const entries = await this.#app.store.actions.timeline(accountId, id);
    const doneRun = operation === "retry" ? run + 1 : run;
    const done = entries.findLast(({ run: inRun, at, event }) => {
      const isDone = operation === "retry" ? event.type === "retried" : CANCELLED.has(event.type);
      return isDone && inRun === doneRun && at >= createdAt && "actor" in event && event.actor === createdBy;
    });
    return done?.status ?? null;
  }

  async #giveUp(job: BulkJob): Promise<void> {
    const at = this.#app.clock.now();
    const audited = { kind: "bulk_stopped", subject: job.id, detail: { operation: job.operation } } as const;
    const audit = auditOfSystem(job.accountId, audited, at);
    await this.#app.store.bulk.end(job.id, { status: "stopped", at, by: SYSTEM }, audit);
  }
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["not_retryable", "not_cancellable"]);

const CANCELLED: ReadonlySet<string> = new Set(["cancelled", "rejected"]);

/** An action that fails unexpectedly must not stop the others. */
function asRefusal(error: unknown, log: Pick<Log, "error">): Pick<DomainError, "code" | "message"> {
  if (error instanceof DomainError) return error;
  log.error("bulk.failed", { error: error instanceof Error ? error.name : "unknown" });
  return { code: "internal_error", message: "It failed unexpectedly; the log of the service has the details." };
}
