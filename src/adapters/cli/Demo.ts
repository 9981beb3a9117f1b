import { basename, extname, relative, sep } from "node:path"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { Administration } from "../../application/Administration.ts"
import { WorkspaceId } from "../../domain/Prompt.ts"

/** The command that runs this program again, as it was started: from sources, from an installed package or as a file. */
export const describeProgram = (script: string, directory: string): string => {
  const path = relative(directory, script)
  if (extname(script) === ".ts") return `npx node ${path}`
  // A package's own commands are not on the PATH of a shell, those of a global installation are.
  if (script.split(sep).includes("node_modules")) return "npx prompt-retrieval"
  return basename(script) === "main.js" ? `node ${path}` : "prompt-retrieval"
}

/**
 * Fills an empty database with a workspace to try, and prints a key of it, this once, with a line that uses it. A
 * database that holds something is left as it is; then it prints how to issue a key.
 */
export const offerDemo = Effect.fnUntraced(function* (address: string) {
  const administration = yield* Administration
  const [first] = yield* administration.workspaces
  if (first !== undefined) {
    const program = describeProgram(process.argv[1]!, process.cwd())
    return yield* Console.log(`To issue a key: ${program} keys issue --workspace ${first.id} --user EMAIL\n`)
  }
  const { default: demo } = yield* Effect.promise(() => import("./demo.json", { with: { type: "json" } }))
  const bytes = new TextEncoder().encode(JSON.stringify(demo))
  const { workspace, users, prompts } = demo
  yield* Effect.orDie(administration.importArchive(bytes))
  const { key } = yield* Effect.orDie(
    administration.issueKey(WorkspaceId.make(workspace.id), users[0]!.email, "Demo")
  )
  yield* Console.log(
    `A demo workspace was made, ${workspace.id}, with this key, shown only now:

  ${key}

Try it:

  curl -H 'Authorization: Bearer ${key}' ${address}/api/v1/prompts/${prompts[0]!.id}/resolved
`
  )
})
