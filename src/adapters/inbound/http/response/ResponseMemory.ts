import * as Effect from "effect/Effect"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { freeBody, type HttpRequest, type HttpResponse } from "../HttpMessage.ts"
import { type Representation, respondConditionally } from "./Representation.ts"

/** Returns true if the memory for responses that clients have not received yet has room for one more body of a workspace. */
export type HasRoom = (bodyBytes: number, workspace: WorkspaceId | undefined) => boolean

const failWithoutRoom = Effect.andThen(
  Effect.logWarning("Clients read their responses too slowly; large response replaced by 503"),
  Effect.fail(Unavailable)
)

/** Responds with the 200 or the 304 of a representation. Fails if there is no room for the body. */
export const respondIfMemoryAllows = (
  request: HttpRequest,
  representation: Representation,
  hasRoom: HasRoom
): Effect.Effect<HttpResponse, Unavailable> => {
  const response = respondConditionally(request, representation)
  const hasRoomForBody = request.method === "HEAD" || hasRoom(response.body.length, response.workspace)
  const { full } = representation
  if (full.isFreedWhenSent === true && (response !== full || !hasRoomForBody)) freeBody(full.body)
  return hasRoomForBody ? Effect.succeed(response) : failWithoutRoom
}
