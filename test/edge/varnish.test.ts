import { noVarnish, startVarnish } from "../support/edge.ts"
import { cacheSuite } from "./suite.ts"

cacheSuite({ name: "Varnish", missing: noVarnish, start: startVarnish })
