import { bodyCheck } from "../api/schema-helpers.ts";
import { DomainError, type ErrorCode } from "../core/domain-error.ts";
import { ChannelParams } from "../channels/routes.ts";
import { CreateChannel } from "../channels/schemas.ts";
import type { ChannelService } from "../channels/service.ts";
import { showFormAgain } from "../http/errors.ts";
import type { Form } from "../http/request.ts";
import { page, seeOther } from "../http/response.ts";
import { type AnswerById, createPersonRoutes, type Flash, type Person, type PersonRouteDeps } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { CHANNEL_FIELDS, type ChannelFields, CHANNELS_PATH, channelsPage, type ShownTest } from "./channels.tsx";

interface ChannelPageDeps extends PersonRouteDeps {
  readonly channelService: ChannelService;
  readonly flash: Flash;
  readonly clock: Pick<Clock, "now">;
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);

const checkCreate = bodyCheck(CreateChannel);

/** The page of where the account asks for approval, with the same service as /v1/channels. It works without script. */
export function channelPages(deps: ChannelPageDeps) {
  const { channelService, personOf, formOf, flash, clock } = deps;
  const html = async (user: Person, more: Shown = {}) =>
    channelsPage({ user, channels: await channelService.list(user.caller), now: clock.now(), ...more });
  const test: AnswerById = async ({ context, person, params: { id } }) => {
    await formOf(context, person);
    try {
      const { error } = await channelService.test(person.caller, id);
      const tested: ShownTest = { id, error, atMs: clock.now().getTime() };
      return flash.redirect(person, CHANNELS_PATH, tested);
    } catch (error) {
      return showFormAgain(context, error, REFUSED, (problem) => html(person, { problem }));
    }
  };
  const switchIt: AnswerById = async ({ context, person, params: { id } }) => {
    const enabled = (await formOf(context, person)).get("enabled") === "true";
    await channelService.change(person.caller, id, { enabled });
    return seeOther("own", CHANNELS_PATH);
  };
  const remove: AnswerById = async ({ context, person, params: { id } }) => {
    await formOf(context, person);
    // Somebody else may have removed it already.
    await channelService.remove(person.caller, id).catch((error: unknown) => {
      if (!(error instanceof DomainError) || error.code !== "not_found") throw error;
    });
    return seeOther("own", CHANNELS_PATH);
  };
  return createPersonRoutes(personOf)
    .get(CHANNELS_PATH, async ({ context, person }) => {
      // Safe: only the test of a channel writes a flash for this path.
      const tested = flash.read(context, person) as ShownTest | null;
      return page("own", await html(person, { tested }));
    })
    .post(CHANNELS_PATH, async ({ context, person }) => {
      const form = await formOf(context, person);
      try {
        await channelService.add(person.caller, checkCreate(valueOf(form)));
      } catch (error) {
        return showFormAgain(context, error, REFUSED, (problem) => html(person, { problem, typed: typedIn(form) }));
      }
      return seeOther("own", CHANNELS_PATH);
    })
    .post(`${CHANNELS_PATH}/:id/test`, test, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/switch`, switchIt, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/remove`, remove, { params: ChannelParams });
}

interface Shown {
  readonly typed?: ChannelFields;
  readonly problem?: string;
  readonly tested?: ShownTest | null;
}

function typedIn(form: Form): ChannelFields {
  const entries = CHANNEL_FIELDS.map((name) => [name, (form.get(name) ?? "").trim()]);
  // Safe: it has every field.
  return Object.fromEntries(entries) as ChannelFields;
}

/** The fields as the body of a request; what is no number stays text, which the check refuses. */
function valueOf(form: Form): object {
  const { name, kind, to, url, remind_after_minutes: remind } = typedIn(form);
  const addresses = to.split(/[\s,;]/).filter((address) => address !== "");
  return {
    name,
    kind,
    ...(addresses.length > 0 && { to: addresses }),
    ...(url !== "" && { url }),
    ...(remind !== "" && { remind_after_minutes: /^\d{1,9}$/.test(remind) ? Number(remind) : remind }),
  };
}
