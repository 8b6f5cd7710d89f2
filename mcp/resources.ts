import {
  type ListResourcesResult,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  type Resource,
  ResourceNotFoundError,
  type ResourceTemplateType,
} from "@modelcontextprotocol/server";
import type { ActionService } from "../src/actions/desk.ts";
import { checkList, pageJson } from "../src/contract/page.ts";
import type { Action } from "../src/domain/action.ts";
import type { Caller } from "../src/domain/caller.ts";
import { asTold, type TellDeps } from "./results.ts";
import { createDescribe, type DescribeDeps } from "./describe.ts";
import { actionIn, ACTIONS_URI, uriOf } from "./uris.ts";

export interface ResourceDeps extends TellDeps, DescribeDeps {
  readonly actionService: Pick<ActionService, "get" | "list" | "timeline">;
}

const mimeType = "application/json";

/** Addresses of every action that the account has. */
export const TEMPLATES: readonly ResourceTemplateType[] = [
  {
    name: "action",
    title: "An action",
    uriTemplate: `${ACTIONS_URI}/{id}`,
    description: "One HTTP call: what was asked for, where it is, and how it ended.",
    mimeType,
  },
];

/** Actions as resources: what the tools get and list show. */
export function createResources(deps: ResourceDeps) {
  const { actionService, show } = deps;
  const describe = createDescribe(deps);
  const newest = (caller: Caller) => actionService.list(caller, checkList({}));

  const textOf = async (caller: Caller, uri: string): Promise<string | null> => {
    if (uri === ACTIONS_URI) {
      const { actions, before } = await newest(caller);
      const listed = actions.map((action) => show.listed(caller, action));
      return pageJson(listed, before);
    }
    const id = actionIn(uri);
    return id === null
      ? null
      : describe({ caller: () => caller, questions: null }, await actionService.get(caller, id));
  };

  return {
    /** The page of the newest actions, and each of them. */
    async list(caller: Caller): Promise<ListResourcesResult> {
      const { actions } = await newest(caller).catch(refuse(deps, ACTIONS_URI));
      const page = { uri: ACTIONS_URI, name: "actions", title: "Newest actions", mimeType };
      return { resources: [page, ...actions.map(resourceOf)] };
    },

    /** Throws the protocol's own error where there is nothing, also for what another account has. */
    async read(caller: Caller, uri: string): Promise<ReadResourceResult> {
      const text = await textOf(caller, uri).catch(refuse(deps, uri));
      if (text === null) throw new ResourceNotFoundError(uri);
      return { contents: [{ uri, mimeType, text }] };
    },
  };
}

function resourceOf({ id, method, host, status }: Action): Resource {
  return { uri: uriOf(id), name: id, title: `${method} ${host}: ${status}`, mimeType };
}

/** Any error in the words of the protocol, with our code beside them. */
function refuse(deps: TellDeps, uri: string): (error: unknown) => never {
  return (error) => {
    const { code, message } = asTold(error, "resources", deps);
    if (code === "not_found") throw new ResourceNotFoundError(uri);
    throw new ProtocolError(ProtocolErrorCode.InternalError, message, { code });
  };
}
