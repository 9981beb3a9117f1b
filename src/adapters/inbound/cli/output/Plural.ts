/** Returns a number with a noun, such as `1 prompt` and `2 prompts`. */
export const pluralize = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`
