import Type from "typebox";
import { createApiRoutes, jsonBody, operation, pathParams } from "../http/operation.ts";
import { jsonOf, noContent } from "../http/response.ts";
import {
  ChangeChannelBody,
  ChannelId,
  ChannelJson,
  ChannelListJson,
  ChannelTestJson,
  CreateChannel,
  serializeChannel,
} from "./schemas.ts";
import type { ChannelService } from "./service.ts";

interface ChannelRouteDeps {
  readonly channelService: ChannelService;
}

export const ChannelParams = pathParams(Type.Object({ id: ChannelId }), "There is no such channel.");

/** Where the account asks for approval. */
export function channelRoutes(deps: ChannelRouteDeps) {
  return [allRoutes(deps), changeRoutes(deps)];
}

function allRoutes({ channelService }: ChannelRouteDeps) {
  return createApiRoutes()
    .get(
      "/v1/channels",
      async ({ caller }) => jsonOf({ data: (await channelService.list(caller)).map(serializeChannel) }),
      operation({
        operationId: "listChannels",
        permission: "manage",
        summary: "List where the account asks for approval",
        description: "Lists the channels, the oldest first.",
        notes: ["URLs are shown masked: anyone who has one can post to it."],
        answers: { 200: { description: "The channels.", schema: ChannelListJson } },
      }),
    )
    .post(
      "/v1/channels",
      async ({ caller, body }) => {
        const channel = await channelService.add(caller, body);
        return jsonOf(serializeChannel(channel), 201);
      },
      operation({
        operationId: "createChannel",
        permission: "manage",
        summary: "Add where to ask for approval",
        description: "Adds a channel: every action that begins to await approval from now on is told there.",
        notes: [
          "A message has a link to the action's page; nothing in it decides.",
          "Of several nodes the others follow within 5 seconds.",
        ],
        body: jsonBody(CreateChannel),
        answers: { 201: { description: "The channel.", schema: ChannelJson } },
      }),
    );
}

function changeRoutes({ channelService }: ChannelRouteDeps) {
  return createApiRoutes()
    .patch(
      "/v1/channels/:id",
      async ({ caller, params, body }) => {
        const channel = await channelService.change(caller, params.id, body);
        return jsonOf(serializeChannel(channel));
      },
      operation({
        operationId: "changeChannel",
        permission: "manage",
        summary: "Change a channel, or switch it off",
        description: "Changes what the request names; what is left out stays.",
        notes: ["Messages that wait follow the change.", "The kind of a channel never changes."],
        params: ChannelParams,
        body: jsonBody(ChangeChannelBody),
        answers: { 200: { description: "The channel.", schema: ChannelJson } },
      }),
    )
    .delete(
      "/v1/channels/:id",
      ({ caller, params }) => noContent(channelService.remove(caller, params.id)),
      operation({
        operationId: "removeChannel",
        permission: "manage",
        summary: "Remove a channel",
        description: "Removes a channel.",
        notes: ["Messages that wait are dropped."],
        params: ChannelParams,
        answers: { 204: { description: "The channel is removed.", schema: null } },
      }),
    )
    .post(
      "/v1/channels/:id/test",
      async ({ caller, params }) => jsonOf(await channelService.test(caller, params.id)),
      operation({
        operationId: "testChannel",
        permission: "manage",
        summary: "Send a test message to a channel",
        description: "Sends a test message at once, also where the channel is switched off.",
        notes: ["It waits for at most 10 seconds.", "At most one test a second and 30 an hour."],
        params: ChannelParams,
        answers: { 200: { description: "How it fared.", schema: ChannelTestJson } },
      }),
    );
}
