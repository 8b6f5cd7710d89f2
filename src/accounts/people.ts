import type { AuditStore } from "../ports/audit.ts";
import type { Clock } from "../ports/clock.ts";
import type { Ids } from "../ports/ids.ts";
import type { Passwords } from "../ports/passwords.ts";
import type { PeopleStore } from "../ports/people.ts";
import type { Secrets } from "../ports/secrets.ts";
import { createChangePassword } from "./change-password.ts";
import { createCheckCurrentPassword } from "./current-password.ts";
import { createLogIn } from "./log-in.ts";
import { createLogOut } from "./log-out.ts";
import { createSessionRegistry } from "./presence.ts";
import { createResume } from "./resume.ts";
import { createSessionSecret } from "./session-secret.ts";
import { createSignInAudit } from "./sign-in-audit.ts";
import { createSignUp } from "./sign-up.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { createSignUpThrottle, createThrottle } from "./throttle.ts";
import { createSeeWelcome, createTakeWelcome } from "./welcome.ts";

export interface PeopleServiceDeps {
  readonly people: PeopleStore;
  readonly audit: Pick<AuditStore, "record">;
  readonly passwords: Passwords;
  readonly secrets: Secrets;
  readonly ids: Pick<Ids, "account" | "key" | "person">;
  readonly clock: Clock;
  readonly signUpGate: Pick<SignUpGate, "signUps" | "closedBy">;
}

/** Every use case of people who come in and go; what /auth and the pages call. */
export type PeopleService = ReturnType<typeof createPeopleService>;

/** Puts the verbs on one desk. */
export function createPeopleService(deps: PeopleServiceDeps) {
  const sessionRegistry = createSessionRegistry(deps);
  const throttle = createThrottle(deps.clock);
  const signInAudit = createSignInAudit(deps);
  const checkCurrentPassword = createCheckCurrentPassword({ ...deps, throttle, signInAudit });
  return {
    signUp: createSignUp({ ...deps, throttle: createSignUpThrottle(deps.clock) }),
    logIn: createLogIn({ ...deps, throttle, sessionRegistry, signInAudit }),
    logOut: createLogOut({ ...deps, sessionRegistry }),
    resume: createResume(deps),
    watchSession: sessionRegistry.watchSession,
    changePassword: createChangePassword({ ...deps, checkCurrentPassword, sessionRegistry }),
    sessionSecret: createSessionSecret({ ...deps, checkCurrentPassword }),
    seeWelcome: createSeeWelcome(deps),
    takeWelcome: createTakeWelcome({ ...deps, sessionRegistry }),
  };
}
