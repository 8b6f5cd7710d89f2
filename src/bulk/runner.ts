import { StoreUnavailable } from "../core/store.ts";
import type { AppContext } from "../runtime/app-context.ts";
import type { Decide } from "../core/changes.ts";
import { type Caller, SYSTEM } from "../core/roles.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { auditOfSystem } from "../core/audit.ts";
import { BULK_ROUND_JOBS_MAX, BULK_STEP_ACTIONS } from "../core/limits.ts";
import type { JobLeases } from "../runtime/jobs.ts";
import type { Log } from "../observability/log.ts";
import type { BulkAction, BulkEnd, BulkJob } from "../core/bulk-job.ts";

interface RunnerNeeds {
  readonly decide: Readonly<Record<BulkJob["operation"], Decide>>;
  /** The caller that began a job, with their present rights; null: they may not act any more. */
  readonly callerOf: (job: BulkJob) => Promise<Caller | null>;
  readonly leases: JobLeases;
}

/**
 * Carries out bulk jobs: a step of each in turn, on one node at a time. Every action follows the rules of the single operation,
 * in the run that it was in when the job began. Progress is stored, so that a job continues after a restart. If an action was
 * done but not noted, its timeline shows it.
 */
export class BulkRunner {
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
    const caller = await this.#needs.callerOf(job);
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
