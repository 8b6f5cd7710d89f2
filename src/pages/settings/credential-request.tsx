/** @jsxImportSource hono/jsx */
import { type CredentialRequestStatus, statusOfRequest } from "../../core/credential.ts";
import { describeActor, mayDo, roleViewer } from "../../core/roles.ts";
import {
  CredentialRequestParams,
  type CredentialRequestJson,
  DeclineCredentialBody,
  serializeRequest,
} from "../../credentials/requests.ts";
import type { Person } from "../../http/session.ts";
import { maskText } from "../../receipts/masking.ts";
import { Icon } from "../../ui/icons.tsx";
import { Layout, render } from "../../ui/layout.tsx";
import {
  ago,
  Card,
  Dot,
  Facts,
  Name,
  Notice,
  PageHead,
  Problem,
  sentence,
  time,
  until,
  UntrustedBlock,
  untrusted,
  actorName,
} from "../../ui/parts.tsx";
import { agentKeys, CREDENTIAL_FORM, credentialPath } from "./credentials.tsx";
import { EMPTY_FORM, type FormState } from "../frame/forms.ts";
import { type ById, personPages, type PageDeps } from "../frame/page-deps.ts";
import { keyBoxes } from "./keys.tsx";
import { schemaForm } from "../frame/schema-form.tsx";
import { visibleText } from "../../receipts/visible-text.ts";

export const CREDENTIAL_REQUESTS_PATH = "/approvals/credentials";

const DECLINE_FORM = schemaForm(DeclineCredentialBody, {
  reason: { type: "lines", hint: "Optional. The agent reads it." },
});

/** A request as this person sees it. All of it is the agent's text. */
export interface SeenCredentialRequest extends CredentialRequestJson {
  readonly agent: string;
  readonly createdAt: Date;
  readonly expiresAt: Date;
}

const STATES = {
  pending: { tone: "wait", children: "Waits for an owner" },
  granted: { tone: "good", children: "Granted" },
  declined: { tone: "bad", children: "Declined" },
  expired: { tone: "still", children: "Expired: no one answered it" },
  cancelled: { tone: "still", children: "Over: its key has ended" },
} as const satisfies Record<CredentialRequestStatus, Parameters<typeof Dot>[0]>;

/** The requests that are waiting for an owner, oldest first. */
export async function pendingRequests(
  { credentialRequests, clock }: PageDeps,
  { caller }: Person,
): Promise<readonly SeenCredentialRequest[]> {
  const pending = await credentialRequests.pending(caller);
  return pending.map((one) => seenBy(caller, serializeRequest(caller, one, clock.now())));
}

/** Masks whatever looks like a secret in the agent's words, as for everybody who decides. */
function seenBy(caller: Person["caller"], request: CredentialRequestJson): SeenCredentialRequest {
  const viewer = roleViewer(caller.role);
  return {
    ...request,
    reason: maskText(request.reason, viewer),
    ...(request.paths !== undefined && { paths: request.paths.map((path) => maskText(path, viewer)) }),
    agent: maskText(describeActor(request.created_by).name, viewer),
    createdAt: new Date(request.created_at),
    expiresAt: new Date(request.expires_at),
  };
}

/** A row of the inbox. Links to the page of the request. */
export function CredentialRow({ request, now }: { readonly request: SeenCredentialRequest; readonly now: Date }) {
  const { id, host, agent, createdAt } = request;
  return (
    <li id={id} class="inbox-row">
      <span class="inbox-choose inbox-kind">
        <Icon name="keys" />
      </span>
      <a class="inbox-open" href={`${CREDENTIAL_REQUESTS_PATH}/${id}`} data-item="">
        <span class="request-name">Credential for {untrusted(host)}</span>
        <span class="inbox-age">{ago(createdAt, now)}</span>
        <span class="inbox-asker">{untrusted(agent)} asks for a secret</span>
      </a>
    </li>
  );
}

/** The refused forms. */
type Refused = Readonly<Partial<Record<"grant" | "decline", FormState>>>;

/** The page of one request. Owners also get the form of a credential, filled in with the agent's suggestions. */
async function requestPage(deps: PageDeps, user: Person, id: string, refused: Refused): Promise<string> {
  const { caller } = user;
  const now = deps.clock.now();
  const found = await deps.credentialRequests.find(caller, id);
  const request = seenBy(caller, serializeRequest(caller, found, now));
  const isOpen = statusOfRequest(found, now) === "pending";
  const mayAnswer = isOpen && mayDo(user.role, "manage");
  return render(
    <Layout title={`Credential for ${visibleText(request.host)}`} nav="Approvals" user={user} now={now}>
      <PageHead
        title={<>Credential for {untrusted(request.host)}</>}
        back={{ href: "/approvals", name: "Approvals" }}
        intro={sentence`${<Name text={request.agent} />} asks for a secret that calls are sent with.`}
      />
      {requestFacts(request, mayDo(user.role, "manage"), now)}
      {mayAnswer ? (
        await answerForms(deps, user, request, refused)
      ) : (
        <>
          <Problem text={(refused.grant ?? refused.decline)?.problem} />
          {isOpen ? <Notice tone="wait">Only an owner of the account can answer it.</Notice> : null}
        </>
      )}
    </Layout>,
  );
}

/** The facts of a request. Only owners get a link to the credential. */
function requestFacts(request: SeenCredentialRequest, isOwner: boolean, now: Date) {
  const { status, host, reason, name, kind, paths, methods, credential, decision_reason: why } = request;
  const decidedAt = request.decided_at === null ? null : new Date(request.decided_at);
  return (
    <section class="card" aria-label="Request">
      <Facts
        rows={[
          ["State", <Dot {...STATES[status]} />],
          ["Host", untrusted(host)],
          ["Reason", <UntrustedBlock label="Reason, in the words of the agent" text={reason} isOpen />],
          ["Suggested name", untrusted(name)],
          ["Suggested kind", untrusted(kind)],
          ["Suggested paths", untrusted(paths?.join(", "))],
          ["Suggested methods", methods === undefined ? null : methods.join(", ")],
          ["Asked", ago(request.createdAt, now)],
          ["Expires", status === "pending" ? until(request.expiresAt, now) : null],
          [
            "Answered",
            decidedAt === null || request.decided_by === null
              ? null
              : sentence`${time(decidedAt)} by ${actorName(request.decided_by)}`,
          ],
          ["Reason", untrusted(why)],
          [
            "Credential",
            credential !== null && isOwner ? (
              <a href={credentialPath(credential)}>
                <Name text={credential} />
              </a>
            ) : (
              credential
            ),
          ],
        ]}
      />
      {host.split(".").some((label) => label.startsWith("xn--")) ? (
        <Notice tone="bad">The host contains letters that look like others. Compare it with the host you know.</Notice>
      ) : null}
    </section>
  );
}

async function answerForms(deps: PageDeps, user: Person, request: SeenCredentialRequest, refused: Refused) {
  const { id, host, name, kind, paths, methods, agent, key_id: keyId } = request;
  const [all, keys] = await Promise.all([deps.credentialService.list(user.caller), agentKeys(deps, user)]);
  const known = all.filter(({ hosts }) => hosts.includes(host));
  const path = `${CREDENTIAL_REQUESTS_PATH}/${id}`;
  const { grant = CREDENTIAL_FORM.filledWith({ hosts: [host], name, kind, paths, methods }), decline = EMPTY_FORM } =
    refused;
  // The key that asked gets the credential anyway.
  const others = keys.filter(({ id: other }) => other !== keyId);
  return (
    <>
      {known.length === 0 ? null : (
        <Notice tone="wait">
          There {known.length === 1 ? "is a credential" : "are credentials"} for this host:{" "}
          {known.map((one, at) => (
            <>
              {at === 0 ? "" : ", "}
              <a href={credentialPath(one.name)}>{one.name}</a>
            </>
          ))}
          . You can let the agent use it there, and decline here.
        </Notice>
      )}
      <Card id="grant" title="Fill in the credential">
        <p class="quiet">
          {untrusted(agent)} can use it at once, and learns only its name. What it has suggested is filled in: check
          where the secret may go.
        </p>
        <CREDENTIAL_FORM.Form
          user={user}
          action={`${path}/grant`}
          state={grant}
          specs={{ keys: { label: "Other agents that may use it", boxes: keyBoxes(others, grant) } }}
          submit="Grant"
        />
      </Card>
      <Card id="decline" title="Or decline">
        <DECLINE_FORM.Form
          user={user}
          action={`${path}/decline`}
          state={decline}
          submit="Decline"
          look="bad"
          cancel="/approvals"
        />
      </Card>
    </>
  );
}

export function credentialRequestPages(deps: PageDeps) {
  const { credentialRequests, answer } = deps;
  const path = `${CREDENTIAL_REQUESTS_PATH}/:id`;
  const hooks = { params: CredentialRequestParams };
  const answerGrant = answer<ById>(
    async ({ person, params: { id }, form }) => {
      await credentialRequests.grant(person.caller, id, CREDENTIAL_FORM.check(form));
      return `${CREDENTIAL_REQUESTS_PATH}/${id}`;
    },
    ({ person, params: { id } }, grant) => requestPage(deps, person, id, { grant }),
  );
  const answerDecline = answer<ById>(
    async ({ person, params: { id }, form }) => {
      const { reason = null } = DECLINE_FORM.check(form);
      await credentialRequests.decline(person.caller, id, reason);
      return `${CREDENTIAL_REQUESTS_PATH}/${id}`;
    },
    ({ person, params: { id } }, decline) => requestPage(deps, person, id, { decline }),
  );
  return personPages(deps)
    .get(path, ({ person, params: { id } }) => requestPage(deps, person, id, {}), hooks)
    .post(`${path}/grant`, answerGrant, hooks)
    .post(`${path}/decline`, answerDecline, hooks);
}
