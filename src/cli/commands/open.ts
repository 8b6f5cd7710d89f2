import { type CliCommand, EXIT } from "../command.ts";
import { findActionId } from "../find-action.ts";
import { addServiceCommand, type Session, withSession } from "../session.ts";

/** `outgate open`: the page of an action, or the console, in the browser of this machine. */
export function addOpen(program: CliCommand): void {
  addServiceCommand(
    program,
    "open [id]",
    "print the URL of an action's page, or of the console, and open it in a browser",
  )
    .option("--print", "only print the URL")
    .examples([
      ["outgate open 01m82and0zenh", "the page of this action"],
      ["outgate open", "what awaits approval"],
    ])
    .runs(withSession(openPage));
}

async function openPage(session: Session, { print }: { readonly print?: boolean }, given?: string): Promise<number> {
  const { io, url } = session;
  const path = given === undefined ? "/" : `/actions/${encodeURIComponent(await findActionId(session, given))}`;
  const page = url + path;
  session.say(page);
  // In a pipe the URL is what is wanted.
  if (print === true || !io.isTty) return EXIT.ok;
  const isOpened = (await io.openBrowser?.(page)) === true;
  if (!isOpened) io.err("No browser could be opened here.\n");
  return EXIT.ok;
}
