/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Pause } from "../../core/pause.ts";
import { EmptyState, Menu } from "../../ui/controls.tsx";
import { Button, PostForm } from "../../ui/form.tsx";
import { Icon, type IconName } from "../../ui/icons.tsx";
import { PAUSES_PATH } from "../../ui/layout.tsx";
import { ago, actorName } from "../../ui/parts.tsx";
import type { PageUser } from "../../ui/text.ts";

/**
 * A column: its head, which phones show before each value; a row's cell; and its look. Numbers align right, buttons go to the
 * end of the row, the main column is never narrow, and a wide one takes the remaining space.
 */
type Column<Row> = readonly [head: string, cell: (row: Row) => Child, as?: "number" | "buttons" | "main" | "wide"];

export interface ListProps<Row> {
  /** The title, which only screen readers get if the list has no id. */
  readonly title: string;
  readonly id?: string;
  readonly intro?: Child;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  /** The buttons at the end of a row. */
  readonly actions?: ((row: Row) => Child) | undefined;
  /** Shown in place of an empty list. */
  readonly empty?: { readonly icon: IconName; readonly title: string; readonly text: Child };
  readonly children?: Child;
}

/** A list in the settings: a dense table. On phones each row is a block of names and values, so nothing scrolls sideways. */
export function List<Row>(props: ListProps<Row>) {
  const { title, id, intro, rows, actions, empty } = props;
  const columns = actions === undefined ? props.columns : [...props.columns, ["", actions, "buttons"] as const];
  if (rows.length === 0 && empty !== undefined) {
    return (
      <EmptyState icon={empty.icon} title={empty.title}>
        <p>{empty.text}</p>
      </EmptyState>
    );
  }
  const table = (
    <table class="data">
      <caption class="visually-hidden">{title}</caption>
      <thead>
        <tr>
          {columns.map(([head, , as]) => (
            <th scope="col" class={as}>
              {head === "" ? <span class="visually-hidden">What you can do</span> : head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr>
            {columns.map(([head, cell, as]) => (
              <td class={as} data-label={head === "" ? undefined : head}>
                <div>{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
  if (id === undefined) return table;
  return (
    <section class="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {intro === undefined ? null : <p class="quiet">{intro}</p>}
      {table}
      {props.children}
    </section>
  );
}

interface RowActionProps {
  readonly user: PageUser;
  readonly path: string;
  readonly fields?: readonly (readonly [name: string, value: string])[];
  readonly look?: "bad" | "plain" | "main";
  readonly name: string;
  readonly of?: Child;
  /** The question that scripts ask first. */
  readonly question?: string | undefined;
}

export function RowAction({ user, path, fields = [], look = "bad", name, of, question }: RowActionProps) {
  return (
    <PostForm user={user} action={path} fields={fields}>
      <Button look={look} question={question}>
        {name}
        <OfRow of={of} />
      </Button>
    </PostForm>
  );
}

export function RowLink({ href, name, of }: Pick<RowActionProps, "name" | "of"> & { readonly href: string }) {
  return (
    <a href={href}>
      {name}
      <OfRow of={of} />
    </a>
  );
}

/** Completes a button's name with its row, for screen readers. */
export function OfRow({ of }: Pick<RowActionProps, "of">) {
  return of === undefined ? null : <span class="visually-hidden"> {of}</span>;
}

interface RowMenuProps {
  readonly of: string;
  readonly items: readonly Child[];
  /** The last item, which ends something; null for none. */
  readonly ends?: Child;
}

/** A row's further actions, behind three dots. */
export function RowMenu({ of, items, ends = null }: RowMenuProps) {
  const label = (
    <>
      <Icon name="more" />
      <span class="visually-hidden">More for {of}</span>
    </>
  );
  return (
    <span class="more-menu">
      <Menu isAtEnd label={label}>
        {items.map((item) => (
          <li>{item}</li>
        ))}
        {ends === null ? null : <li class="ends">{ends}</li>}
      </Menu>
    </span>
  );
}

/** The item of a row that can be paused. The query names the row on the page of pauses. */
export function pauseOrResume(user: PageUser, pause: Pick<Pause, "id"> | undefined, query: string, of: string) {
  if (pause === undefined) return <RowLink href={`${PAUSES_PATH}${query}`} name="Pause" of={of} />;
  return <RowAction user={user} path={`${PAUSES_PATH}/${pause.id}/resume`} look="plain" name="Resume" of={of} />;
}

/** Says when and by whom a row was added. */
export function AddedBy(props: { readonly what?: string; readonly at: Date; readonly by: string; readonly now: Date }) {
  const { what = "Added", at, by, now } = props;
  return (
    <span class="says">
      {what} {ago(at, now)} by {actorName(by)}
    </span>
  );
}

/** A name with a tag; null for no tag. */
export function Tagged({ name, tag }: { readonly name: Child; readonly tag: string | null }) {
  return (
    <>
      {name} {tag === null ? null : <span class="tag">{tag}</span>}
    </>
  );
}

/** How long ago a time was, or `none` if it is null. */
export function agoOr(at: Date | null, now: Date, none?: string) {
  return at === null ? <None>{none}</None> : ago(at, now);
}

export function None({ children = "–" }: { readonly children?: Child }) {
  return <span class="none">{children}</span>;
}
