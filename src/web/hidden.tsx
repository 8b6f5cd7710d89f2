/** @jsxImportSource hono/jsx */
import { hiddenWords } from "../contract/hidden.ts";
import { hiddenValues } from "../contract/masked.ts";
import type { Action } from "../domain/action.ts";
import { Button, FormToken } from "./form.tsx";
import { actionPath } from "./list-path.ts";
import type { PageUser } from "./visitor.ts";

export interface HiddenValuesProps {
  /** As it is shown: masked. */
  readonly action: Action;
  /** Who may have them shown; without a session it is said where. */
  readonly user?: PageUser;
}

/** How much of a request is hidden from whoever decides on it, and how to see it. Nothing where nothing is. */
export function HiddenValues({ action, user }: HiddenValuesProps) {
  const words = hiddenWords(hiddenValues(action));
  if (words === null) return null;
  return (
    <div class="notice notice-wait hidden-values">
      <p>
        <b>{words}.</b> {user === undefined ? <SignInToSee id={action.id} /> : null}
      </p>
      {user === undefined ? null : <RevealForm id={action.id} user={user} />}
    </div>
  );
}

function SignInToSee({ id }: { readonly id: string }) {
  return (
    <>
      To see what is hidden, log in on <a href={actionPath(id)}>the page of this action</a>.
    </>
  );
}

/** Leads to a page of its own by a form: what is secret never stands in this one, and nothing that follows links gets it. */
export function RevealForm({ id, user }: { readonly id: string; readonly user: PageUser }) {
  return (
    <form method="post" action={`${actionPath(id)}/reveal`}>
      <FormToken user={user} />
      <div class="buttons">
        <Button look="plain">Show secrets</Button>
      </div>
    </form>
  );
}
