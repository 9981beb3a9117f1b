import type { Archive } from "../../../src/application/transfer/Archive.ts"
import demo from "../../../src/demo/workspace.json" with { type: "json" }

/** A word that tests put into parts of requests and into passwords. No service may write the word. */
export const canary = "s3cret"

/** Maps the prompt texts and the key hashes of imported archives to their kinds. No service may write these secrets. */
const secrets = new Map<string, string>()

/** Adds each line of a text, because a log can split the text. Leaves out short lines, which could occur by chance. */
const addText = (text: string): void => {
  for (const line of text.split(/[\r\n]+/)) if (line.length >= 8) secrets.set(line, "prompt text")
}

/** Records the texts of an archive's prompts, versions and fragments, and the hashes of its keys, as secrets. */
export const recordImported = ({
  prompts,
  fragments,
  api_keys
}: Pick<Archive, "prompts" | "fragments" | "api_keys">): void => {
  for (const { content } of fragments) addText(content)
  const texts = prompts.map(({ title, description, current_content, target_model, intent, ...prompt }) => [
    [title, description, current_content, target_model, intent],
    prompt.fragments.map(({ variable_overrides }) => variable_overrides),
    prompt.versions.map(({ content, change_summary, metadata }) => [content, change_summary, metadata])
  ])
  JSON.stringify(texts, (_, value: unknown) => {
    if (typeof value === "string") addText(value)
    return value
  })
  for (const { key_hash } of api_keys)
    for (const encoding of ["base64", "base64url"] as const)
      secrets.set(Buffer.from(key_hash, "hex").toString(encoding).replace(/=+$/, ""), "a hash")
}
recordImported(demo as unknown as Archive)

const suspicious = [
  ["a part of a request, or a password", new RegExp(canary, "i")],
  ["what looks like a key", /key_live_/i],
  ["what looks like a key or a hash", /(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/i],
  ["what looks like a path", /\/api\/v1\/prompts\/(?!:id)/i],
  ["what looks like a query", /\/\S*\?[^\s=]*=/],
  ["what keeps a stopped service alive", /Still active after the stop: .*/]
] as const

/** The message that `serve --demo` prints on purpose: it contains the key of the new demo workspace. */
const demoNotice = /^Created the demo workspace, .*\n\n {2}key_live_[0-9a-f]{64}\n\nTry it:\n\n {2}curl .*\n/m

/** Returns the secrets in a text that a service wrote: its output, its metrics or its OTLP requests. */
const findLeaks = (output: string): ReadonlyArray<string> => {
  const text = output.replace(demoNotice, "")
  const describe = (kind: string, at: number) =>
    at < 0 ? [] : [`${kind}: …${text.slice(Math.max(0, at - 200), at + 200)}…`]
  return [
    ...[...secrets].flatMap(([word, kind]) =>
      describe(kind, Math.max(text.indexOf(word), text.indexOf(JSON.stringify(word).slice(1, -1))))
    ),
    ...suspicious.flatMap(([kind, pattern]) => describe(kind, text.search(pattern)))
  ]
}

/** Throws if a text that a service wrote contains a secret. Does nothing in benchmarks, which write too much. */
export const searchForLeaks = (output: string): void => {
  const leaks = process.env.VITEST === undefined ? [] : findLeaks(output)
  if (leaks.length > 0) throw new Error(`the service wrote ${leaks.join("\n")}`)
}
