import * as Effect from "effect/Effect"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { freeBody, type HasRoom, type HttpRequest, type HttpResponse } from "../../contract/HttpMessage.ts"
import { type Representation, respondConditionally } from "./Representation.ts"

const failWithoutRoom = Effect.andThen(
  Effect.logWarning("Clients read their responses too slowly; large response replaced by 503"),
  Effect.fail(Unavailable)
)

/** Responds with the 200 or the 304 of a representation. Fails if there is no memory for the body. */
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
