import type { AuditStore } from "../audit/audit.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Ids } from "../runtime/ids.ts";
import type { Passwords, Secrets } from "../crypto/types.ts";
import type { PeopleStore } from "../../db/account-store.ts";
import { createChangePassword, createLogIn } from "./log-in.ts";
import { createCheckCurrentPassword, createSessionSecret } from "./session-secret.ts";
import { createLogOut, createSessionRegistry, createResume } from "./sessions.ts";
import { createSignInAudit, createSignUpThrottle, createThrottle } from "./throttle.ts";
import { createSignUp } from "./sign-up.ts";
import type { SignUpGate } from "./sign-up-gate.ts";
import { createSeeWelcome, createTakeWelcome } from "./welcome-links.ts";
import { authorize, type Caller } from "./roles.ts";

interface PeopleServiceDeps {
  readonly people: PeopleStore;
  readonly audit: Pick<AuditStore, "record">;
  readonly passwords: Passwords;
  readonly secrets: Secrets;
  readonly ids: Pick<Ids, "account" | "key" | "person">;
  readonly clock: Clock;
  readonly signUpGate: Pick<SignUpGate, "signUps" | "closedBy">;
}

/** All use cases of sign-up, log-in and sessions, for /auth and the pages. */
export type PeopleService = ReturnType<typeof createPeopleService>;

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

interface ReadAccount {
  readonly id: string;
  /** Of the account's first person; null: none yet. */
  readonly email: string | null;
}

/** Reads the caller's own account, for every role. */
export function createReadAccount(people: Pick<PeopleStore, "emailOf">) {
  return async (caller: Caller): Promise<ReadAccount> => {
    authorize(caller, "read");
    return { id: caller.accountId, email: await people.emailOf(caller.accountId) };
  };
}
