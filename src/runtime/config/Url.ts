import type { AddressInfo } from "node:net"

/** Formats the address of a listening server as a base URL. */
export const formatUrl = ({ address, port }: AddressInfo): string =>
  `http://${address.includes(":") ? `[${address}]` : address}:${port}`
