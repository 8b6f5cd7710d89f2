import type { ActionService } from "../src/actions/desk.ts";
import type { Action } from "../src/domain/action.ts";
import { mayApproveIt } from "../src/domain/creator.ts";
import { isDecided, latestDecision } from "../src/domain/latest-decision.ts";
import type { PauseOf } from "../src/domain/pause.ts";
import { mayApproveWhenAsked } from "../src/domain/roles.ts";
import { mayChange } from "../src/domain/scope.ts";
import { readyFor } from "../src/masking/ahead.ts";
import type { ToolCall } from "./call.ts";
import type { Beside, Show, ToolDecision } from "./show.ts";
import { nextStepOf, type Places } from "./words.ts";

export interface DescribeDeps extends Places {
  readonly actionService: Pick<ActionService, "timeline">;
  readonly show: Show;
  readonly pauseOf: PauseOf;
}

/** What a call knows of an action beside the action. */
export interface CallOutcome extends Pick<Beside, "differs" | "error"> {
  /** How the question of this call ended; told only while the action is held, for whoever has decided since counts. */
  readonly asked?: Exclude<ToolDecision["decision"], "approved" | "rejected"> | null;
  /** What comes before the next step that the action gives. */
  readonly before?: string;
}

/**
 * An action as JSON text, with how it was decided, by whom and why. A decision stands in the timeline, which is read only
 * where there is one: most actions are never held.
 */
export type Describe = (call: Asker, action: Action, outcome?: CallOutcome) => Promise<string>;

/** Who reads it, and whether they can put a question to a person. */
type Asker = Pick<ToolCall, "caller" | "questions">;

export function createDescribe(deps: DescribeDeps): Describe {
  const { actionService, show, pauseOf, baseUrl, agentApproval } = deps;
  return async (call, action, { asked = null, before, differs, error } = {}) => {
    const caller = call.caller();
    const ended = isDecided(action) ? latestDecision(action, await actionService.timeline(caller, action.id)) : null;
    const isStillAsked = asked !== null && action.status === "awaiting_approval";
    const decision = isStillAsked ? { decision: asked, by: null, reason: null, via: null } : ended;
    // Who has just cancelled it by its own will needs no advice.
    const isOwn = decision !== null && decision.by === caller.actor && decision.via === null;
    const isSaid = error !== undefined || isOwn;
    const mayAsk = () =>
      agentApproval === "elicit" &&
      mayApproveWhenAsked(caller.role) &&
      mayApproveIt(caller.role, action) &&
      mayChange(caller, action) &&
      call.questions !== null;
    const isPaused = action.status === "pending" && pauseOf(action) !== null;
    const step = isSaid ? null : nextStepOf(action.status, decision?.decision ?? null, { baseUrl, mayAsk, isPaused });
    const nextStep = [before, step].filter((text) => typeof text === "string").join(" ");
    return show.one(caller, await readyFor(caller, action), {
      ...(differs === undefined ? {} : { differs }),
      ...(error === undefined ? {} : { error }),
      decision,
      nextStep: nextStep === "" ? null : nextStep,
    });
  };
}
