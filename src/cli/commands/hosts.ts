import type { PutDefaults, PutHostSettings } from "../../client/openapi.ts";
import { type CliCommand, wholeNumber } from "../command.ts";
import { CALLS_PER_SECOND_MAX, CALLS_PER_SECOND_MIN } from "../../core/limits.ts";
import { UsageError } from "../io.ts";
import { visible } from "../../observability/terminal.ts";
import { addRetryOptions, settingsParts } from "../retry-options.ts";

export function addHostCommands(program: CliCommand): void {
  const hosts = program.service("hosts", "show or set the timeout, retries and limits of hosts (set: owner key)");
  hosts
    .service("list", "show what is set for hosts, and for the account", { isDefault: true })
    .prints(async ({ client, print }) =>
      print(await client.listHosts(), ({ data, defaults }) => {
        const lines = data.map((row) => `${visible(row.host)}: ${settingsText(row)}`);
        const none = lines.length === 0 ? ["No host has settings of its own."] : [];
        return [`All hosts: ${settingsText(defaults)}`, ...lines, ...none].join("\n");
      }),
    );
  addRetryOptions(hosts.service("set <host>", "set everything of a host: what is not named is removed"))
    .option(
      "--max-per-second <n>",
      `most calls a second, ${CALLS_PER_SECOND_MIN} to ${CALLS_PER_SECOND_MAX}`,
      decimal("max-per-second"),
    )
    .option("--max-concurrent <n>", "most calls at a time", wholeNumber("max-concurrent"))
    .member(
      "default_credential",
      "--credential <name>",
      "the credential of calls that name none, for the keys that may use it",
    )
    .prints(async ({ client, print }, settings: PutHostSettings, host) => {
      print(await client.putHost(host, settings), (row) => `${visible(row.host)}: ${settingsText(row)}.`);
    });
  hosts
    .service("remove <host>", "remove what is set for a host")
    .calls(({ client, done }, _options, host) => done(client.removeHost(host), `${host} has no settings.`));
  addRetryOptions(
    hosts.service("defaults", "set what applies to all hosts of the account: what is not named is removed"),
  ).prints(async ({ client, print }, settings: PutDefaults) => {
    print(await client.putDefaults(settings), (defaults) => `All hosts: ${settingsText(defaults)}.`);
  });
}

function settingsText(settings: PutDefaults | PutHostSettings): string {
  const { max_per_second: perSecond, max_concurrent: atATime, default_credential: name }: PutHostSettings = settings;
  const parts = [
    ...settingsParts(settings),
    ...(perSecond === undefined ? [] : [`${perSecond} calls a second`]),
    ...(atATime === undefined ? [] : [`${atATime} calls at a time`]),
    ...(name === undefined ? [] : [`by default with the credential ${visible(name)}`]),
  ];
  return parts.length === 0 ? "nothing is set" : parts.join("; ");
}

function decimal(name: string): (text: string) => number {
  return (text) => {
    if (/^\d{1,9}(\.\d{1,9})?$/.test(text)) return Number(text);
    throw new UsageError(`--${name} takes a number, not ${JSON.stringify(text)}.`);
  };
}
