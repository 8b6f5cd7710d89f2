/** @jsxImportSource hono/jsx */
import { describeActor } from "../core/roles.ts";
import { GrantParams, type NamedGrant } from "../grants/grants.ts";
import { notFound } from "../core/domain-error.ts";
import type { Person } from "../http/session.ts";
import { PostForm, Submit } from "../ui/form.tsx";
import { actionPath, render } from "../ui/layout.tsx";
import { Facts, Name, sentence, Time, UntilTime, UntrustedText } from "../ui/parts.tsx";
import { number } from "../ui/text.ts";
import { answerForm, type ById, personPages, unlessGone } from "./forms.ts";
import { memberName } from "./grant-form.tsx";
import type { PageDeps } from "./needs.ts";
import { List, None, RowLink, SETTINGS_PATHS, SettingsPage } from "./settings-frame.tsx";

const GRANTS_PATH = SETTINGS_PATHS.grants;

function grantsPage(user: Person, grants: readonly NamedGrant[], now: Date): string {
  return render(
    <SettingsPage
      user={user}
      section="Grants"
      intro="What people have allowed with an approval: for a while, calls like the one that they approved are sent without asking. Everything else about them has to be equal."
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
                  Made by <UntrustedText text={describeActor(createdBy).name} /> with{" "}
                  <a href={actionPath(actionId)}>the approval of an action</a>
                </span>
              </>
            ),
            "wide",
          ],
          ["May differ", variesCell],
          ["Used", usedCell],
          ["Ends", ({ expiresAt }) => <UntilTime at={expiresAt} now={now} />],
        ]}
        actions={({ id, keyName }) => (
          <RowLink href={endPath(id)} name="End" of={sentence`the grant of ${<UntrustedText text={keyName} />}`} />
        )}
        empty={{
          icon: "check",
          title: "No grant is in force",
          text: "Each held call is asked about. When you approve one, you can allow more calls like it for a while.",
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
          <UntrustedText text={memberName(path)} />
          {max[path] === undefined ? null : ` ≤ ${max[path]}`}
        </>
      ))}
    </>
  );
}

function endPath(id: string): string {
  return `${GRANTS_PATH}/${id}/end`;
}

function endPage(user: Person, grant: NamedGrant): string {
  const { id, keyName, expiresAt, createdAt, createdBy, actionId } = grant;
  return render(
    <SettingsPage
      user={user}
      section="Grants"
      title="End this grant?"
      intro="Calls like this are held again at once, on every node. So are calls that it has let through and that have not been sent yet: they wait for a person when their time comes, unless a rule lets them pass."
      back={{ href: GRANTS_PATH, name: "Grants" }}
    >
      <PostForm user={user} action={endPath(id)} class="card">
        <Facts
          rows={[
            ["Key", <Name text={keyName} />],
            ["May differ", variesCell(grant)],
            ["Used", usedText(grant)],
            ["Until", <Time at={expiresAt} />],
            ["Made", <Time at={createdAt} />],
            ["By", <Name text={describeActor(createdBy).name} />],
            ["From", <a href={actionPath(actionId)}>{actionId}</a>],
          ]}
        />
        <Submit look="danger" cancel={GRANTS_PATH}>
          End grant
        </Submit>
      </PostForm>
    </SettingsPage>,
  );
}

export function grantPages(deps: PageDeps) {
  const { grantService, formOf, clock } = deps;
  const end = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await unlessGone(grantService.end(person.caller, id));
    return GRANTS_PATH;
  });
  const hooks = { params: GrantParams };
  return personPages(deps)
    .get(GRANTS_PATH, async ({ person }) =>
      grantsPage(person, await grantService.listNamed(person.caller), clock.now()),
    )
    .get(
      `${GRANTS_PATH}/:id/end`,
      async ({ person, params: { id } }) => {
        const grant = (await grantService.listNamed(person.caller)).find((one) => one.id === id);
        if (grant === undefined) throw notFound("grant, or it has ended");
        return endPage(person, grant);
      },
      hooks,
    )
    .post(`${GRANTS_PATH}/:id/end`, end, hooks);
}
