import { relative } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Administration } from "../application/Administration.ts"
import demo from "../demo/workspace.json" with { type: "json" }
import { WorkspaceId } from "../domain/WorkspaceId.ts"
import { administrationLayer, makeActorLayer } from "./layers/CommandLayers.ts"

/** Returns the command that runs this program again: from its sources, or from the package. */
const formatProgramCommand = (): string => {
  const script = process.argv[1] ?? ""
  return script.endsWith(".ts") ? `npx node ${relative(process.cwd(), script)}` : "npx prompt-retrieval"
}

/**
 * Imports the demo workspace into an empty database, and prints an API key with a request to try. If the database
 * already has a workspace, changes nothing and prints how to issue a key.
 */
export const seedDemoWorkspace = (baseUrl: string, actor: string | undefined) =>
  Effect.gen(function* () {
    const administration = yield* Administration
    const workspaces = yield* administration.workspaces
    const existing = workspaces.find(({ id }) => id === demo.workspace.id) ?? workspaces[0]
    if (existing !== undefined) {
      return yield* Console.log(
        `To issue a key: ${formatProgramCommand()} keys issue --workspace ${existing.id} --user EMAIL\n`
      )
    }
    const id = WorkspaceId.make(demo.workspace.id)
    yield* Effect.orDie(administration.importArchive(demo, { source: "the demo workspace" }))
    const { key } = yield* Effect.orDie(administration.issueKey(id, "demo@example.com", "Demo"))
    yield* Console.log(
      `Created the demo workspace, ${id}, with this key, which is shown only once:

  ${key}

Try it:

  curl -H 'Authorization: Bearer ${key}' ${baseUrl}/api/v1/prompts/support-agent/resolved
`
    )
  }).pipe(Effect.provide(Layer.provide(administrationLayer, makeActorLayer(actor))))
