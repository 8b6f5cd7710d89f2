/** @jsxImportSource hono/jsx */
import { describeActor } from "../../core/roles.ts";
import { GrantParams, type NamedGrant } from "../../grants/grants.ts";
import type { Person } from "../../http/session.ts";
import { actionPath, render } from "../../ui/layout.tsx";
import { Name, sentence, time, until, untrusted } from "../../ui/parts.tsx";
import { number } from "../../ui/text.ts";
import { unlessGone } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { memberName } from "./grant-form.tsx";
import { List, None, RowAction } from "../frame/list.tsx";
import { SETTINGS_PATHS, SettingsPage } from "../frame/settings-frame.tsx";

const GRANTS_PATH = SETTINGS_PATHS.grants;

const END_PATH = `${GRANTS_PATH}/:id/end`;

function grantsPage(user: Person, grants: readonly NamedGrant[], now: Date): string {
  return render(
    <SettingsPage
      user={user}
      section="Grants"
      intro="With an approval, people can allow more calls like it for a while: they are sent without asking. Only the listed fields may differ. When you end a grant, such calls are held again, including those that it has let through but that are not sent yet."
      now={now}
    >
      <List
        title="Grants"
        rows={grants}
        columns={[
          [
            "Key",
            ({ keyName, createdBy, actionId }) => (
              <>
                <Name text={keyName} />
                <span class="says">
                  Made by {untrusted(describeActor(createdBy).name)} with{" "}
                  <a href={actionPath(actionId)}>the approval of an action</a>
                </span>
              </>
            ),
            "wide",
          ],
          ["May differ", variesCell],
          ["Used", usedCell],
          ["Ends", ({ expiresAt }) => until(expiresAt, now)],
        ]}
        actions={({ id, keyName, createdAt }) => (
          <RowAction
            user={user}
            path={`${GRANTS_PATH}/${id}/end`}
            name="End"
            of={sentence`the grant of ${untrusted(keyName)} of ${time(createdAt)}`}
          />
        )}
        empty={{
          icon: "check",
          title: "No grant is in force",
          text: "You are asked about each held call. When you approve one, you can allow more calls like it for a while.",
        }}
      />
    </SettingsPage>,
  );
}

function usedText({ used, calls }: NamedGrant): string {
  return `${number(used)} of ${number(calls)} ${calls === 1 ? "call" : "calls"} used`;
}

function usedCell(grant: NamedGrant) {
  if (grant.used < grant.calls) return usedText(grant);
  return (
    <>
      {usedText(grant)}
      <span class="says">Used up. End it to stop calls that have not been sent yet.</span>
    </>
  );
}

function variesCell({ vary, max }: NamedGrant) {
  if (vary.length === 0) return <None>All is equal</None>;
  return (
    <>
      {vary.map((path, at) => (
        <>
          {at === 0 ? "" : ", "}
          {untrusted(memberName(path))}
          {max[path] === undefined ? null : ` ≤ ${max[path]}`}
        </>
      ))}
    </>
  );
}

export function grantPages(deps: PageDeps) {
  const { grantService, answer, clock } = deps;
  const end = answer<ById>(async ({ person, params: { id } }) => {
    await unlessGone(grantService.end(person.caller, id));
    return GRANTS_PATH;
  });
  return personPages(deps, { [END_PATH]: GRANTS_PATH })
    .get(GRANTS_PATH, async ({ person }) =>
      grantsPage(person, await grantService.listNamed(person.caller), clock.now()),
    )
    .post(END_PATH, end, { params: GrantParams });
}
