import * as Order from "effect/Order"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { PromptId, parsePromptId } from "./Prompt.ts"
import { inAnyCase } from "./Uuid.ts"

/** Matches a slug, a hyphen, and the first 8 or all 32 hexadecimal digits of an id. */
const nameWithDigitsPattern = /^(.+)-([0-9a-f]{8}|[0-9a-f]{32})$/

/**
 * A prompt's name (docs/names.md), decoded to its parts. A name is the slug of the title. A hyphen and the first 8 or
 * all 32 hexadecimal digits of the prompt's id can follow the slug.
 */
const PromptName = Schema.String.check(Schema.isPattern(/^[a-z0-9_-]{1,97}$/)).pipe(
  Schema.decodeTo(
    Schema.Struct({ slug: Schema.String, digits: Schema.UndefinedOr(Schema.String) }),
    SchemaTransformation.transform({
      decode: (name) => {
        const [, slug = name, digits] = nameWithDigitsPattern.exec(name) ?? []
        return { slug, digits }
      },
      encode: ({ slug, digits }) => (digits === undefined ? slug : `${slug}-${digits}`)
    })
  )
)
/** The parts of a name. `digits` is `undefined` if the name is the slug alone. */
export type PromptName = typeof PromptName.Type

/**
 * The id or the name of a prompt in a workspace. A text in the form of a UUID, in uppercase or lowercase letters, is
 * always an id. An archived prompt has no name.
 */
const PromptReference = Schema.Union([inAnyCase(PromptId), PromptName])
export type PromptReference = typeof PromptReference.Type

/**
 * Decodes the text of a `PromptReference`. Fails for a text that is neither an id nor a name.
 *
 * @internal
 */
export const decodePromptReference = Schema.decodeUnknownResult(PromptReference)

/** Parses the text of a `PromptReference`. Returns `undefined` for a text that is neither an id nor a name. */
export const parsePromptReference = (text: string): PromptReference | undefined =>
  Result.getOrUndefined(decodePromptReference(text))

/** The number of code points at the start of a title that determine the title's slug. */
export const maxSlugSourceLength = 200
const maxSlugLength = 64

/** The slug of a title without characters that a slug can contain. */
export const emptySlug = "prompt"

/**
 * Returns the slug of a title: 1 to 64 characters of `a` to `z`, `0` to `9`, `_` and `-`. In PostgreSQL, the generated
 * column `prompts.slug` follows the same rule.
 */
export const toSlug = (title: string): string =>
  Array.from(title.slice(0, 2 * maxSlugSourceLength))
    .slice(0, maxSlugSourceLength)
    .join("")
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .replace(/[A-Z]/g, (letter) => letter.toLowerCase())
    .replaceAll("ß", "ss")
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-/, "")
    .slice(0, maxSlugLength)
    .replace(/-$/, "") || emptySlug

const toDigits = (id: PromptId): string => id.replaceAll("-", "")

const toUuid = (digits: string): string =>
  digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5")

/** Returns the smallest and the largest id that start with the digits of a name. */
export const toIdRange = (digits: string) => ({
  first: toUuid(digits.padEnd(32, "0")),
  last: toUuid(digits.padEnd(32, "f"))
})

/** The names that a prompt owns. Archived prompts have no names, so both fields ignore archived prompts. */
interface NameOwnership {
  /** True if no prompt with the same slug has a smaller `created_at`, or the same `created_at` and a smaller id. */
  readonly owns_slug: boolean
  /** True if no prompt with this slug and the same first 8 digits of the id has a smaller id. */
  readonly owns_digits: boolean
}

/** Returns the shortest name of a prompt. A slug in the form of an id, or of a name with digits, is not a name. */
export const toName = (
  { id, slug }: { readonly id: PromptId; readonly slug: string },
  { owns_slug, owns_digits }: NameOwnership
): string => {
  const isName = parsePromptId(slug) === undefined && !nameWithDigitsPattern.test(slug)
  if (owns_slug && isName) return slug
  return `${slug}-${owns_digits ? id.slice(0, 8) : toDigits(id)}`
}

/** The fields of a prompt that determine its names. */
interface NameablePrompt {
  readonly id: PromptId
  readonly title: string
  readonly is_archived: boolean
  readonly created_at: string
}

const byId = Order.Struct({ id: Order.String })
const byAge = Order.Struct({ created_at: Order.String, id: Order.String })

/** Finds the prompt with this id or name among all prompts of a workspace, for stores that keep prompts in memory. */
export const findPrompt = <A extends NameablePrompt>(
  prompts: ReadonlyArray<A>,
  reference: PromptReference
): A | undefined => {
  if (typeof reference === "string") return prompts.find(({ id }) => id === reference)
  const { slug, digits = "" } = reference
  const [first] = prompts
    .filter(
      ({ id, title, is_archived }) =>
        !is_archived && toSlug(title) === slug && toDigits(id).startsWith(digits)
    )
    .sort(digits === "" ? byAge : byId)
  return first
}

/** Returns the shortest name by which `findPrompt` finds this prompt. The prompt must not be archived. */
export const findName = (
  prompts: ReadonlyArray<NameablePrompt>,
  { id, title }: Pick<NameablePrompt, "id" | "title">
): string => {
  const slug = toSlug(title)
  const owns = (digits: string | undefined) => findPrompt(prompts, { slug, digits })?.id === id
  return toName({ id, slug }, { owns_slug: owns(undefined), owns_digits: owns(id.slice(0, 8)) })
}
