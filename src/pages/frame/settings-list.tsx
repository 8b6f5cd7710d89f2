/** @jsxImportSource hono/jsx */
import type { Child } from "hono/jsx";
import type { Static, TObject } from "typebox";
import type { Person } from "../../http/session.ts";
import type { Check } from "../../api/check.ts";
import { render } from "../../ui/layout.tsx";
import { Problem } from "../../ui/parts.tsx";
import { type Again, type PersonRequest, EMPTY_FORM, type FormState } from "./forms.ts";
import { personPages, type PageDeps } from "./page-deps.ts";
import type { FieldSpecs, schemaForm } from "./schema-form.tsx";
import { List, type ListProps } from "./list.tsx";
import { SettingsPage, type SettingsPageProps } from "./settings-frame.tsx";

interface ViewRequest<Shown> {
  readonly user: Person;
  readonly now: Date;
  /** The state of the form that adds a row. */
  readonly typed: FormState;
  /** The result of another form; null for none. */
  readonly shown: Shown | null;
}

interface View<Row, Body> extends Omit<ListProps<Row>, "title" | "id" | "intro" | "children"> {
  /** Shown above the list and below the form. */
  readonly above?: Child;
  readonly below?: Child;
  /** Parts of the form's specs that are known only at rendering. */
  readonly specs?: FieldSpecs<Body>;
}

interface SettingsList<Row, Schema extends TObject, Shown extends object> extends Pick<
  SettingsPageProps,
  "section" | "intro"
> {
  readonly path: string;
  /** The result of another form that leads back with a flash for this path. */
  readonly shown?: Check<Shown>;
  /** Reads the rows and says how to show them. */
  readonly view: (request: ViewRequest<Shown>) => Promise<View<Row, Static<Schema>>>;
  readonly form: ReturnType<typeof schemaForm<Schema>>;
  /** Title and button of the form that adds a row. It is folded at first. */
  readonly add: readonly [title: string, button: string];
  /** The most rows allowed, at which the form disappears; by default no limit. */
  readonly max?: number;
  /** The form's first state, perhaps from the link that led here. */
  readonly start?: (search: URLSearchParams) => FormState;
  /** Adds a row. May answer with a page of its own, for example to show a secret. */
  readonly create: (person: Person, body: Static<Schema>) => Promise<unknown>;
}

interface ListState<Shown> {
  readonly typed?: FormState;
  readonly isOpen?: boolean;
  readonly shown?: Shown | null;
  /** Why a row's form was refused. */
  readonly problem?: string;
}

/**
 * A page of the settings with a list and the form that adds a row, which has the schema and the service of the REST route. The
 * page's other forms lead back to it.
 */
export function settingsList<Row, Schema extends TObject, Shown extends object = never>(
  deps: PageDeps,
  list: SettingsList<Row, Schema, Shown>,
) {
  const { path, section, intro, form, max = Infinity, start = () => EMPTY_FORM } = list;
  const [title, button] = list.add;
  const html = async (user: Person, state: ListState<Shown>): Promise<string> => {
    const { typed = start(new URLSearchParams()), isOpen = false, shown = null, problem } = state;
    const now = deps.clock.now();
    const { above, below, specs, ...table } = await list.view({ user, now, typed, shown });
    const count = table.rows.length;
    const isRefused = typed.problem !== null;
    return render(
      <SettingsPage user={user} section={section} intro={intro} now={now}>
        <Problem text={problem} />
        {above}
        <List title={section} {...table} />
        {count < max || isRefused ? (
          <details class="add" id="add" open={isOpen || isRefused || count === 0}>
            <summary>{title}</summary>
            <div class="card">
              <form.Form user={user} action={path} state={typed} specs={specs} submit={button} />
            </div>
          </details>
        ) : null}
        {below}
      </SettingsPage>,
    );
  };
  const ledTo = (done: unknown): Response | string => (done instanceof Response ? done : path);
  const create = deps.answer(
    async ({ person, form: given }) => ledTo(await list.create(person, form.check(given))),
    ({ person }, typed) => html(person, { typed }),
  );
  const routes = personPages(deps)
    .get(path, ({ context, person }) => {
      const typed = start(new URLSearchParams(context.search));
      const shown = list.shown === undefined ? null : deps.flash.read(context, person, list.shown);
      return html(person, { typed, shown, isOpen: context.search !== "" && typed.values.size > 0 });
    })
    .post(path, create);
  return {
    html,
    routes,
    /** Answers a row's form. If it is refused, the list or the form's own page says why. */
    rowForm: <Params,>(
      act: (asked: PersonRequest<Params, Person>) => Promise<unknown>,
      again: Again<Params, Person> = ({ person }, { problem }) => html(person, { problem }),
    ) => deps.answer<Params>(async (asked) => ledTo(await act(asked)), again),
  };
}
