import type { ChangeChannel, Channel, CreateChannel } from "../../client/openapi.ts";
import { type CliCommand, given, wholeNumber } from "../command.ts";
import { REMIND_MINUTES_MAX, REMIND_MINUTES_MIN } from "../../core/limits.ts";
import { EXIT, UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";

const REMIND = `repeat the question once, ${REMIND_MINUTES_MIN} to ${REMIND_MINUTES_MAX}`;

export function addChannelCommands(program: CliCommand): void {
  const channels = program.service("channels", "show or set where people are asked for approval (owner key)");
  channels
    .service("list", "show the channels", { isDefault: true })
    .lines((client) => client.listChannels(), channelText, "There are no channels.");
  channels
    .service("add <name>", "add a channel: by --mail, --slack or --webhook")
    .option("--mail <addresses>", "addresses, separated by commas")
    .option("--slack <url>", "the URL of an incoming webhook of Slack")
    .option("--webhook <url>", "a URL that gets a signed POST")
    .member("remind_after_minutes", "--remind-after <minutes>", REMIND, wholeNumber("remind-after"))
    .prints(async ({ client, print }, { mail, slack, webhook, ...more }: AddOptions, name) => {
      const targets: readonly Pick<CreateChannel, "kind" | "to" | "url">[] = [
        ...(mail === undefined ? [] : [{ kind: "mail" as const, to: addressesIn(mail) }]),
        ...(slack === undefined ? [] : [{ kind: "slack" as const, url: slack }]),
        ...(webhook === undefined ? [] : [{ kind: "webhook" as const, url: webhook }]),
      ];
      const [target] = targets;
      if (target === undefined || targets.length > 1) {
        throw new UsageError("channels add takes one of --mail, --slack and --webhook.");
      }
      print(await client.createChannel({ name, ...target, ...more }), channelText);
    });
  channels
    .service("set <id>", "change a channel, or switch it off; what is not named stays")
    .option("--name <name>", "its new name")
    .member("to", "--mail <addresses>", "for mail: new addresses, separated by commas", addressesIn)
    .option("--url <url>", "for slack and webhook: a new URL")
    .member("remind_after_minutes", "--remind-after <minutes>", `${REMIND}; 0: never`, wholeNumber("remind-after", 0))
    .option("--on", "switch it on")
    .option("--off", "switch it off: nothing is sent")
    .prints(async ({ client, print }, { on, off, ...more }: SetOptions, id) => {
      if (on === true && off === true) throw new UsageError("channels set takes --on or --off.");
      const change = { ...more, ...given({ enabled: off === true ? false : on }) };
      if (Object.keys(change).length === 0) throw new UsageError("Say what to change.");
      print(await client.changeChannel(id, change), channelText);
    });
  channels
    .service("remove <id>", "remove a channel")
    .calls(({ client, done }, _options, id) => done(client.removeChannel(id), `${id} is removed.`));
  channels.service("test <id>", "send a test message").prints(async ({ client, print }, _options, id) => {
    const { delivered, error } = await client.testChannel(id);
    print({ delivered, error }, () => (delivered ? "The test message was delivered." : visible(error ?? "")));
    return delivered ? EXIT.ok : EXIT.failed;
  });
}

interface AddOptions extends Pick<CreateChannel, "remind_after_minutes"> {
  readonly mail?: string;
  readonly slack?: string;
  readonly webhook?: string;
}

interface SetOptions extends Omit<ChangeChannel, "enabled"> {
  readonly on?: boolean;
  readonly off?: boolean;
}

function addressesIn(text: string): string[] {
  return text.split(",").map((address) => address.trim());
}

function channelText({ id, name, kind, to, url, remind_after_minutes: minutes, enabled }: Channel): string {
  const reminder = minutes === null ? "" : `, reminds after ${minutes} min`;
  const target = kind === "mail" ? (to ?? []).join(", ") : (url ?? "its URL can't be read");
  return `${id}  ${visible(name)}: ${kind} to ${visible(target)}${reminder}${enabled ? "" : ", off"}`;
}
