/** @jsxImportSource hono/jsx */
import type { DryRunDifference, DryRunJson, RuleEffect } from "../../rules/schemas.ts";
import { actionPath } from "../../ui/layout.tsx";
import { ago, Card, Dot, Name, sentence, type Tone, untrusted } from "../../ui/parts.tsx";
import { counted, number } from "../../ui/text.ts";
import { List } from "../frame/list.tsx";

const FATES: Readonly<Record<RuleEffect, string>> = { allow: "Sent", hold: "Held", refuse: "Refused" };

export const EFFECT_TONES: Readonly<Record<RuleEffect, Tone>> = { allow: "good", hold: "wait", refuse: "bad" };

/** Rows shown. Further ones are only counted. */
const ROWS_MAX = 8;

/** Shows beside a rule's form what the rules would have done with it. */
export function TriedRule({ result, now }: { readonly result: DryRunJson; readonly now: Date }) {
  const { looked_at: lookedAt, from, allowed, held, refused, undecidable, unknown, uncertain, differing } = result;
  if (from === null) {
    return (
      <Card id="tried" title="On the newest requests">
        <p>There are no requests yet to try it on.</p>
      </Card>
    );
  }
  const rows = result.differences.slice(0, ROWS_MAX);
  const notes = [
    undecidable > 0 && `Held because a rule can't be decided: ${number(undecidable)}. They lack what it names.`,
    uncertain > 0 &&
      `Not certain: ${counted(uncertain, "request")} under a budget or count, to which older requests, retries and failed calls may have added.`,
    unknown > 0 && `Not known: ${counted(unknown, "request")} that a rule refused then. They are not stored.`,
  ];
  return (
    <Card id="tried" title={`On the newest ${counted(lookedAt, "request")}`}>
      <p>
        {sentence`With this rule, ${number(allowed)} would have been sent, ${number(held)} held and ${number(refused)} refused. The oldest is from ${ago(new Date(from), now)}.`}
        {held === 0 ? null : ` ${decidedText(result)}`}
      </p>
      {notes.map((note) => (note === false ? null : <p class="quiet">{note}</p>))}
      {differing === 0 ? (
        <p>The rules in force do the same.</p>
      ) : (
        <List
          title="What differs from the rules in force"
          rows={rows}
          columns={[
            ["Request", (row) => requestCell(row, now), "wide"],
            [
              "With this rule",
              // "Held, not sent", if the rules in force would send it.
              ({ in_force: inForce, tried }) => (
                <Dot tone={EFFECT_TONES[tried]}>{`${FATES[tried]}, not ${FATES[inForce].toLowerCase()}`}</Dot>
              ),
            ],
            ["Rule", ({ rule }) => (rule === null ? "none" : <Name text={rule} />)],
          ]}
        />
      )}
      {differing > rows.length ? (
        <p class="quiet">{`${counted(differing - rows.length, "more request")} would have been handled differently.`}</p>
      ) : null}
    </Card>
  );
}

/** "Of those held, people had approved 9 and rejected 2, and 1 had no decision." Calls without one were mostly sent directly. */
function decidedText({ held_approved: approved, held_rejected: rejected, held_undecided: undecided }: DryRunJson) {
  const open = undecided === 0 ? "" : `, and ${number(undecided)} had no decision`;
  return `Of those held, people had approved ${number(approved)} and rejected ${number(rejected)}${open}.`;
}

function requestCell({ id, title, method, url, created_at: at, reason }: DryRunDifference, now: Date) {
  const call = untrusted(`${method} ${url}`);
  return (
    <div>
      <a href={actionPath(id)}>{title === undefined ? call : <Name text={title} />}</a>
      <span class="says">
        {title === undefined ? null : <>{call} · </>}
        {ago(new Date(at), now)}
      </span>
      {reason === null ? null : <span class="says">{untrusted(reason)}</span>}
    </div>
  );
}
