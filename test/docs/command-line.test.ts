import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { rootCommand } from "../../src/adapters/inbound/cli/Commands.ts"
import { listSubcommands } from "../../src/adapters/inbound/cli/input/CommandTree.ts"
import { runInProcess } from "../support/commandLine.ts"
import { readDocument, readTable, root } from "./markdown.ts"

const document = "docs/command-line.md"

interface DocumentedCommand {
  /** The words of the command, without the program's name. */
  readonly words: ReadonlyArray<string>
  readonly description: string
}

/** Returns every command that can be run, in the order of the help. */
const listCommands = (
  command: Parameters<typeof listSubcommands>[0] = rootCommand,
  words: ReadonlyArray<string> = []
): ReadonlyArray<DocumentedCommand> => {
  const subcommands = listSubcommands(command)
  return subcommands.length === 0
    ? [{ words, description: command.description ?? "" }]
    : subcommands.flatMap((subcommand) => listCommands(subcommand, [...words, subcommand.name]))
}

const commands = listCommands()

const renderTable = (): string =>
  [
    "| Command | |",
    "|---|---|",
    ...commands.map(
      ({ words, description }) => `| [\`${words.join(" ")}\`](#${words.join("-")}) | ${description} |`
    )
  ].join("\n")

const renderReference = async (words: ReadonlyArray<string>): Promise<string> => {
  const help = await runInProcess([...words, "--help"])
  expect(help).toMatchObject({ code: 0, stderr: "" })
  return `### ${words.join(" ")}\n\n\`\`\`text\n${help.stdout}\`\`\``
}

const generatedHeading = "## Commands"

// After a change of a command: npx vitest run test/docs/command-line.test.ts -u
it("docs/command-line.md lists every command with its help", async () => {
  const [prose] = readDocument(document).split(`${generatedHeading}\n`)
  const references: Array<string> = []
  for (const { words } of commands) references.push(await renderReference(words))
  const generated = [generatedHeading, renderTable(), ...references].join("\n\n")
  await expect(`${prose}${generated}\n`).toMatchFileSnapshot(join(root, document))
})

/** Splits the first command of a line into words, as a shell does. */
const splitWords = (line: string): ReadonlyArray<string> =>
  [...line.split(/ (?:\||>>?) /)[0]!.matchAll(/"([^"]*)"|(\S+)/g)].map(
    ([, quoted, plain]) => quoted ?? plain!
  )

describe("examples", () => {
  const examples = [...readDocument(document).matchAll(/^ {2}(.*?)(prompt-retrieval .+)$/gm)]
    .map(([, variables, line]) => ({ variables, line: line! }))
    .filter(({ variables }) => /^([A-Z_]+=\S+ )*$/.test(variables!))
    .filter(({ line }) => !/\[flags\]|<\w+>/.test(line))

  it("every command that takes part in the work of operators has an example", () => {
    const documented = examples.map(({ line }) => line)
    for (const { words } of commands.filter(({ words }) => words[0] !== "version")) {
      expect(documented).toContainEqual(expect.stringMatching(`^prompt-retrieval ${words.join(" ")}( |$)`))
    }
  })

  it.each(examples)("$line is a right command line", async ({ line }) => {
    const { code, stderr } = await runInProcess(splitWords(line).slice(1))
    expect({ stderr, isWrong: code === 2 }).toEqual({ stderr, isWrong: false })
  })
})

it("docs/command-line.md has exit codes of docs/operations.md", () => {
  const codes = (path: string) => readTable(path, "Exit codes").map(([code]) => code)
  expect(codes(document)).toEqual(codes("docs/operations.md"))
})
