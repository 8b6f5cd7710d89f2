import type { ErrorCode } from "../core/domain-error.ts";
import { ChannelParams } from "../channels/routes.ts";
import type { ChannelService } from "../channels/service.ts";
import { page } from "../http/response.ts";
import { createPersonRoutes, type Flash, type Person, type PersonRouteDeps } from "../http/session.ts";
import type { Clock } from "../core/clock.ts";
import { CHANNEL_FORM, CHANNELS_PATH, channelsPage, type ShownTest } from "./channels.tsx";
import { answerForm, type ById, type FormState, unlessGone } from "./forms.tsx";

interface ChannelPageDeps extends PersonRouteDeps {
  readonly channelService: ChannelService;
  readonly flash: Flash;
  readonly clock: Pick<Clock, "now">;
}

const REFUSED: ReadonlySet<ErrorCode> = new Set(["validation_error", "rate_limited"]);

/** The page of where the account asks for approval, with the same service as /v1/channels. It works without script. */
export function channelPages({ channelService, personOf, formOf, flash, clock }: ChannelPageDeps) {
  const html = async (user: Person, more: { readonly typed?: FormState; readonly tested?: ShownTest | null }) =>
    channelsPage({ user, channels: await channelService.list(user.caller), now: clock.now(), ...more });
  const again = ({ person }: { readonly person: Person }, typed: FormState) => html(person, { typed });
  const add = answerForm(
    formOf,
    async ({ person, form }) => {
      await channelService.add(person.caller, CHANNEL_FORM.check(form));
      return CHANNELS_PATH;
    },
    again,
    REFUSED,
  );
  const test = answerForm<ById>(
    formOf,
    async ({ person, params: { id } }) => {
      const { error } = await channelService.test(person.caller, id);
      const tested: ShownTest = { id, error, atMs: clock.now().getTime() };
      return flash.redirect(person, CHANNELS_PATH, tested);
    },
    again,
    REFUSED,
  );
  const switchIt = answerForm<ById>(formOf, async ({ person, params: { id }, form }) => {
    await channelService.change(person.caller, id, { enabled: form.get("enabled") === "true" });
    return CHANNELS_PATH;
  });
  const remove = answerForm<ById>(formOf, async ({ person, params: { id } }) => {
    await unlessGone(channelService.remove(person.caller, id));
    return CHANNELS_PATH;
  });
  return createPersonRoutes(personOf)
    .get(CHANNELS_PATH, async ({ context, person }) => {
      // Safe: only the test of a channel writes a flash for this path.
      const tested = flash.read(context, person) as ShownTest | null;
      return page("own", await html(person, { tested }));
    })
    .post(CHANNELS_PATH, add)
    .post(`${CHANNELS_PATH}/:id/test`, test, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/switch`, switchIt, { params: ChannelParams })
    .post(`${CHANNELS_PATH}/:id/remove`, remove, { params: ChannelParams });
}
