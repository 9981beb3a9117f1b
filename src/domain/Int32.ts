/** The range of the 32-bit integers in which versions, positions and items are counted. */
export const minInt32 = -2147483648
export const maxInt32 = 2147483647
